"""The roster's bytes as a strict pair, and going on from a checkpoint (docs/protocol.md 3)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_fuzz import Fuzz, rules
from round_strategies import ADDRESS, DIGEST, HEIGHT, ROLE, U16, U32, U64
from round_world import INITIAL, Reader, address, digest, join, params

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import machine
from gonka_trainer.round.commands import Keep, Publish, Sync, Train
from gonka_trainer.round.environment import NO_EPOCHS, Environment, encode_environment, environment_digest
from gonka_trainer.round.events import CaughtUp, Resumed, StateSynced, UpdateReady
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Segment, Standing
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import Join
from gonka_trainer.round.resuming import Checkpoint, checkpoint_of, needed, refusal, resumed
from gonka_trainer.round.roster_bytes import RosterState, Settled, decode_roster, encode_roster, roster_digest
from gonka_trainer.round.summary import Seat
from gonka_trainer.types import Address, Digest, Height

ME = Local(address(1), address(1))
PLACE = st.builds(Place, U64, U32, U32)
SEGMENT = st.builds(Segment, ADDRESS, U32, U32)
JOIN = st.builds(Join, ADDRESS, ROLE, DIGEST, st.binary(max_size=64), U16, st.binary(max_size=24), U64)
STANDING = st.builds(Standing, st.none(), st.none() | ADDRESS, U64, PLACE, PLACE, PLACE, U64, U32, st.none() | U32)
U8 = st.integers(0, 255)


@st.composite
def _members(draw: st.DrawFn) -> Membership:
    """Any membership whose speakers' last joins name their participants."""
    keys = draw(st.dictionaries(ADDRESS, st.builds(KeyEntry, U64, st.none() | JOIN, PLACE), max_size=4))
    people = draw(st.dictionaries(ADDRESS, STANDING, max_size=3))
    for key, entry in keys.items():
        if entry.join is not None and draw(st.booleans()):
            who = entry.join.participant
            people[who] = replace(people.get(who, Standing()), speaker=key)
    return Membership(
        keys=keys,
        participants=people,
        ever=frozenset(draw(st.lists(ADDRESS, max_size=3))),
        verdicts=draw(st.dictionaries(st.tuples(ADDRESS, SEGMENT), st.tuples(U8, DIGEST), max_size=3)),
        tallied=frozenset(draw(st.lists(st.tuples(SEGMENT, U8), max_size=3))),
        challenges=draw(st.dictionaries(st.tuples(ADDRESS, SEGMENT), U64, max_size=3)),
    )


SEATS = st.dictionaries(ADDRESS, st.tuples(U64, st.booleans()), max_size=4).map(
    lambda d: tuple(Seat(who, *rest) for who, rest in sorted(d.items()))
)
STATES = st.builds(
    RosterState, U32, U64, DIGEST, st.none() | st.builds(Settled, U32, DIGEST, DIGEST), SEATS, _members()
)


@given(STATES)
def test_a_roster_is_read_as_it_was_written(state: RosterState) -> None:
    assert decode_roster(encode_roster(state)) == state


@given(STATES, st.data())
def test_changed_bytes_are_another_roster_or_none(state: RosterState, data: st.DataObject) -> None:
    good = encode_roster(state)
    at = data.draw(st.integers(0, len(good)))
    changed = good[:at] + data.draw(st.binary(max_size=3)) + good[at + data.draw(st.integers(0, 3)) :]
    try:
        found = decode_roster(changed)
    except DecodeError:
        return
    assert encode_roster(found) == changed


@given(st.binary(max_size=300))
def test_any_bytes_are_a_roster_or_a_decode_error(data: bytes) -> None:
    try:
        found = decode_roster(data)
    except DecodeError:
        return
    assert encode_roster(found) == data


def test_every_roster_of_long_random_runs_is_read_as_it_was_written() -> None:
    seen: set[bytes] = set()
    for seed in range(20):
        rng = Random(f"checkpoint {seed}")
        chosen, fuzz = rules(rng), Fuzz(rng)
        state, wanted = machine.initial(chosen, ME), ()
        for _ in range(300):
            state, wanted = machine.step(chosen, ME, state, fuzz.event(state, wanted))
            if state.current is not None:
                seen.add(state.current.roster.preimage)
    assert len(seen) > 100
    assert all(encode_roster(decode_roster(preimage)) == preimage for preimage in seen)


def _run(final: int = 1, **changes: int) -> Reader:
    """A reader at the opening of round `final`."""
    reader = Reader(params(3, **changes))
    reader.environment = Environment(NO_EPOCHS, ((address(9), 1),))
    reader.open_with(1, 2, 3)
    for _ in range(final):
        reader.play(1, 2, 3)
    return reader


def _documents(*environments: Environment) -> dict[Digest, bytes]:
    return {environment_digest(e): encode_environment(e) for e in environments}


def _event(reader: Reader) -> Resumed:
    preimage = reader.current.roster.preimage
    checkpoint = checkpoint_of(reader.params, decode_roster(preimage))
    return resumed(reader.params, checkpoint, preimage, _documents(reader.environment))


def _begin(rules_: RoundParams, event: Resumed, local: Local = ME) -> Reader:
    """A reader that begins with the checkpoint."""
    reader = Reader(rules_, local)
    reader.tell(event)
    reader.next_height = event.roster.last_height + 1
    return reader


def test_a_checkpoint_names_height_round_root_and_both_digests() -> None:
    reader = _run()
    covered = decode_roster(reader.current.roster.preimage)
    found = checkpoint_of(reader.params, covered)
    final = reader.state.final
    assert final is not None
    assert found == Checkpoint(
        Height(reader.current.opened - 1), 1, digest("root 0"), final.environment_digest, reader.current.roster.digest
    )
    assert needed(covered) == (final.environment_digest,)


def test_before_the_first_final_round_the_root_is_the_manifests() -> None:
    reader = _run(0)
    covered = decode_roster(reader.current.roster.preimage)
    assert checkpoint_of(reader.params, covered).root == INITIAL
    start = _begin(reader.params, _event(reader))
    assert (start.state.final, start.current) == (None, reader.current)
    assert start.play(1, 2, 3).root == digest("root 0")


def test_a_start_goes_on_as_who_read_everything() -> None:
    reader = _run()
    start = _begin(reader.params, _event(reader), reader.local)
    start.environment = reader.environment
    for _ in range(2):
        assert start.play(1, 2, 3) == reader.play(1, 2, 3)
    assert replace(start.state, own=reader.state.own) == reader.state


@pytest.mark.parametrize("field", ["height", "round", "root", "environment", "roster"])
def test_a_checkpoint_that_says_something_else_is_refused(field: str) -> None:
    reader = _run()
    preimage = reader.current.roster.preimage
    good = checkpoint_of(reader.params, decode_roster(preimage))
    value = digest("other") if isinstance(getattr(good, field), bytes) else getattr(good, field) + 1
    with pytest.raises(DecodeError):
        resumed(reader.params, replace(good, **{field: value}), preimage, _documents(reader.environment))


def test_wrong_preimages_are_refused() -> None:
    reader = _run()
    preimage, other = reader.current.roster.preimage, Environment(NO_EPOCHS, ())
    good = checkpoint_of(reader.params, decode_roster(preimage))
    absent = decode_roster(preimage).members.with_standing(address(1), Standing(speaker=address(1), absence=1))
    with pytest.raises(DecodeError, match="roster"):
        resumed(reader.params, good, encode_roster(replace(decode_roster(preimage), members=absent)), {})
    for documents in ({}, _documents(other), {good.environment: encode_environment(other)}):
        with pytest.raises(DecodeError, match="environment"):
            resumed(reader.params, good, preimage, documents)


def test_a_checkpoint_of_other_rules_is_refused() -> None:
    reader = _run()
    heavier = replace(reader.params, equal_members=(address(1), address(2)))
    with pytest.raises(DecodeError, match="rules"):
        machine.from_checkpoint(heavier, ME, _event(reader))
    event = _event(reader)
    assert machine.from_checkpoint(reader.params, ME, event).round == 1
    for wrong in (replace(event, final=None), replace(event, final=Environment(NO_EPOCHS, ()))):
        assert "final" in refusal(reader.params, machine.initial(reader.params, ME), wrong)


def test_seats_that_the_rules_do_not_draw_are_refused() -> None:
    reader, event = _run(), _event(_run())
    seats = tuple(replace(seat, weight=seat.weight + 1) for seat in event.roster.seats)
    wrong = replace(event, roster=replace(event.roster, seats=seats))
    start = _begin(reader.params, wrong)
    assert start.state.height == 0
    assert "of no use" in start.texts[0]


def test_the_state_is_fetched_from_the_roster_and_nothing_said_in_the_open_round() -> None:
    reader = _run()
    start = _begin(reader.params, _event(reader))
    start.environment = reader.environment
    start.tell(CaughtUp(start.state.height))
    assert [c for c in start.wanted if isinstance(c, Sync)] == [Sync(digest("root 0"), (address(2), address(3)))]
    start.tell(StateSynced(digest("root 0"), 5))
    assert not any(isinstance(c, Train | Publish) for c in start.wanted)
    start.play(2, 3)
    start.tell(StateSynced(digest("root 1"), 6))
    assert [c.round for c in start.wanted if isinstance(c, Train)] == [2]


def _host(rounds: int) -> Reader:
    """A member that has taken part, and has spoken in the round that is open."""
    reader = Reader(params(3), ME)
    reader.environment = Environment(NO_EPOCHS, ((address(9), 1),))
    reader.tell(StateSynced(INITIAL, 0))
    reader.tell(CaughtUp(Height(0)))
    reader.open_with(1, 2, 3)
    for _ in range(rounds):
        reader.play(1, 2, 3)
    reader.tell(UpdateReady(reader.state.round, digest("mine")))
    return reader


def test_a_gap_in_a_journal_is_closed_by_a_later_checkpoint() -> None:
    host, event = _host(1), _event(_run(3))
    assert refusal(host.params, host.state, event) == ""
    before = host.state.own
    host.tell(event)
    own = host.state.own
    assert (host.state.round, host.state.height) == (3, event.roster.last_height)
    assert (own.caught_up, own.speaks_from, own.work.commitment, own.work.number) == (False, None, None, 3)
    assert (own.anchor, own.states) == (before.anchor, before.states)
    host.next_height = event.roster.last_height + 1
    assert host.play(2, 3).round == 3


@pytest.mark.parametrize("final", [0, 1, 2])
def test_a_checkpoint_of_what_was_read_already_changes_nothing(final: int) -> None:
    host, event = _host(2), _event(_run(final))
    before = host.state
    assert "has read to block" in refusal(host.params, host.state, event)
    host.tell(event)
    assert replace(host.state, notes=()) == replace(before, notes=())


def test_a_checkpoint_of_a_round_in_which_the_host_may_have_spoken_is_refused() -> None:
    host, event = _host(2), _event(_run(2))
    later = replace(event, roster=replace(event.roster, last_height=Height(event.roster.last_height + 50)))
    assert "spoken" in refusal(host.params, host.state, later)


def test_a_run_that_is_over_here_takes_no_checkpoint() -> None:
    reader, event = _run(2, rounds=2), _event(_run(1, rounds=2))
    assert refusal(reader.params, reader.state, event) == "the run is over here"


def test_blocks_that_wait_for_an_environment_are_kept_behind_the_checkpoint() -> None:
    """The node has lost the environment of the opening, not the blocks after it."""
    other = _run(0)
    host = Reader(params(3), ME)
    host.hold = True
    host.environment = other.environment
    host.block(*((address(n), join(address(n), 1)) for n in (1, 2, 3)))
    host.skip_to(5)
    assert (host.state.need is not None, host.state.height, len(host.state.queue)) == (True, 3, 2)
    host.tell(_event(other))
    assert (host.state.need, host.state.height, host.state.queue) == (None, 5, ())
    assert host.current.roster == other.current.roster


def test_a_start_looks_for_the_end_by_tokens_even_after_void_rounds() -> None:
    other = _run(1, tokens=100)
    other.play()  # nobody speaks: void
    start = _begin(other.params, _event(other), Local(None, None))
    start.tell(CaughtUp(start.state.height))
    assert [c.root for c in start.wanted if isinstance(c, Sync)] == [digest("root 0")]
    start.tell(StateSynced(digest("root 0"), 100))
    assert (start.state.ended, start.state.round, start.state.final_root) == (True, 1, digest("root 0"))


def test_a_digest_is_of_the_tag_and_the_bytes() -> None:
    reader = _run()
    assert roster_digest(reader.current.roster.preimage) == reader.current.roster.digest
    assert isinstance(Address(bytes(20)), bytes)


@given(HEIGHT)
def test_the_first_word_is_of_a_round_that_opens_after_the_tip_was_reached(height: int) -> None:
    reader = Reader(params(3), ME)
    reader.tell(StateSynced(INITIAL, 0))
    reader.open_with(1, 2, 3)
    reader.skip_to(min(height, 7))
    open_round = reader.state.current
    reader.tell(CaughtUp(reader.state.height))
    assert reader.state.own.speaks_from == (0 if open_round is None else open_round.number + 1)


def test_what_was_seen_of_the_last_final_round_stays_known_over_a_gap() -> None:
    host, other = _host(1), _run(1)
    other.play()  # nobody speaks in round 1: void
    seen, kept = host.state.final, host.state.own.former
    assert seen is not None
    assert len(seen.included) == 3
    host.tell(_event(other))
    assert (host.state.round, host.state.final, host.state.own.former) == (2, seen, kept)


def test_the_last_state_that_was_here_is_kept_over_a_gap() -> None:
    host = _host(1)
    host.tell(StateSynced(digest("root 0"), 5))
    host.tell(_event(_run(3)))
    host.tell(StateSynced(digest("root 2"), 9))
    keep = next(c for c in host.wanted if isinstance(c, Keep))
    assert set(keep.roots) == {digest("root 0"), digest("root 2")}
