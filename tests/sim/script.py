"""Chains written by hand: records at heights, read by an observer's core and by the model, which must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gonka_trainer.round import bitmap
from gonka_trainer.round.commands import ReadEnvironment
from gonka_trainer.round.environment import environment_digest
from gonka_trainer.round.events import BlockSeen, EnvironmentRead
from gonka_trainer.round.machine import initial, step
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import Attest, Commit, Join, PlacedRecord, Record, StateRoot
from gonka_trainer.round.summary import RoundSummary
from gonka_trainer.types import Address, Digest, Height, Role, sha256, u64

from .check import Findings, agree
from .model import ModelRound, list_digest, rounds_of
from .plan import Epochs, address, no_epochs, params

SILENCE_BLOCKS = 30
OBSERVER = Local(None, None, wants_membership=False)


def block_hash(height: int) -> Digest:
    return sha256(b"script", u64(height))


def join(who: Address, written: int, role: Role = Role.MEMBER) -> Join:
    return Join(who, role, sha256(b"spki"), b"h.example", 9000, b"sim", Height(written))


@dataclass
class Script:
    """Say records at heights, then `play`: the model's rounds, after the core has been held against them."""

    params: RoundParams
    epochs: Epochs
    said: dict[int, list[tuple[Address, Record]]] = field(default_factory=dict)

    def say(self, height: int, author: Address, *records: Record) -> Script:
        for record in records:
            self.said.setdefault(height, []).append((author, record))
        return self

    def join(self, height: int, *people: Address) -> Script:
        for who in people:
            self.say(height, who, join(who, height))
        return self

    def commit(self, height: int, number: int, *keys: Address, mark: bytes = b"") -> Script:
        for key in keys:
            self.say(height, key, Commit(number, sha256(b"C", key, bytes([number]), mark)))
        return self

    def attest(
        self,
        height: int,
        number: int,
        closed: int,
        committers: Sequence[Address],
        who: Address,
        seen: Sequence[Address],
    ) -> Script:
        people = sorted(committers)
        bits = bitmap.pack([people.index(a) for a in seen], len(people))
        return self.say(height, who, Attest(number, list_digest(block_hash(closed), people), bytes(16), bits))

    def post(self, height: int, number: int, frozen: int, *people: Address, root: Digest | None = None) -> Script:
        environment = environment_digest(self.epochs.at(frozen))
        for who in people:
            state = StateRoot(number, root or sha256(b"root", bytes([number])), environment, sha256(b"roster"))
            self.say(height, who, state)
        return self

    def whole(self, opened: int, number: int, people: Sequence[Address]) -> int:
        """A round in which all is well, said in four blocks; returns the height at which it ends."""
        self.commit(opened, number, *people)
        for who in people:
            self.attest(opened + 1, number, opened, people, who, people)
        self.post(opened + 2, number, opened + 1, *people)
        return opened + 2

    def blocks(self, last: int) -> list[BlockSeen]:
        return [
            BlockSeen(
                Height(h),
                block_hash(h),
                tuple(PlacedRecord(i, 0, author, record) for i, (author, record) in enumerate(self.said.get(h, []))),
            )
            for h in range(self.params.log_height, last + 1)
        ]

    def play(self, last: int) -> list[ModelRound]:
        """The model's rounds after block `last`; core and model are compared a while longer, so that all rounds end."""
        blocks = self.blocks(last + SILENCE_BLOCKS)
        rounds = rounds_of(self.params, blocks, self.epochs.at)
        summaries = read_all(self.params, blocks, self.epochs)
        found = Findings()
        agree(found, "observer", summaries, rounds)
        ended = {r.number for r in rounds if r.ended is not None}
        found.must(set(summaries) == ended, f"core ended {sorted(summaries)}, model {sorted(ended)}")
        assert not found.wrong, found.wrong
        return rounds_of(self.params, self.blocks(last), self.epochs.at)


def read_all(params: RoundParams, blocks: Sequence[BlockSeen], epochs: Epochs) -> dict[int, RoundSummary]:
    """What an observer's core says of every round that ended."""
    state: Any = initial(params, OBSERVER)
    out: dict[int, RoundSummary] = {}
    for block in blocks:
        state, commands = step(params, OBSERVER, state, block)
        while wanted := [c for c in commands if isinstance(c, ReadEnvironment)]:
            at = wanted[0].height
            state, commands = step(params, OBSERVER, state, EnvironmentRead(at, epochs.at(at)))
        if state.last is not None:
            out.setdefault(state.last.round, state.last)
    return out


def equal(people: Sequence[Address]) -> Epochs:
    return no_epochs(tuple(sorted((p, 1) for p in people)))


A, B, C, D, E = people = tuple(sorted(address(f"case/{i}") for i in range(5)))
K, L = address("case/key"), address("case/other key")


def rules(members: Sequence[Address] | None, floor: int, **changes: object) -> RoundParams:
    listed = None if members is None else tuple(sorted(members))
    return params(equal_members=listed, min_weight=floor, start_height=Height(2), **changes)


def script(members: Sequence[Address], floor: int, **changes: object) -> Script:
    """All join in block 1, and round 0 opens at 3."""
    return Script(rules(members, floor, **changes), equal(members)).join(1, *members)


def weighted(weights: dict[Address, int], floor: int, **changes: object) -> Script:
    return Script(rules(None, floor, **changes), no_epochs(tuple(sorted(weights.items())))).join(1, *weights)


def all_but_c(s: Script, opened: int, number: int) -> int:
    """C says nothing: the commit window closes at its end; returns the next opening."""
    s.commit(opened, number, A, B)
    closed = s.play(opened + 12)[number].closed
    assert closed is not None
    for who in (A, B):
        s.attest(closed + 1, number, closed, [A, B], who, [A, B])
    s.post(closed + 2, number, closed + 1, A, B)
    return closed + 3
