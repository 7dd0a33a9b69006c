"""A core that starts from a checkpoint beside one that read everything: the same rounds and wishes to the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gonka_trainer.round.commands import (
    Apply,
    Command,
    Fetch,
    Halt,
    Keep,
    ProvePossession,
    Publish,
    ReadEnvironment,
    Serve,
    Sync,
    Train,
)
from gonka_trainer.round.environment import encode_environment, environment_digest
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
from gonka_trainer.round.machine import commands, from_checkpoint, initial, step
from gonka_trainer.round.params import Local
from gonka_trainer.round.resuming import checkpoint_of, resumed
from gonka_trainer.round.roster_bytes import decode_roster
from gonka_trainer.round.summary import Outcome
from gonka_trainer.types import Digest, sha256, u32

from .host import included_root
from .plan import Plan
from .seeds import plan_of
from .world import World


class Core:
    """A core and a driver that answers every wish at once, always alike."""

    def __init__(self, world: World, local: Local, state: Any) -> None:
        self.world, self.plan, self.local, self.state = world, world.plan, local, state
        self.wanted = commands(self.plan.params, local, state)

    def tell(self, event: Event) -> None:
        self.state, self.wanted = step(self.plan.params, self.local, self.state, event)

    def block(self, block: BlockSeen, acts: bool) -> None:
        """Read a block; who `acts` answers all that is wanted then, who does not only reads environments."""
        self.tell(block)
        if acts:
            self.tell(CaughtUp(block.height))
        answered: set[Command] = set()
        while wanted := [c for c in self.wanted if c not in answered and (acts or isinstance(c, ReadEnvironment))]:
            answered.add(wanted[0])
            event = self.answer(wanted[0])
            if event is not None:
                self.tell(event)

    def reads(self, block: BlockSeen) -> bool:
        """Read a block without acting; whether a round is open then."""
        self.block(block, acts=False)
        return self.state.current is not None

    def answer(self, command: Command) -> Event | None:
        match command:
            case ReadEnvironment(height, _):
                return EnvironmentRead(height, self.plan.epochs.at(height))
            case Train(number, base, _, _, _):
                return UpdateReady(number, sha256(b"mine", u32(number), base))
            case Fetch(number, who, commitment, _, _):
                return BlobHeld(number, who, self.good(commitment))
            case ProvePossession(number, _, who):
                return PossessionProved(number, who, bytes(16))
            case Apply(number, base, included, attempt):
                root = included_root(base, [(who, c) for who, c, _ in included if self.good(c)])
                return StateComputed(number, root, attempt, number)
            case Halt():
                raise AssertionError(command)
            case Sync(root, _):
                return StateSynced(root, 1)
        return None

    def good(self, commitment: Digest) -> bool:
        return commitment in self.world.blobs and self.world.blobs[commitment].form_good


def protocol(state: Any) -> tuple[Any, ...]:
    """What all hosts must agree on; of the last final round as much as the next rounds start from."""
    final, current = state.final, state.current
    return (
        state.height,
        state.round,
        state.membership,
        None if current is None else replace(current, frozen_environment=None),
        state.need,
        state.queue,
        state.final_root,
        None if final is None else (final.number, final.root, final.environment_digest, final.environment),
        state.ended,
        state.phase,
    )


def wishes(wanted: tuple[Command, ...]) -> list[Command]:
    """What is wanted, but for bytes of rounds before the checkpoint and who has them."""
    kept = [c for c in wanted if not isinstance(c, Keep | Serve)]
    return [Sync(c.root, ()) if isinstance(c, Sync) else c for c in kept]


def documents(plan: Plan) -> dict[Digest, bytes]:
    found = [plan.epochs.at(height) for height in range(plan.blocks + 1)]
    return {environment_digest(e): encode_environment(e) for e in found}


def compared(seed: int, every: int, first: int = 0) -> int:
    """Start a second core at every so many openings of a world; the number of final rounds that both then saw."""
    plan = plan_of(seed)
    world = World(plan).run()
    someone = plan.hosts[0]
    local, rules = Local(someone.participant, someone.key), plan.params
    blocks = [b for b in world.chain.blocks if b.height >= rules.log_height]
    final = 0
    for preimage in list(world.checkpoints)[first::every]:
        covered = decode_roster(preimage)
        full = Core(world, local, initial(rules, local))
        for block in blocks:
            if block.height <= covered.last_height:
                full.block(block, acts=False)
        event = resumed(rules, checkpoint_of(rules, covered), preimage, documents(plan))
        start = Core(world, local, from_checkpoint(rules, local, event))
        assert protocol(start.state) == protocol(full.state)
        final += read_on(full, start, [b for b in blocks if b.height > covered.last_height])
    return final


def read_on(full: Core, start: Core, blocks: list[BlockSeen]) -> int:
    final: set[int] = set()
    for block in blocks:
        full.block(block, acts=True)
        start.block(block, acts=True)
        assert protocol(start.state) == protocol(full.state)
        assert wishes(start.wanted) == wishes(full.wanted)
        last = start.state.last
        assert last is None or last == full.state.last
        if last is not None and last.outcome is Outcome.FINAL:
            final.add(last.round)
        if len(final) > 1 and full.state.final.root in full.state.own.states:
            assert start.state == full.state, block.height
            assert start.wanted == full.wanted
    return len(final)


def test_a_start_from_a_checkpoint_is_as_good_as_having_read_everything() -> None:
    assert sum(compared(seed, every=3) for seed in range(12)) > 100


def test_a_start_at_a_round_that_is_drawn_from_another_environment_than_the_final_one() -> None:
    assert compared(17, every=100, first=6) > 1


def test_a_host_without_memory_says_nothing_in_the_round_that_is_open() -> None:
    plan = plan_of(3)
    world = World(plan).run()
    someone = plan.hosts[0]
    local = Local(someone.participant, someone.key)
    core, spoke = Core(world, local, initial(plan.params, local)), set()
    blocks = [b for b in world.chain.blocks if b.height >= plan.params.log_height]
    joined = next(b.height for b in blocks if core.reads(b) and local.key in core.state.current.roster.keys)
    open_round = core.state.round
    for block in blocks[joined + 1 - plan.params.log_height :]:
        core.block(block, acts=True)
        spoke |= {c.round for c in core.wanted if isinstance(c, Train)}
        spoke |= {c.record.round for c in core.wanted if isinstance(c, Publish)}
    assert spoke
    assert min(spoke) > open_round


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_opening_of_many_worlds_is_a_good_start() -> None:
    assert sum(compared(seed, every=1) for seed in range(12, 200)) > 5000
