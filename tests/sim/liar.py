"""Liars: hosts whose core reads the chain like everybody's and whose driver does what its tricks say.

They know every byte that exists, act together (one junk root for all), and hold less than half of `min_weight`.
"""

from __future__ import annotations

from typing import Final

from gonka_trainer.round import bitmap
from gonka_trainer.round.commands import Fetch, Serve, Sync
from gonka_trainer.round.events import BlobHeld, StateSynced
from gonka_trainer.round.records import (
    Attest,
    Challenge,
    Commit,
    Delegate,
    Heartbeat,
    Join,
    Leave,
    Missing,
    Record,
    Revoke,
    Secret,
    StateRoot,
    VerdictRecord,
)
from gonka_trainer.types import Address, Digest, Height, Role, sha256, u32

from .host import Host

TRICKS: Final = (
    "copy commit",
    "two commits",
    "late commit",
    "bad form",
    "withhold",
    "starve",
    "selfish",
    "random bits",
    "wrong list",
    "long bitmap",
    "copy attest",
    "junk root",
    "junk environment",
    "junk roster",
    "two states",
    "spam",
    "members",
    "verdicts",
    "silent",
)


class Liar(Host):
    """See TRICKS; a liar without a trick for a moment does what an honest host would."""

    def tries(self, trick: str) -> bool:
        return trick in self.plan.tricks and self.rng.random() < 0.7

    @property
    def silenced(self) -> bool:
        return self.deaf_until > self.world.chain.tip

    def form_good(self) -> bool:
        return not self.tries("bad form")

    def serves(self, commitment: Digest, asker: Host) -> bool:
        if "withhold" in self.plan.tricks or self.silenced:
            return False
        if "starve" in self.plan.tricks and sha256(commitment, asker.participant)[0] % 2:
            return False
        return super().serves(commitment, asker)

    def gives_state(self, root: Digest) -> bool:
        return False

    def do_fetch(self, command: Fetch) -> None:
        if command.commitment in self.world.blobs:
            self.blobs[command.commitment] = command.round
            self.feed(BlobHeld(command.round, command.participant, form_good=True))

    def do_sync(self, command: Sync) -> None:
        tokens = [h.states[command.root] for h in self.world.hosts if command.root in h.states]
        if tokens:
            self.states[command.root] = tokens[0]
            self.feed(StateSynced(command.root, tokens[0]))
        else:
            super().do_sync(command)

    def publish(self, record: Record) -> None:
        match record:
            case Commit():
                self.lie_commit(record)
            case Attest():
                self.lie_attest(record)
            case StateRoot():
                self.lie_state(record)
            case _:
                self.say(record)

    def lie_commit(self, record: Commit) -> None:
        others = [
            p.record.commitment
            for b in self.world.chain.blocks[-12:]
            for p in b.records
            if isinstance(p.record, Commit) and p.record.round == record.round and p.author != self.local.key
        ]
        if others and self.tries("copy commit"):
            record = Commit(record.round, self.rng.choice(others))
        self.say(record)
        if self.tries("two commits"):
            self.say(Commit(record.round, sha256(b"sim/other", record.commitment)))
        if "late commit" in self.plan.tricks:
            self.world.later(self.rng.randint(4, 12), self, Commit(record.round, sha256(b"sim/late", self.participant)))

    def committers(self, number: int) -> list[Address]:
        for command in self.commands:
            if isinstance(command, Serve) and command.round == number:
                return sorted(a for a, _ in command.commitments)
        return []

    def lie_attest(self, record: Attest) -> None:
        committers = self.committers(record.round)
        bits, digest = record.bitmap, record.list_digest
        if "selfish" in self.plan.tricks and committers:
            liars = {h.participant for h in self.world.hosts if not h.plan.honest}
            bits = bitmap.pack([i for i, a in enumerate(committers) if a in liars], len(committers))
        elif committers and self.tries("random bits"):
            bits = bitmap.pack([i for i in range(len(committers)) if self.rng.random() < 0.5], len(committers))
        if self.tries("copy attest"):
            bits = self.copied_bits(record) or bits
        if self.tries("wrong list"):
            digest = sha256(b"sim/list", digest)[:16]
        if self.tries("long bitmap"):
            bits = self.rng.choice([bits + b"\x00", b"", b"\xff" * len(bits)])
        self.say(Attest(record.round, digest, record.possession, bits))

    def copied_bits(self, record: Attest) -> bytes | None:
        for block in reversed(self.world.chain.blocks[-8:]):
            for placed in block.records:
                if isinstance(placed.record, Attest) and placed.record.round == record.round:
                    return placed.record.bitmap
        return None

    def lie_state(self, record: StateRoot) -> None:
        root, environment, roster = record.root, record.environment, record.roster
        if self.tries("junk root"):
            root = self.world.junk(record.round)
        if self.tries("junk environment"):
            environment = sha256(b"sim/junk environment", u32(record.round))
        if self.tries("junk roster"):
            roster = sha256(b"sim/junk roster", u32(record.round))
        self.say(StateRoot(record.round, root, environment, roster))
        if self.tries("two states"):
            self.say(StateRoot(record.round, self.world.junk(record.round), environment, roster))

    def tick(self) -> None:
        super().tick()
        if self.silenced or not self.up or self.read == 0:
            return
        if "spam" in self.plan.tricks and self.rng.random() < 0.3:
            self.say(self.spam())
        if "members" in self.plan.tricks and self.rng.random() < 0.08:
            self.play_members()
        if "verdicts" in self.plan.tricks and self.rng.random() < 0.15:
            self.say(self.verdict())
        if self.tries("junk root") and self.rng.random() < 0.2:
            number = self.state.round
            self.say(StateRoot(number, self.world.junk(number), sha256(b"e"), sha256(b"r")))

    def verdict(self) -> Record:
        subject = self.rng.choice(self.world.hosts).participant
        return VerdictRecord(
            subject,
            max(0, self.state.round - 1),
            self.rng.randint(0, 1),
            self.rng.randint(0, 2),
            sha256(b"sim/evidence"),
        )

    def spam(self) -> Record:
        """Records of other rounds, stages and heights."""
        number = max(0, self.state.round + self.rng.choice([-2, -1, -1, 0, 0, 0, 1, 1, 2, 50]))
        digest = sha256(b"sim/spam", u32(self.rng.randint(0, 9)))
        tip = self.world.chain.tip
        host = self.rng.choice(self.world.hosts).participant
        choices: list[Record] = [
            Commit(number, digest),
            Attest(number, digest[:16], digest[:16], bytes([self.rng.randint(0, 255)])),
            StateRoot(number, self.world.junk(number), digest, digest),
            Missing(number, b"\xff"),
            Challenge(host, number, self.rng.randint(0, 1)),
            Secret(number, 0, digest),
            Heartbeat(number, 1),
            Join(self.participant, Role.MEMBER, digest, b"x", 1, b"x", Height(tip + self.rng.choice([-40, 3, 900]))),
            Leave(host, Height(max(0, tip - self.rng.randint(0, 3)))),
        ]
        return self.rng.choice(choices)

    def play_members(self) -> None:
        """Joins, delegations, revocations and leaves of its own and in the name of others."""
        tip = Height(self.world.chain.tip)
        host = self.rng.choice(self.world.hosts)
        own, other = self.participant, host.participant
        role = self.rng.choice([Role.MEMBER, Role.MEMBER, Role.MEMBER, Role.VALIDATOR])
        key = self.local.key or own
        choices: list[tuple[Address, Record]] = [
            (key, Join(other, Role.MEMBER, sha256(b"x"), b"x", 1, b"x", tip)),
            (key, Join(own, role, sha256(b"x"), b"x", 1, b"x", tip)),
            (own, Join(own, Role.MEMBER, sha256(b"x"), b"x", 1, b"x", tip)),
            (own, Delegate(key, tip)),
            (own, Delegate(host.plan.key, tip)),
            (own, Delegate(own, tip)),
            (own, Revoke(key, tip)),
            (own, Revoke(host.plan.key, tip)),
            (own, Leave(own, tip)),
            (key, Leave(own, tip)),
            (key, Leave(other, tip)),
        ]
        author, record = self.rng.choice(choices)
        self.world.chain.submit(author, record)
