"""Absence, drops and the way back (docs/protocol.md 3); the examples at the end of that chapter."""

from __future__ import annotations

from round_world import Reader, World, address, join, next_root, params

from gonka_trainer.round.commands import Apply, Halt, Sync, Train
from gonka_trainer.round.records import Join
from gonka_trainer.round.summary import Outcome, Phase
from gonka_trainer.types import Digest, sha256


def _absence(reader: Reader, n: int) -> int:
    return reader.state.membership.standing(address(n)).absence


def _open(members: int = 3, **changes: int) -> Reader:
    reader = Reader(params(members, **changes))
    reader.open_with(*range(1, members + 1))
    return reader


def test_dropped_after_absent_rounds_final_rounds() -> None:
    reader = _open()
    for expected in (1, 2):
        assert reader.play(1, 2).outcome is Outcome.FINAL
        assert _absence(reader, 3) == expected
        assert len(reader.current.roster.seats) == 3
    reader.play(1, 2)
    assert [s.participant for s in reader.current.roster.seats] == [address(1), address(2)]
    assert any(text.startswith("dropped") for text in reader.texts)


def test_a_void_round_grows_no_absence() -> None:
    reader = _open()
    reader.play(1, 2)
    for _ in range(5):
        assert reader.play(1).outcome is Outcome.VOID
    assert (_absence(reader, 2), _absence(reader, 3)) == (0, 1)


def test_a_commit_that_counts_ends_absence_even_in_a_void_round() -> None:
    reader = _open()
    reader.play(1, 2)
    reader.play(1, 2)
    reader.play(3)
    assert _absence(reader, 3) == 0


def test_a_join_that_counts_ends_absence() -> None:
    reader = _open()
    reader.play(1, 2)
    reader.play(1, 2)
    reader.block((address(3), join(address(3), reader.now)))
    assert _absence(reader, 3) == 0
    reader.play(1, 2)
    assert _absence(reader, 3) == 1
    assert len(reader.current.roster.seats) == 3


def _at_the_last_root(reader: Reader) -> None:
    """Bring the third final round without participant 3 to where only the roots are missing."""
    reader.play(1, 2)
    reader.play(1, 2)
    reader.block(*reader.commits(1, 2))
    while reader.current.closed is None:
        reader.block()
    reader.block(*reader.attests((1, 2), 1, 2))


def test_a_join_in_the_ending_block_comes_before_the_drop() -> None:
    reader = _open()
    _at_the_last_root(reader)
    reader.block(*reader.roots("r", 1, 2), (address(3), join(address(3), reader.now)))
    assert _absence(reader, 3) == 1
    assert len(reader.current.roster.seats) == 3


def test_only_a_join_in_a_later_block_brings_a_dropped_one_back() -> None:
    reader = _open(absent_rounds=2)
    reader.play(1, 2)
    reader.play(1, 2)
    assert len(reader.current.roster.seats) == 2
    ended = reader.summaries[-1].ended
    record: Join = join(address(3), ended - 1)  # written before the drop, seen after it
    reader.block((address(3), record))
    reader.play(1, 2)
    assert len(reader.current.roster.seats) == 3
    assert _absence(reader, 3) == 0


def test_each_participant_is_counted_on_its_own() -> None:
    reader = _open(5, min_weight=3)
    reader.play(1, 2, 3)
    reader.play(1, 2, 3, 4)
    reader.play(1, 2, 3, 5)
    assert (_absence(reader, 4), _absence(reader, 5)) == (1, 0)
    assert len(reader.current.roster.seats) == 5


def test_example_one_dead() -> None:
    world = World(params(3), (1, 2, 3))
    world.until(lambda: world.hosts[1].state.round == 1)
    world.hosts[3].up = False
    world.until(lambda: world.hosts[1].state.round == 4)
    told = world.hosts[1].summaries[1:]
    assert [s.outcome for s in told] == [Outcome.FINAL] * 3
    for s in told:
        assert s.closed == s.deadline + 4
        assert s.included == (address(1), address(2))
    current = world.hosts[1].state.current
    assert current is not None
    assert (len(current.roster.seats), current.roster.weight) == (2, 2)
    world.hosts[3].up = True
    world.until(lambda: world.hosts[3].state.round == 7)
    assert world.hosts[3].summaries == world.hosts[1].summaries
    assert address(3) in world.hosts[1].summaries[-1].included


def _junk(command: Apply) -> Digest:
    return sha256(b"junk", next_root(command))


def test_example_one_liar_of_three() -> None:
    world = World(params(3), (1, 2, 3))
    for n in (1, 2):
        world.hosts[n].reachable = lambda _round, participant: participant != address(3)
    world.hosts[3].reachable = lambda _round, _participant: False
    world.hosts[3].root_of = _junk
    world.until(lambda: world.hosts[1].state.round == 3)
    for told in world.hosts[1].summaries:
        assert told.included == (address(1), address(2))
        assert told.outcome is Outcome.FINAL
    assert world.hosts[1].summaries == world.hosts[2].summaries == world.hosts[3].summaries


def test_example_four_liars_of_ten_attest_only_each_other() -> None:
    world = World(params(10, min_weight=9), range(1, 11))
    liars = {address(n) for n in (7, 8, 9, 10)}
    for n, host in world.hosts.items():
        host.reachable = lambda _round, participant, lies=n > 6: (participant in liars) == lies
    world.until(lambda: world.hosts[1].state.round == 2)
    for told in world.hosts[1].summaries:
        assert told.included == tuple(address(n) for n in range(1, 7))
        assert told.outcome is Outcome.FINAL


def test_example_two_of_three_dead_until_one_returns() -> None:
    world = World(params(3), (1, 2, 3))
    world.until(lambda: world.hosts[1].state.round == 1)
    world.hosts[2].up = world.hosts[3].up = False
    world.until(lambda: world.hosts[1].state.round == 5)
    assert [s.outcome for s in world.hosts[1].summaries[1:]] == [Outcome.VOID] * 4
    assert world.hosts[1].state.final_root == world.hosts[1].summaries[0].root
    world.hosts[2].up = True
    world.until(lambda: world.hosts[1].summaries[-1].outcome is Outcome.FINAL)


def test_a_host_that_computed_another_root_recomputes_once_and_stops() -> None:
    world = World(params(3), (1, 2, 3))
    world.hosts[3].root_of = _junk
    world.until(lambda: world.hosts[1].state.round == 2)
    host = world.hosts[3]
    assert any(isinstance(c, Halt) for c in host.wanted)
    assert not any(isinstance(c, Sync | Train | Apply) for c in host.wanted)
    assert host.state.phase is not Phase.WAITING
    assert world.hosts[1].summaries[0].root not in host.state.own.states


def test_a_host_that_computes_right_at_its_second_try_goes_on() -> None:
    world = World(params(3), (1, 2, 3))
    world.hosts[3].root_of = lambda c: next_root(c) if c.attempt else _junk(c)
    world.until(lambda: world.hosts[1].state.round == 3)
    host = world.hosts[3]
    assert host.state.own.dispute is None
    assert world.hosts[1].summaries[0].root != world.hosts[1].summaries[0].posts[2].root
    assert host.state.final_root in host.state.own.states


def test_a_host_that_got_a_blob_too_late_adopts_the_final_root() -> None:
    world = World(params(3), (1, 2, 3))
    world.hosts[3].reachable = lambda number, participant: number != 0 or participant != address(1)
    world.until(lambda: world.hosts[1].state.round == 1)
    world.block()
    host = world.hosts[3]
    assert host.summaries[0].included == (address(1), address(2), address(3))
    assert host.state.final_root in host.state.own.states
    world.until(lambda: world.hosts[1].state.round == 2)
    assert address(3) in world.hosts[1].summaries[1].included
