"""A chain and hosts with everything instant, to drive the core through whole rounds by its commands alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gonka_trainer.round import machine
from gonka_trainer.round.bitmap import pack
from gonka_trainer.round.commands import (
    Apply,
    Command,
    Fetch,
    ProvePossession,
    Publish,
    ReadEnvironment,
    SendJoin,
    Sync,
    Train,
)
from gonka_trainer.round.environment import NO_EPOCHS, Environment, environment_digest
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
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import Attest, Commit, Join, PlacedRecord, Record, StateRoot
from gonka_trainer.round.state import CoreState, Round
from gonka_trainer.round.summary import RoundSummary
from gonka_trainer.types import Address, Digest, Height, Role


def address(n: int) -> Address:
    return Address(bytes([n]) * 20)


def key(n: int) -> Address:
    """The hot key of participant n."""
    return Address(bytes([n]) * 19 + b"\xff")


def digest(text: str) -> Digest:
    return Digest(hashlib.sha256(text.encode()).digest())


def block_hash(height: int) -> Digest:
    return digest(f"block {height}")


INITIAL = digest("initial")


def params(members: int | None = 3, **changes: int) -> RoundParams:
    numbers = {
        "log_height": 1,
        "start_height": 3,
        "min_weight": 2,
        "train_blocks": 4,
        "margin_blocks": 0,
        "commit_blocks": 4,
        "attest_blocks": 4,
        "extensions": 1,
        "state_blocks": 4,
    }
    numbers.update(changes)
    equal = None if members is None else tuple(address(n) for n in range(1, members + 1))
    return RoundParams(digest("run"), INITIAL, equal_members=equal, **numbers)  # type: ignore[arg-type]


def join(participant: Address, written: int, role: Role = Role.MEMBER) -> Join:
    return Join(participant, role, digest("spki"), b"host.example", 7000, b"1.0", Height(written))


@dataclass
class Host:
    """A host whose driver does everything at once. `up` False: it sees no blocks until it is up again."""

    params: RoundParams
    local: Local
    state: CoreState
    wanted: tuple[Command, ...] = ()
    up: bool = True
    journal: list[Event] = field(default_factory=list)
    done: set[object] = field(default_factory=set)
    summaries: list[RoundSummary] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    seen: int = 0
    blob_form: Callable[[int, Address], bool] = lambda _round, _participant: True
    root_of: Callable[[Apply], Digest] | None = None
    reachable: Callable[[int, Address], bool] = lambda _round, _participant: True

    def tell(self, event: Event) -> None:
        self.journal.append(event)
        before = self.state.last
        self.state, self.wanted = machine.step(self.params, self.local, self.state, event)
        self.texts += [note.text for note in self.state.notes]
        if self.state.last is not None and self.state.last != before:
            self.summaries.append(self.state.last)


def next_root(command: Apply) -> Digest:
    """The state that an honest host computes."""
    text = f"{command.base_root.hex()} {[(p.hex(), c.hex(), w) for p, c, w in command.included]}"
    return digest(text)


class World:
    """One chain, many hosts. Records published while a block is made stand in the next one."""

    def __init__(self, rules: RoundParams, hosts: Iterable[int]) -> None:
        self.params = rules
        self.hosts = {n: self._host(rules, n) for n in hosts}
        self.blocks: list[BlockSeen] = []
        self.environments: dict[int, Environment] = {}
        self.environment = Environment(NO_EPOCHS, ())
        self.pool: list[tuple[Address, Record]] = []
        self.tokens = 0

    @staticmethod
    def _host(rules: RoundParams, n: int) -> Host:
        local = Local(address(n), address(n))
        host = Host(rules, local, machine.initial(rules, local))
        host.tell(StateSynced(INITIAL, 0))
        return host

    @property
    def height(self) -> int:
        return len(self.blocks)

    def send(self, author: Address, record: Record) -> None:
        if (author, record) not in self.pool:
            self.pool.append((author, record))

    def block(self) -> None:
        """Make one block of all that was published, show it to the hosts that are up, and let them act."""
        height = Height(self.height + 1)
        records = tuple(PlacedRecord(i, 0, author, record) for i, (author, record) in enumerate(self.pool))
        self.pool = []
        self.environments[height] = self.environment
        self.blocks.append(BlockSeen(height, block_hash(height), records))
        for host in self.hosts.values():
            if host.up:
                self.catch_up(host)
        for host in self.hosts.values():
            if host.up:
                self.act(host)

    def catch_up(self, host: Host) -> None:
        while host.seen < self.height:
            host.tell(self.blocks[host.seen])
            host.seen += 1
            self.read_environments(host)
        host.tell(CaughtUp(Height(self.height)))

    def read_environments(self, host: Host) -> None:
        asked: list[ReadEnvironment] = []
        while new := [c for c in host.wanted if isinstance(c, ReadEnvironment) and c not in asked]:
            asked += new
            for read in new:
                host.tell(EnvironmentRead(read.height, self.environments[read.height]))

    def act(self, host: Host) -> None:
        """Carry out what is wanted until nothing new is; records go into the pool."""
        while True:
            self.read_environments(host)
            event = next((e for c in host.wanted if (e := self.answer(host, c)) is not None), None)
            if event is None:
                return
            host.tell(event)

    def answer(self, host: Host, command: Command) -> Event | None:
        participant = host.local.participant
        match command:
            case SendJoin(after) if host.local.key is not None and participant is not None:
                assert after < self.height
                self.send(host.local.key, join(participant, self.height))
            case Publish(record, until) if host.local.key is not None:
                assert self.height < until
                self.send(host.local.key, record)
            case Train(number, base, _, _, finish) if finish and participant is not None:
                return UpdateReady(number, digest(f"{number} {base.hex()} {participant.hex()}"))
            case Fetch(number, other, _, _, _) if host.reachable(number, other):
                return BlobHeld(number, other, host.blob_form(number, other))
            case ProvePossession(number, _, participants):
                return PossessionProved(number, participants, bytes(16))
            case Apply(number, _, _, attempt):
                root = next_root(command) if host.root_of is None else host.root_of(command)
                return StateComputed(number, root, attempt, self.tokens)
            case Sync(root, holders) if any(self.has(p, root) for p in holders):
                return StateSynced(root, self.tokens)
        return None

    def has(self, participant: Address, root: Digest) -> bool:
        return any(
            h.local.participant == participant and root in h.state.own.states for h in self.hosts.values() if h.up
        )

    def run(self, blocks: int) -> None:
        for _ in range(blocks):
            self.block()

    def until(self, condition: Callable[[], bool], limit: int = 300) -> None:
        for _ in range(limit):
            if condition():
                return
            self.block()
        raise AssertionError("it never came to pass")


Said = tuple[Address, Record]


class Reader:
    """An observer that is shown blocks made by hand; environments are answered at once unless `hold` is set."""

    def __init__(self, rules: RoundParams, local: Local | None = None) -> None:
        self.params = rules
        self.local = Local(None, None) if local is None else local
        self.state = machine.initial(rules, self.local)
        self.wanted: tuple[Command, ...] = ()
        self.environment = Environment(NO_EPOCHS, ())
        self.environments: dict[int, Environment] = {}
        self.hold = False
        self.texts: list[str] = []
        self.summaries: list[RoundSummary] = []
        self.next_height = 1

    def tell(self, event: Event) -> None:
        before = self.state.last
        self.state, self.wanted = machine.step(self.params, self.local, self.state, event)
        self.texts += [note.text for note in self.state.notes]
        if self.state.last is not None and self.state.last != before:
            self.summaries.append(self.state.last)

    def block(self, *said: Said) -> CoreState:
        height, self.next_height = Height(self.next_height), self.next_height + 1
        records = tuple(PlacedRecord(i, 0, author, record) for i, (author, record) in enumerate(said))
        self.environments[height] = self.environment
        self.tell(BlockSeen(height, block_hash(height), records))
        asked: list[ReadEnvironment] = []
        while not self.hold and (new := [read for read in self.reads() if read not in asked]):
            asked += new
            for read in new:
                self.tell(EnvironmentRead(read.height, self.environments[read.height]))
        return self.state

    def reads(self) -> list[ReadEnvironment]:
        return [c for c in self.wanted if isinstance(c, ReadEnvironment)]

    def skip_to(self, height: int) -> CoreState:
        """Show empty blocks up to and with this height."""
        while self.next_height <= height:
            self.block()
        return self.state

    def open_with(self, *participants: int) -> Round:
        """Let these join for themselves in block 1, and skip to the opening of round 0."""
        self.block(*((address(n), join(address(n), 1)) for n in participants))
        self.skip_to(self.params.start_height)
        return self.current

    @property
    def current(self) -> Round:
        assert self.state.current is not None
        return self.state.current

    @property
    def now(self) -> int:
        return self.next_height

    def commits(self, *participants: int) -> tuple[Said, ...]:
        number = self.state.round
        return tuple((address(n), Commit(number, digest(f"blob {number} {n}"))) for n in participants)

    def attests(self, of: Iterable[int], *participants: int) -> tuple[Said, ...]:
        """Attestations by the participants of the blobs `of` these."""
        current, wanted = self.current, {address(n) for n in of}
        positions = [i for i, p in enumerate(current.committers) if p in wanted]
        record = Attest(current.number, current.list_digest, bytes(16), pack(positions, len(current.committers)))
        return tuple((address(n), record) for n in participants)

    def roots(self, root: str, *participants: int) -> tuple[Said, ...]:
        environment = environment_digest(self.environments[self.current.frozen or 0])
        record = StateRoot(self.state.round, digest(root), environment, self.current.roster.digest)
        return tuple((address(n), record) for n in participants)

    def play(self, *participants: int) -> RoundSummary:
        """Play the open round with these participants, all well, to its final root (or until it is void)."""
        number, everybody = self.state.round, participants
        self.block(*self.commits(*everybody))
        while self.state.round == number and self.current.closed is None:
            self.block()
        if self.state.round == number:
            self.block(*self.attests(everybody, *everybody))
        while self.state.round == number and self.current.frozen is None:
            self.block()
        if self.state.round == number:
            self.block(*self.roots(f"root {number}", *everybody))
        while self.state.round == number and not self.state.ended:
            self.block()
        assert self.state.last is not None
        return self.state.last
