"""`step` over random event sequences: total, deterministic, and blind to what must not matter."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pytest
import round_fuzz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from round_fuzz import Fuzz
from round_strategies import NEARBY, OWN_EVENTS, PEOPLE, RECORDS, ROOT
from round_world import Reader, Said, World, address, block_hash, join, params

from gonka_trainer.round import machine
from gonka_trainer.round.bitmap import pack, unpack
from gonka_trainer.round.commands import Apply, Keep, ProvePossession, Publish, ReadEnvironment, Sync, Train
from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.round.events import (
    BlobHeld,
    BlockSeen,
    EnvironmentRead,
    Event,
    PossessionProved,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import Attest, Commit, PlacedRecord, Record, StateRoot, encode_record
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Outcome, Phase
from gonka_trainer.types import Digest, Height

RULES = st.builds(
    lambda members, changes: params(members, **changes),
    st.sampled_from([None, 3, 4]),
    st.fixed_dictionaries(
        {
            "min_weight": st.integers(0, 4),
            "start_height": st.integers(0, 3),
            "log_height": st.integers(0, 2),
            "train_blocks": st.integers(0, 3),
            "commit_blocks": st.integers(0, 3),
            "attest_blocks": st.integers(0, 3),
            "extensions": st.integers(0, 1),
            "state_blocks": st.integers(0, 3),
            "absent_rounds": st.integers(1, 3),
            "exclusion_rounds": st.integers(0, 2),
            "challenge_blocks": st.integers(0, 2),
            "roster_limit": st.sampled_from([2, 1024]),
            "rounds": st.sampled_from([0, 0, 3]),
            "tokens": st.sampled_from([0, 0, 150]),
        }
    ),
)
LOCALS = st.sampled_from(
    [Local(None, None), Local(address(1), address(1)), Local(address(2), address(3)), Local(address(1), None)]
)


def _helpful(state: CoreState, draw: st.DataObject) -> Record:
    """A record that is likely to count now."""
    current = state.current
    if current is None:
        return join(draw.draw(PEOPLE), state.height + len(state.queue) + 1)
    if current.closed is None:
        return Commit(current.number, draw.draw(ROOT))
    if current.frozen is None:
        count = len(current.committers)
        positions = draw.draw(st.sets(st.integers(0, count - 1))) if count else set()
        return Attest(current.number, current.list_digest, bytes(16), pack(positions, count))
    return StateRoot(current.number, draw.draw(ROOT), Digest(bytes(32)), current.roster.digest)


def _block(state: CoreState, draw: st.DataObject) -> BlockSeen:
    height = Height(state.height + len(state.queue) + 1)
    said = []
    for _ in range(draw.draw(st.integers(0, 5))):
        kind = draw.draw(st.integers(0, 3))
        record = draw.draw(RECORDS if kind == 0 else NEARBY) if kind < 2 else _helpful(state, draw)
        author = draw.draw(PEOPLE)
        if kind == 3 and state.current is None:
            record = join(author, height)
        said.append((author, record))
    return BlockSeen(height, block_hash(height), _placed(said))


def _placed(said: list[Said]) -> tuple[PlacedRecord, ...]:
    return tuple(PlacedRecord(i, 0, author, record) for i, (author, record) in enumerate(said))


def _answer(wanted: object, draw: st.DataObject) -> Event | None:
    match wanted:
        case ReadEnvironment(height, _):
            weights = tuple((address(n), draw.draw(st.integers(1, 4))) for n in range(1, 5))
            return EnvironmentRead(height, Environment(NO_EPOCHS, weights))
        case Train(number, _, _, _, _):
            return UpdateReady(number, draw.draw(ROOT))
        case ProvePossession(number, _, participants):
            return PossessionProved(number, participants, bytes(16))
        case Apply(number, _, included, attempt):
            del included
            return StateComputed(number, draw.draw(ROOT), attempt, draw.draw(st.integers(0, 200)))
        case Sync(root, _):
            return StateSynced(root, draw.draw(st.integers(0, 200)))
        case _:
            number, participant = getattr(wanted, "round", None), getattr(wanted, "participant", None)
            return (
                None
                if number is None or participant is None
                else BlobHeld(number, participant, draw.draw(st.booleans()))
            )


def _next_event(state: CoreState, wanted: tuple[object, ...], draw: st.DataObject) -> Event:
    kind = draw.draw(st.integers(0, 9))
    if kind == 0:
        return draw.draw(OWN_EVENTS)
    if kind == 1:
        height = Height(draw.draw(st.integers(-1, 40)))
        return BlockSeen(height, block_hash(height), ())
    if kind < 6 and (answers := [e for c in wanted if (e := _answer(c, draw)) is not None]):
        return draw.draw(st.sampled_from(answers))
    return _block(state, draw)


def _check(rules: RoundParams, state: CoreState, commands: tuple[object, ...]) -> None:
    """What holds in every state."""
    assert sum(isinstance(c, Keep) for c in commands) == 1
    assert len(set(map(repr, commands))) == len(commands)
    for command in commands:
        if isinstance(command, Publish):
            assert state.own.caught_up
            assert len(encode_record(command.record)) <= 192
            assert state.height < command.until
    current = state.current
    if current is not None:
        assert current.opened <= state.height + 1
        assert current.deadline >= current.opened
        assert set(current.commits) <= set(current.roster.voices)
        assert current.base_root == state.final_root
        assert current.number == state.round == state.own.work.number
        assert len(current.support) == len(current.committers)
        assert current.roster.weight == sum(seat.weight for seat in current.roster.seats)
    assert (state.phase is Phase.WAITING) == (current is None and not state.ended)
    last = state.last
    if last is not None and last.outcome is Outcome.FINAL:
        assert sum(seat.weight for seat in last.roster) >= rules.min_weight


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(RULES, LOCALS, st.data())
def test_step_is_total_and_replay_gives_the_same(rules: RoundParams, local: Local, draw: st.DataObject) -> None:
    start = state = machine.initial(rules, local)
    journal, wanted = [], machine.commands(rules, local, state)
    for _ in range(draw.draw(st.integers(0, 60))):
        event = _next_event(state, wanted, draw)
        journal.append(event)
        state, wanted = machine.step(rules, local, state, event)
        _check(rules, state, wanted)
        assert machine.commands(rules, local, state) == wanted
    again, last = start, machine.commands(rules, local, start)
    for event in journal:
        again, last = machine.step(rules, local, again, event)
    assert (again, last) == (state, wanted)


@pytest.mark.parametrize("seed", range(60))
def test_long_runs_keep_what_always_holds(seed: int) -> None:
    rng = Random(seed)
    rules, fuzz = round_fuzz.rules(rng), Fuzz(rng)
    member, observer = Local(address(1), address(1)), Local(None, None)
    state, plain = machine.initial(rules, member), machine.initial(rules, observer)
    wanted = machine.commands(rules, member, state)
    journal: list[Event] = []
    for _ in range(250):
        event = fuzz.event(state, wanted)
        journal.append(event)
        state, wanted = machine.step(rules, member, state, event)
        _check(rules, state, wanted)
        if rules.tokens == 0 and isinstance(event, BlockSeen | EnvironmentRead):
            plain, _ = machine.step(rules, observer, plain, event)
            assert _chain_view(state) == _chain_view(plain)
    again = machine.initial(rules, member)
    for event in journal:
        again, _ = machine.step(rules, member, again, event)
    assert again == state


def _chain_view(state: CoreState) -> CoreState:
    return replace(state, own=machine.initial(params(), Local(None, None)).own, notes=())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(RULES.map(lambda rules: replace(rules, tokens=0)), st.data())
def test_what_a_host_does_itself_changes_nothing_of_the_chains_part(rules: RoundParams, draw: st.DataObject) -> None:
    """A busy member and an observer that see the same blocks and environments tell the same story."""
    member, observer = Local(address(1), address(1)), Local(None, None)
    busy, plain = machine.initial(rules, member), machine.initial(rules, observer)
    wanted = machine.commands(rules, member, busy)
    for _ in range(draw.draw(st.integers(0, 50))):
        event = _next_event(busy, wanted, draw)
        busy, wanted = machine.step(rules, member, busy, event)
        if isinstance(event, BlockSeen | EnvironmentRead):
            plain, _ = machine.step(rules, observer, plain, event)
        assert _chain_view(busy) == _chain_view(plain)


@given(st.permutations(range(5)))
def test_the_order_of_joins_of_different_authors_does_not_matter(order: list[int]) -> None:
    seats = []
    for numbers in (range(5), order):
        reader = Reader(params(5))
        reader.block(*((address(n + 1), join(address(n + 1), 1)) for n in numbers))
        reader.skip_to(3)
        seats.append(reader.current.roster.seats)
    assert seats[0] == seats[1]


@settings(deadline=None)
@given(st.lists(st.permutations(range(8)), min_size=3, max_size=3))
def test_the_order_of_independent_records_in_a_block_does_not_matter(orders: list[list[int]]) -> None:
    told = []
    for chosen in ([list(range(8))] * 3, orders):
        reader = Reader(params(4))
        reader.open_with(1, 2, 3, 4)
        for order, make in zip(chosen, (_commits, _attests, _roots), strict=True):
            said = make(reader)
            reader.block(*(said[i] for i in order))
        told.append(reader.summaries[0])
    assert told[0] == told[1]
    assert told[0].outcome is Outcome.FINAL


def _commits(reader: Reader) -> tuple[Said, ...]:
    return (*reader.commits(1, 2, 3, 4), *reader.commits(5, 6, 7, 8))


def _attests(reader: Reader) -> tuple[Said, ...]:
    return (*reader.attests((1, 2), 1, 2, 3, 4), *reader.attests((3, 4), 1, 2, 3, 4))


def _roots(reader: Reader) -> tuple[Said, ...]:
    return (*reader.roots("a", 1, 2, 3), *reader.roots("b", 4), *reader.roots("b", 5, 6, 7, 8))


@given(st.integers(0, 40), st.data())
def test_bitmaps_survive_the_way_there_and_back(count: int, draw: st.DataObject) -> None:
    positions = draw.draw(st.frozensets(st.integers(0, count - 1))) if count else frozenset()
    assert unpack(pack(positions, count), count) == positions
    assert len(pack(positions, count)) == -(-count // 8)


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_restart_from_the_journal_at_any_moment_goes_on_alike(cut: int) -> None:
    world = World(params(3, rounds=3), (1, 2, 3))
    for _ in range(60):
        if len(world.blocks) == cut:
            host = world.hosts[2]
            journal = list(host.journal)
            host.state = machine.initial(host.params, host.local)
            for event in journal:
                host.state, host.wanted = machine.step(host.params, host.local, host.state, event)
        world.block()
    told = world.hosts[1].summaries
    assert [s.outcome for s in told] == [Outcome.FINAL] * 3
    assert world.hosts[2].state.last == told[-1]
    assert not any("equivocation" in text for text in world.hosts[1].texts)


def test_hosts_that_crash_by_turns_never_disagree() -> None:
    world = World(params(4, min_weight=3), (1, 2, 3, 4))
    turns = itertools.cycle((1, 2, 3, 4))
    for block in range(240):
        if block % 17 == 0:
            for host in world.hosts.values():
                host.up = True
            world.hosts[next(turns)].up = False
        world.block()
    for host in world.hosts.values():
        host.up = True
    world.run(3)
    first = world.hosts[1]
    assert sum(s.outcome is Outcome.FINAL for s in first.summaries) >= 8
    for host in world.hosts.values():
        assert host.summaries == first.summaries
        assert host.state.final_root == first.state.final_root
