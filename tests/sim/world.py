"""A world: the fake chain, its hosts, and what befalls them, from one plan. `run` plays it to its last block."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Delegate, Heartbeat, Join, Leave, Record, VerdictRecord
from gonka_trainer.types import Address, Digest, Height, Role, sha256, u32

from .chain import Chain
from .gaps import spares, wipe
from .host import Blob, Host
from .liar import Liar
from .plan import Action, Plan


class World:
    """Everything is a function of the plan: two runs give the same chain and the same states."""

    def __init__(self, plan: Plan, exact_replay: bool = True) -> None:
        self.plan, self.exact_replay = plan, exact_replay
        self.rng = random.Random(f"{plan.seed}/world")
        self.chain = Chain(plan.seed, plan.noise, random.Random(f"{plan.seed}/chain"))
        self.counts: Counter[str] = self.chain.counts
        self.blobs: dict[Digest, Blob] = {}
        self.checkpoints: dict[bytes, None] = {}
        self.documents: dict[Digest, bytes] = {}
        self.wishes: list[tuple[int, int, Address, Delegate | Leave]] = []
        self.waiting: list[tuple[int, Host, Record]] = []
        self.hosts = [(Host if h.honest else Liar)(self, h) for h in plan.hosts]
        self.by_participant = {h.participant: h for h in self.hosts}

    @property
    def calm(self) -> bool:
        return self.chain.calm

    def host_of(self, participant: Address) -> Host | None:
        return self.by_participant.get(participant)

    def junk(self, number: int) -> Digest:
        """The root that all liars of this world say together."""
        return sha256(b"sim/junk root", self.plan.seed.encode(), u32(number))

    def crashes(self, host: Host, often: float = 1.0) -> bool:
        return not self.calm and host.plan.honest and self.rng.random() < often * self.plan.noise.crash

    def later(self, blocks: int, host: Host, record: Record) -> None:
        self.waiting.append((self.chain.tip + blocks, host, record))

    def wish(self, author: Address, record: Delegate | Leave) -> None:
        """An operator's record: sent again, with a new written height, until one is in a block."""
        self.wishes.append((self.chain.tip, -9, author, record))

    # -- time -------------------------------------------------------------------------------------------------------

    def run(self) -> World:
        for height in range(1, self.plan.blocks + 1):
            if height == self.plan.params.log_height:
                self.found()
            self.advance(height)
        return self

    def found(self) -> None:
        """The first records that count: participants name their daemons' keys."""
        for host in self.plan.hosts:
            if host.key != host.participant and host.starts <= 1:
                self.wish(host.participant, Delegate(host.key, Height(0)))

    def advance(self, height: int) -> None:
        self.chain.calm = height >= self.plan.calm_from
        for action in self.plan.actions:
            if action.height == height:
                self.befall(action)
        self.operators()
        self.strangers()
        self.chain.produce()
        order = list(self.hosts)
        self.rng.shuffle(order)
        for host in order:
            host.tick()
        due = [w for w in self.waiting if w[0] <= height]
        self.waiting = [w for w in self.waiting if w[0] > height]
        for _, host, record in due:
            host.say(record)

    def operators(self) -> None:
        tip = self.chain.tip
        keep = []
        for since, at, author, record in self.wishes:
            if self.granted(since, author, record):
                continue
            if tip - at >= 5:
                self.chain.submit(author, replace(record, written=Height(tip + 1)))
                at = tip
            keep.append((since, at, author, record))
        self.wishes = keep

    def granted(self, since: int, author: Address, record: Delegate | Leave) -> bool:
        return any(
            placed.author == author and type(placed.record) is type(record) and placed.record.written > since
            for block in self.chain.blocks[since:]
            for placed in block.records
            if isinstance(placed.record, Delegate | Leave)
        )

    def strangers(self) -> None:
        if self.rng.random() >= self.plan.foreign:
            return
        who = sha256(b"sim/stranger", u32(self.rng.randint(0, 3)))[:20]
        host = self.rng.choice(self.plan.hosts)
        choices: list[Record] = [
            Heartbeat(1, 1),
            Join(host.participant, Role.MEMBER, sha256(b"s"), b"s", 1, b"s", Height(self.chain.tip)),
            Join(Address(who), Role.MEMBER, sha256(b"s"), b"s", 1, b"s", Height(self.chain.tip)),
            Leave(host.participant, Height(self.chain.tip)),
            Delegate(host.key, Height(self.chain.tip)),
        ]
        self.chain.submit(Address(who), self.rng.choice(choices))

    # -- what befalls -----------------------------------------------------------------------------------------------

    def befall(self, action: Action) -> None:
        host = self.hosts[action.host]
        self.counts[f"action {action.kind}"] += 1
        match action.kind:
            case "crash":
                host.crash(action.blocks)
            case "wipe" if spares(host):
                wipe(host, action.blocks)
            case "wipe" | "gap":
                self.counts["gap"] += 1
                host.crash(action.blocks)
                host.gap = True
            case "crash next":
                host.crash_next = True
            case "outage" | "silence":
                host.deaf_until = self.chain.tip + action.blocks
            case "leave":
                self.leave(host)
            case "rejoin":
                host.restart(Local(host.participant, host.local.key))
            case "delegate":
                self.wish(host.participant, Delegate(host.plan.key, Height(self.chain.tip)))
            case "rotate":
                self.rotate(host, action.subject)
            case "verdicts":
                self.verdicts(action)
            case "wrong":
                host.wrong_rounds[action.subject] = action.blocks
            case _:
                raise ValueError(action.kind)

    def leave(self, host: Host) -> None:
        author = host.participant if self.rng.random() < 0.5 else host.local.key or host.participant
        self.wish(author, Leave(host.participant, Height(self.chain.tip)))
        host.restart(Local(host.participant, host.local.key, wants_membership=False))

    def rotate(self, host: Host, serial: int) -> None:
        """A new key: named by the participant, and the daemon restarted with it (or the participant's own again)."""
        key = Address(sha256(b"sim/rotated", host.participant, u32(serial))[:20]) if serial else host.participant
        if key != host.participant:
            self.wish(host.participant, Delegate(key, Height(self.chain.tip)))
        host.restart(Local(host.participant, key))

    def verdicts(self, action: Action) -> None:
        """Honest members found the same fault; who is down says nothing."""
        subject = self.hosts[action.subject].participant
        for host in self.hosts:
            if host.plan.honest and host.hears:
                number = max(0, host.state.round - 1)
                host.say(VerdictRecord(subject, number, action.blocks, 2, sha256(b"sim/evidence", subject)))
