"""One host: a driver that acts on the core's commands as a daemon would, with a journal, a disk, and crashes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gonka_trainer.round.commands import (
    Apply,
    Command,
    Fetch,
    Halt,
    Keep,
    ProvePossession,
    Publish,
    ReadEnvironment,
    SendJoin,
    Serve,
    Sync,
    Train,
)
from gonka_trainer.round.environment import encode_environment, environment_digest
from gonka_trainer.round.events import (
    BlobHeld,
    CaughtUp,
    EnvironmentRead,
    Event,
    PossessionProved,
    Resumed,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.machine import initial, step
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Attest, Commit, Join, Record, StateRoot
from gonka_trainer.round.summary import Phase, RoundSummary
from gonka_trainer.types import Address, Digest, Height, Role, sha256, u32

from .gaps import Broken, note_checkpoint, resume
from .plan import INITIAL_ROOT, HostPlan

if TYPE_CHECKING:
    from .world import World


class Crashed(Exception):
    """The process dies here; the journal and the disk stay."""


@dataclass(frozen=True)
class Blob:
    """What a commitment stands for; a copied commitment has no blob of its copier's."""

    participant: Address
    round: int
    base_root: Digest
    form_good: bool


def included_root(base: Digest, included: list[tuple[Address, Digest]]) -> Digest:
    """The stand-in for the outer step: other inputs, another root; nothing of weight, the same root."""
    return sha256(b"sim/state", base, *(a + c for a, c in sorted(included))) if included else base


TICKS_PER_BLOCK = 3
COMMITTING = (Phase.WAITING, Phase.TRAIN, Phase.COMMIT)


class Host:
    """Honest. `tick` is called after each block; everything in `tasks` is lost by a crash, nothing else is."""

    def __init__(self, world: World, plan: HostPlan) -> None:
        self.world, self.plan = world, plan
        self.participant = plan.participant
        self.local = Local(plan.participant, plan.key)
        self.rng = random.Random(f"{world.plan.seed}/host/{plan.name}")
        self.journal: list[Event] = []
        self.state: Any = initial(world.plan.params, self.local)
        self.commands: tuple[Command, ...] = ()
        self.tasks: dict[object, int] = {}
        self.sent: dict[object, int] = {}
        self.blobs: dict[Digest, int] = {}
        self.states: dict[Digest, int] = {}
        self.computed: set[Digest] = set()
        self.summaries: dict[int, RoundSummary] = {}
        self.read = 0
        self.caught_up = 0
        self.down_until = 0 if plan.starts <= 1 else plan.starts
        self.deaf_until = 0
        self.crash_next = False
        self.wrong_rounds: dict[int, int] = {}
        self.halted: Halt | None = None
        self.troubled: set[int] = set()
        self.nonce = 0
        self.gap = False

    # -- life and death ---------------------------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        return self.world.chain.tip >= self.down_until and self.halted is None

    @property
    def hears(self) -> bool:
        return self.up and self.world.chain.tip >= self.deaf_until

    def crash(self, blocks: int) -> None:
        self.world.counts["crash"] += 1
        self.tasks, self.sent = {}, {}
        self.commands = ()
        self.down_until = self.world.chain.tip + max(1, blocks)

    def restart(self, local: Local | None = None) -> None:
        """Replay the journal; the state must be the one before the crash, if who we are is."""
        before, same = self.state, local is None or local == self.local
        self.local = local or self.local
        self.state = initial(self.world.plan.params, self.local)
        commands: tuple[Command, ...] = ()
        for event in self.journal:
            self.state, commands = step(self.world.plan.params, self.local, self.state, event)
        if same and self.world.exact_replay and self.state != before:
            raise Broken(f"{self.plan.name}: replay of {len(self.journal)} events gives another state")
        self.commands = commands
        self.tasks, self.sent, self.caught_up = {}, {}, 0
        self.note_summary()

    def feed(self, event: Event) -> None:
        """Journal, step, act: a crash may come between any two of them."""
        self.journal.append(event)
        self.world.counts[f"event {type(event).__name__}"] += 1
        after = self.crash_next or self.world.crashes(self)
        early = after and self.rng.random() < 0.5
        self.crash_next = False
        self.state, commands = step(self.world.plan.params, self.local, self.state, event)
        self.note_summary()
        note_checkpoint(self)
        if after:
            # the state is kept only to be compared with the replay's; a daemon that dies early never saw it
            self.world.counts["crash between journal and step" if early else "crash between step and act"] += 1
            raise Crashed
        self.commands = commands
        for command in commands:
            self.world.counts[f"command {type(command).__name__}"] += 1
            if isinstance(command, Serve) and command.round == self.state.round and self.state.phase in COMMITTING:
                raise Broken(f"{self.plan.name}: round {command.round} is served before the close")

    def note_summary(self) -> None:
        last = self.state.last
        if last is not None and last.round not in self.summaries:
            self.summaries[last.round] = last

    # -- a block's time ---------------------------------------------------------------------------------------------

    def tick(self) -> None:
        tip = self.world.chain.tip
        if not self.hears or any(isinstance(c, Sync) for c in self.commands):
            self.troubled.add(tip)
        if not self.up:
            return
        if self.down_until == tip and tip > 1:
            self.world.counts["restart"] += 1
            self.restart()
        try:
            if self.gap and self.hears:
                resume(self)
            self.live(tip)
        except Crashed:
            self.crash(self.rng.choice([1, 1, 2, 6]))

    def live(self, tip: int) -> None:
        if self.hears:
            self.follow(tip)
        for _ in range(TICKS_PER_BLOCK):
            while self.world.calm and self.hears and (wanted := self.environments()):
                self.do_environment(wanted[0])
            self.work()

    def environments(self) -> list[ReadEnvironment]:
        return [c for c in self.commands if isinstance(c, ReadEnvironment)]

    def follow(self, tip: int) -> None:
        while self.read < tip:
            block = self.world.chain.blocks[self.read]
            self.read += 1
            if block.height >= self.world.plan.params.log_height:
                self.feed(block)
        if self.caught_up < tip >= self.world.plan.params.log_height:
            self.feed(CaughtUp(Height(tip)))
            self.caught_up = tip

    def work(self) -> None:
        keys = {self.key(c) for c in self.commands}
        self.tasks = {k: v for k, v in self.tasks.items() if k in keys}
        for command in self.commands:
            if command in self.commands and self.halted is None:
                self.act(command)

    def key(self, command: Command) -> object:
        match command:
            case Train():
                return ("train", command.round, command.base_root)
            case Fetch():
                return ("fetch", command.round, command.participant, command.commitment)
            case Sync():
                return ("sync", command.root)
            case ReadEnvironment():
                return ("environment", command.height)
            case _:
                return command

    def act(self, command: Command) -> None:
        match command:
            case ReadEnvironment():
                self.do_environment(command)
            case SendJoin():
                self.do_join(command)
            case Train():
                self.do_train(command)
            case Publish():
                self.do_publish(command)
            case Fetch():
                self.do_fetch(command)
            case ProvePossession():
                self.do_prove(command)
            case Apply():
                self.do_apply(command)
            case Sync():
                self.do_sync(command)
            case Keep():
                self.do_keep(command)
            case Halt():
                self.halted = command
            case Serve():
                pass

    def due(self, command: Command, draw: Callable[[], int]) -> bool:
        """Start the task of a command, or go on with it; True when it is done."""
        key = self.key(command)
        left = self.tasks[key] if key in self.tasks else draw()
        self.tasks[key] = left - 1
        if left > 0:
            return False
        del self.tasks[key]
        return True

    def slow(self) -> int:
        return 0 if self.world.calm else self.rng.randint(0, self.world.plan.noise.slow_ticks)

    # -- commands ---------------------------------------------------------------------------------------------------

    def do_environment(self, command: ReadEnvironment) -> None:
        ticks = self.world.plan.noise.environment_ticks
        if not self.hears or not self.due(command, lambda: 0 if self.world.calm else self.rng.randint(0, ticks)):
            self.troubled.add(self.world.chain.tip)
            return
        found = self.world.plan.epochs.at(command.height)
        if command.digest is not None and environment_digest(found) != command.digest:
            raise Broken(f"{self.plan.name}: environment of {command.height} wanted with a digest that is not its own")
        self.world.documents[environment_digest(found)] = encode_environment(found)
        self.feed(EnvironmentRead(command.height, found))

    def do_join(self, command: SendJoin) -> None:
        tip = self.world.chain.tip
        if not self.hears or tip + 1 <= command.after or tip - self.sent.get("join", -9) < 4:
            return
        self.sent["join"] = tip
        written = Height(max(command.after + 1, tip))
        self.say(
            Join(self.participant, Role.MEMBER, sha256(self.local.key or b""), b"h.example", 9000, b"sim", written)
        )

    def say(self, record: Record) -> None:
        if self.local.key is not None:
            self.world.chain.submit(self.local.key, record)

    def do_publish(self, command: Publish) -> None:
        tip = self.world.chain.tip
        if not self.hears or tip >= command.until or tip - self.sent.get(command.record, -9) < 3:
            return
        if command.record in self.sent:
            self.world.counts["record sent again"] += 1
        self.sent[command.record] = tip
        self.publish(command.record)
        if self.world.crashes(self, often=10):
            self.world.counts["crash after a broadcast"] += 1
            raise Crashed

    def publish(self, record: Record) -> None:
        """Where a liar differs."""
        if isinstance(record, Commit | Attest | StateRoot):
            self.world.counts[f"honest {type(record).__name__}"] += 1
        self.say(record)

    def do_train(self, command: Train) -> None:
        if command.base_root not in self.states:
            raise Broken(f"{self.plan.name}: train round {command.round} from a state that is not here")
        blocks = 1 if self.world.calm else self.world.plan.noise.train_blocks
        if not self.due(command, lambda: self.rng.randint(1, 1 + TICKS_PER_BLOCK * blocks)) and not command.finish:
            return
        self.tasks.pop(self.key(command), None)
        self.nonce += 1
        good = self.form_good()
        commitment = sha256(b"sim/blob", self.participant, u32(command.round), command.base_root, u32(self.nonce))
        self.world.blobs[commitment] = Blob(self.participant, command.round, command.base_root, good)
        self.blobs[commitment] = command.round
        self.feed(UpdateReady(command.round, commitment))

    def form_good(self) -> bool:
        return True

    def serves(self, commitment: Digest, asker: Host) -> bool:
        """Whether this host gives a blob away: it is up, it has it, and its core says that the round is open."""
        wanted = self.blobs.get(commitment)
        open_rounds = {c.round for c in self.commands if isinstance(c, Serve)}
        return self.up and wanted in open_rounds

    def do_fetch(self, command: Fetch) -> None:
        if not self.due(command, self.slow):
            return
        if not self.world.calm and self.rng.random() < self.world.plan.noise.fetch_fails:
            return
        blob = self.world.blobs.get(command.commitment)
        if blob is None or (blob.participant, blob.round, blob.base_root) != (
            command.participant,
            command.round,
            command.base_root,
        ):
            return
        sources = [self.world.host_of(a) for a in (command.participant, *command.holders)]
        if command.commitment not in self.blobs and not any(
            s is not None and s is not self and s.serves(command.commitment, self) for s in sources
        ):
            return
        if command.holders and sources[0] is not None and not sources[0].serves(command.commitment, self):
            self.world.counts["blob from an attester"] += 1
        self.blobs[command.commitment] = command.round
        self.feed(BlobHeld(command.round, command.participant, blob.form_good))

    def do_prove(self, command: ProvePossession) -> None:
        if self.due(command, self.slow):
            proof = sha256(b"sim/possession", self.participant, command.close_hash, *command.participants)[:16]
            self.feed(PossessionProved(command.round, command.participants, proof))

    def do_apply(self, command: Apply) -> None:
        if command.base_root not in self.states:
            raise Broken(f"{self.plan.name}: apply round {command.round} over a state that is not here")
        if any(c not in self.blobs for _, c, _ in command.included):
            raise Broken(f"{self.plan.name}: apply round {command.round} without its blobs")
        if not self.due(command, self.slow):
            return
        good = [(a, c) for a, c, _ in command.included if self.world.blobs[c].form_good]
        root = included_root(command.base_root, good)
        if self.wrong_rounds.get(command.round, -1) >= command.attempt:
            root = sha256(b"sim/wrong", self.participant, root, u32(command.attempt))
        if command.attempt:
            self.world.counts["recomputed"] += 1
        tokens = self.states[command.base_root] + len(good)
        self.states[root] = tokens
        self.computed.add(root)
        self.feed(StateComputed(command.round, root, command.attempt, tokens))

    def do_sync(self, command: Sync) -> None:
        if not self.due(command, self.slow):
            return
        if command.root == INITIAL_ROOT:
            self.states[INITIAL_ROOT] = 0
        elif command.root not in self.states:
            found = [self.world.host_of(a) for a in command.holders]
            tokens = [s.states[command.root] for s in found if s is not None and s.gives_state(command.root)]
            if not tokens:
                return
            self.world.counts["state synced"] += 1
            self.states[command.root] = tokens[0]
        self.feed(StateSynced(command.root, self.states[command.root]))

    def gives_state(self, root: Digest) -> bool:
        return self.up and root in self.states

    def finals(self) -> dict[int, tuple[Digest | None, Digest]]:
        """Every final round that this host knows of -> (base root, root); None for the base of one behind a gap."""
        settled = [event.roster.settled for event in self.journal if isinstance(event, Resumed)]
        known: dict[int, tuple[Digest | None, Digest]] = {s.number: (None, s.root) for s in settled if s is not None}
        seen = {s.round: (s.base_root, s.root) for s in self.summaries.values() if s.root is not None}
        return {**known, **seen}

    def do_keep(self, command: Keep) -> None:
        here = {number: roots for number, roots in self.finals().items() if roots[1] in self.states}
        if here:
            last = max(here)
            wanted = {root for root in here[last] if root is not None and root in self.states}
            if not wanted <= set(command.roots) or command.blobs_from > last:
                raise Broken(f"{self.plan.name}: round {last} is final and here, and its bytes may go already")
        self.states = {r: t for r, t in self.states.items() if r in command.roots}
        self.blobs = {c: r for c, r in self.blobs.items() if r >= command.blobs_from}
