"""Long random runs that get far: mostly records that count and answers that are wanted, with nonsense in between."""

from __future__ import annotations

from random import Random

from round_world import INITIAL, address, block_hash, digest, join, key, params

from gonka_trainer.round.bitmap import pack
from gonka_trainer.round.commands import Apply, Command, Fetch, ProvePossession, Publish, ReadEnvironment, Sync, Train
from gonka_trainer.round.environment import NO_EPOCHS, Environment, EpochSchedule, environment_digest
from gonka_trainer.round.events import (
    BlobHeld,
    BlockSeen,
    CaughtUp,
    EnvironmentRead,
    Event,
    PossessionProved,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.records import (
    Attest,
    Challenge,
    Commit,
    Delegate,
    Heartbeat,
    Join,
    Leave,
    PlacedRecord,
    Record,
    Revoke,
    StateRoot,
    VerdictRecord,
)
from gonka_trainer.round.state import CoreState, Round
from gonka_trainer.types import Address, Digest, Height, Role

MEMBERS = 5
PEOPLE = [*(address(n) for n in range(1, MEMBERS + 2)), *(key(n) for n in range(1, 3))]
ROOTS = [digest("root a")] * 9 + [digest("root b")]


def rules(rng: Random) -> RoundParams:
    """Return the rules of a small run with short windows."""
    return params(
        rng.choice([None, MEMBERS]),
        min_weight=rng.choice([2, 3, 4]),
        train_blocks=rng.randint(0, 5),
        commit_blocks=rng.randint(1, 4),
        attest_blocks=rng.randint(1, 5),
        extensions=rng.randint(0, 2),
        state_blocks=rng.randint(1, 4),
        absent_rounds=rng.randint(2, 3),
        exclusion_rounds=rng.randint(1, 2),
        challenge_blocks=rng.randint(1, 3),
        roster_limit=rng.choice([3, 1024, 1024]),
        rounds=rng.choice([0, 0, 0, 6]),
        tokens=rng.choice([0, 0, 0, 190]),
    )


class Fuzz:
    """One run: the next event from the state and what is wanted."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.environment = self.fresh_environment()

    def event(self, state: CoreState, wanted: tuple[Command, ...]) -> Event:
        kind = self.rng.random()
        if state.need is not None and kind < 0.5:
            return EnvironmentRead(state.need.height, self.environment)
        if kind < 0.05:
            return self.nonsense(state)
        answers = [e for c in wanted if (e := self.answer(c)) is not None]
        if kind < 0.6 and answers:
            return self.rng.choice(answers)
        if kind < 0.65:
            return CaughtUp(state.height)
        return self.block(state, wanted)

    def fresh_environment(self) -> Environment:
        weights = tuple((address(n), self.rng.choice([1, 1, 1, 2])) for n in range(1, MEMBERS + 2))
        schedule = EpochSchedule(1, Height(5), 12, 1, 1, 1)
        return Environment(self.rng.choice([NO_EPOCHS, schedule]), weights)

    def block(self, state: CoreState, wanted: tuple[Command, ...]) -> BlockSeen:
        height = Height(state.height + len(state.queue) + 1)
        if self.rng.random() < 0.05:
            self.environment = self.fresh_environment()
        said = [s for _ in range(self.rng.randint(0, 4)) for s in self.helpful(state, height)]
        said += [(address(1), c.record) for c in wanted if isinstance(c, Publish) and self.rng.random() < 0.7]
        if self.rng.random() < 0.1:
            said.append((self.rng.choice(PEOPLE), self.membership(height)))
        if self.rng.random() < 0.1:
            said += self.judgement(state)
        if self.rng.random() < 0.1:
            said.append((self.rng.choice(PEOPLE), self.misplaced(state)))
        self.rng.shuffle(said)
        placed = tuple(PlacedRecord(i, 0, author, record) for i, (author, record) in enumerate(said))
        return BlockSeen(height, block_hash(height), placed)

    def helpful(self, state: CoreState, height: int) -> list[tuple[Address, Record]]:
        current = state.current
        if current is None or not current.roster.keys or self.rng.random() < 0.15:
            author = self.rng.choice(PEOPLE[:MEMBERS])
            return [(author, join(author, height))]
        author = self.rng.choice(list(current.roster.keys))
        return [(author, self.round_record(current))]

    def round_record(self, current: Round) -> Record:
        if current.closed is None:
            return Commit(current.number, digest(f"blob {self.rng.randint(0, 99)}"))
        if current.frozen is None:
            count = len(current.committers)
            positions = [i for i in range(count) if self.rng.random() < 0.9]
            return Attest(current.number, current.list_digest, bytes(16), pack(positions, count))
        environment = environment_digest(self.environment)
        return StateRoot(current.number, self.rng.choice(ROOTS), environment, current.roster.digest)

    def membership(self, height: int) -> Record:
        one, other = self.rng.choice(PEOPLE), self.rng.choice(PEOPLE)
        written = Height(max(0, height - self.rng.choice([0, 0, 0, 1, -1])))
        role = self.rng.choice([Role.MEMBER, Role.MEMBER, Role.VALIDATOR, Role.OBSERVER])
        made: list[Record] = [Delegate(one, written), Revoke(one, written), Leave(other, written)]
        made.append(Join(other, role, digest("spki"), b"", 1, b"", written))
        return self.rng.choice(made)

    def judgement(self, state: CoreState) -> list[tuple[Address, Record]]:
        """A challenge by somebody, or verdicts by several."""
        subject, segment = self.rng.choice(PEOPLE[:2]), self.rng.randint(0, 3)
        number = max(0, state.round - 1)
        if self.rng.random() < 0.3:
            return [(self.rng.choice(PEOPLE), Challenge(subject, number, segment))]
        outcome, authors = self.rng.choice([0, 1, 2, 2]), self.rng.sample(PEOPLE, self.rng.randint(1, len(PEOPLE)))
        return [(a, VerdictRecord(subject, number, segment, outcome, digest("evidence"))) for a in authors]

    def misplaced(self, state: CoreState) -> Record:
        """A record that is probably nothing: of another round, outside its window, or wrong in itself."""
        number = max(0, state.round - self.rng.choice([0, 0, 0, 1, -1]))
        names = b"" if state.current is None else state.current.list_digest
        records: list[Record] = [
            Commit(number, digest("misplaced")),
            Attest(number, self.rng.choice([names, bytes(16)]), bytes(16), self.rng.choice([b"", b"\xff", b"\xe0"])),
            StateRoot(number, digest("misplaced"), digest("environment"), digest("roster")),
            Heartbeat(number, 3),
        ]
        return self.rng.choice(records)

    def answer(self, command: Command) -> Event | None:
        tokens = self.rng.randint(0, 200)
        match command:
            case ReadEnvironment(height, _):
                return EnvironmentRead(height, self.environment)
            case Train(number, _, _, _, _):
                return UpdateReady(number, digest(f"mine {number}"))
            case Fetch(number, participant, _, _, _):
                return BlobHeld(number, participant, self.rng.random() < 0.9)
            case ProvePossession(number, _, participants):
                return PossessionProved(number, participants, bytes(16))
            case Apply(number, _, _, attempt):
                return StateComputed(number, self.rng.choice(ROOTS), attempt, tokens)
            case Sync(root, _):
                return StateSynced(root, tokens)
        return None

    def nonsense(self, state: CoreState) -> Event:
        number = state.round - self.rng.choice([-1, 0, 0, 1])
        root: Digest = self.rng.choice([INITIAL, *ROOTS])
        someone = self.rng.choice(PEOPLE)
        events: list[Event] = [
            BlockSeen(Height(state.height + self.rng.randint(-3, 3) * 2), block_hash(0), ()),
            EnvironmentRead(Height(state.height - self.rng.randint(0, 3)), self.fresh_environment()),
            UpdateReady(number, root),
            BlobHeld(number, someone, True),
            PossessionProved(number, (someone,), bytes(self.rng.choice([15, 16]))),
            StateComputed(number, root, self.rng.randint(0, 2), 7),
            StateSynced(root, 7),
            CaughtUp(Height(0)),
        ]
        return self.rng.choice(events)
