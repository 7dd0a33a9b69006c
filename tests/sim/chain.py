"""A fake chain: a mempool that loses, delays, doubles and reorders, and blocks of records by position."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.records import PlacedRecord, Record
from gonka_trainer.types import Address, Height, sha256, u64

from .plan import Noise


@dataclass
class Chain:
    """`submit` puts a record in the mempool, `produce` makes the next block; once `calm`, nothing is lost any more."""

    seed: str
    noise: Noise
    rng: random.Random
    blocks: list[BlockSeen] = field(default_factory=list)
    pending: list[tuple[int, int, Address, Record]] = field(default_factory=list)
    calm: bool = False
    hurt: set[tuple[int, Address]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    serial: int = 0

    @property
    def tip(self) -> int:
        return len(self.blocks)

    def submit(self, author: Address, record: Record) -> None:
        """The next block takes it, or the mempool plays one of its tricks."""
        self.serial += 1
        ready, roll = self.tip + 1, self.rng.random()
        if not self.calm and roll < self.noise.lost:
            self.counts["transaction lost"] += 1
            self.hurt.add((self.tip, author))
            return
        if not self.calm and roll < self.noise.lost + self.noise.delayed:
            ready += self.rng.randint(1, max(1, self.noise.delay_blocks))
            self.counts["transaction delayed"] += 1
            self.hurt.add((self.tip, author))
        self.pending.append((ready, self.serial, author, record))
        if self.rng.random() < self.noise.doubled:
            self.counts["transaction doubled"] += 1
            self.pending.append((ready + self.rng.randint(0, 9), self.serial, author, record))

    def produce(self) -> None:
        """Make a block of what is ready: an author's own order holds, authors are mixed."""
        height = self.tip + 1
        ready = [p for p in self.pending if p[0] <= height]
        self.pending = [p for p in self.pending if p[0] > height]
        by_author: dict[Address, list[Record]] = {}
        for _, _, author, record in sorted(ready, key=lambda p: p[:2]):
            by_author.setdefault(author, []).append(record)
        placed = []
        order = [author for author, records in sorted(by_author.items()) for _ in records]
        self.rng.shuffle(order)
        transaction = message = 0
        for index, author in enumerate(order):
            joined = index > 0 and order[index - 1] == author and self.rng.random() < 0.3
            transaction, message = (transaction, message + 1) if joined else (transaction + 1, 0)
            placed.append(PlacedRecord(transaction, message, author, by_author[author].pop(0)))
        block_hash = sha256(b"sim/block", self.seed.encode(), u64(height))
        self.blocks.append(BlockSeen(Height(height), block_hash, tuple(placed)))
