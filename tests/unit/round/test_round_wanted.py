"""What this host wants in a state: each command stands until it is done or moot."""

from __future__ import annotations

from typing import TypeVar

import pytest
from round_world import INITIAL, Reader, address, block_hash, digest, join, key, params

from gonka_trainer.round import machine
from gonka_trainer.round.bitmap import unpack
from gonka_trainer.round.commands import (
    Apply,
    Command,
    Fetch,
    Halt,
    Keep,
    ProvePossession,
    Publish,
    SendJoin,
    Serve,
    Sync,
    Train,
)
from gonka_trainer.round.environment import NO_EPOCHS, Environment, environment_digest
from gonka_trainer.round.events import (
    BlobHeld,
    CaughtUp,
    PossessionProved,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Attest, Commit, Delegate, Leave, StateRoot
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Phase
from gonka_trainer.types import Address, Height

ME, OTHER, THIRD = address(1), address(2), address(3)
C = TypeVar("C")


def _host(local: Local | None = None, caught_up: bool = True, **changes: int) -> Reader:
    reader = Reader(params(3, **changes), local or Local(ME, ME))
    reader.tell(StateSynced(INITIAL, 0))
    if caught_up:
        reader.tell(CaughtUp(Height(0)))
    return reader


def _open(**changes: int) -> Reader:
    reader = _host(**changes)
    reader.open_with(1, 2, 3)
    return reader


def _of(reader: Reader, kind: type[C]) -> list[C]:
    return [c for c in reader.wanted if isinstance(c, kind)]


def _mine(reader: Reader) -> None:
    reader.tell(UpdateReady(reader.state.round, digest(f"blob {reader.state.round} 1")))


def _closed(**changes: int) -> Reader:
    reader = _open(**changes)
    _mine(reader)
    reader.block(*reader.commits(1, 2, 3))
    return reader  # closed at 4, attest until 8


def _frozen(**changes: int) -> Reader:
    reader = _closed(**changes)
    reader.block(*reader.attests((1, 2, 3), 2, 3))
    return reader  # frozen at 5, state until 9


def _all_held(reader: Reader, number: int = 0) -> None:
    reader.tell(BlobHeld(number, OTHER, True))
    reader.tell(BlobHeld(number, THIRD, True))


def test_nothing_is_started_before_the_host_has_caught_up() -> None:
    reader = _host(caught_up=False)
    reader.open_with(1, 2, 3)
    assert _of(reader, Train) == []
    reader.tell(CaughtUp(Height(reader.state.height - 6)))
    assert {type(c) for c in reader.wanted} == {Keep}
    reader.tell(CaughtUp(reader.state.height))
    assert _of(reader, Train) == []  # whoever had the key before may have spoken in the round that is open
    reader.play(2, 3)
    reader.tell(StateSynced(digest("root 0"), 1))
    assert [c.round for c in _of(reader, Train)] == [1]
    reader.tell(CaughtUp(reader.state.height))
    assert [c.round for c in _of(reader, Train)] == [1]


def test_a_join_is_wanted_until_it_counts() -> None:
    reader = _host()
    assert _of(reader, SendJoin) == [SendJoin(Height(0))]
    reader.block()
    assert _of(reader, SendJoin) == [SendJoin(Height(0))]
    reader.block((ME, join(ME, 2)))
    assert _of(reader, SendJoin) == []
    reader.block((ME, Leave(ME, Height(3))))
    assert _of(reader, SendJoin) == [SendJoin(Height(3))]


@pytest.mark.parametrize(
    "local", [Local(None, None), Local(ME, ME, False), Local(ME, None), Local(address(9), address(9))]
)
def test_no_join_for_who_wants_none_or_can_never_be_a_member(local: Local) -> None:
    assert _of(_host(local), SendJoin) == []


def test_a_join_that_waits_for_its_delegate_is_not_repeated() -> None:
    reader = _host(Local(ME, key(1)))
    assert len(_of(reader, SendJoin)) == 1
    reader.block((key(1), join(ME, 1)))
    assert _of(reader, SendJoin) == []
    reader.block((ME, Delegate(key(1), Height(2))))
    assert _of(reader, SendJoin) == []
    assert reader.state.membership.is_member(ME)


def test_two_keys_of_a_participant_do_not_fight() -> None:
    reader = _host(Local(ME, key(1)))
    reader.block((ME, Delegate(key(1), Height(1))), (key(1), join(ME, 1)), (ME, join(ME, 1)))
    assert reader.state.membership.speaks_for(ME) == ME
    assert _of(reader, SendJoin) == []


def test_a_dropped_host_joins_again() -> None:
    reader = _host(Local(THIRD, THIRD), absent_rounds=2)
    reader.open_with(1, 2, 3)
    reader.play(1, 2)
    assert _of(reader, SendJoin) == []
    reader.play(1, 2)
    assert _of(reader, SendJoin) == [SendJoin(Height(1))]
    reader.block((THIRD, join(THIRD, reader.now)))
    assert _of(reader, SendJoin) == []


def test_training_is_wanted_until_the_update_is_ready_and_stops_in_time() -> None:
    reader = _open(train_blocks=8, commit_blocks=8)
    train = _of(reader, Train)
    assert train == [Train(0, INITIAL, (ME, OTHER, THIRD), Height(12), False)]
    reader.skip_to(9)
    assert not _of(reader, Train)[0].finish
    reader.skip_to(10)
    assert _of(reader, Train)[0].finish
    reader.tell(UpdateReady(1, digest("of another round")))
    assert len(_of(reader, Train)) == 1
    _mine(reader)
    assert _of(reader, Train) == []


def test_training_needs_the_base_state_and_a_voice() -> None:
    reader = Reader(params(3), Local(ME, ME))
    reader.tell(CaughtUp(Height(0)))
    reader.open_with(1, 2, 3)
    assert _of(reader, Train) == []
    assert _of(reader, Sync) == [Sync(INITIAL, ())]
    reader.tell(StateSynced(digest("another"), 0))
    assert _of(reader, Train) == []
    reader.tell(StateSynced(INITIAL, 0))
    assert len(_of(reader, Train)) == 1
    late = _host()
    late.open_with(2, 3)
    assert _of(late, Train) == []
    wrong_key = _host(Local(ME, key(1)))
    wrong_key.open_with(1, 2, 3)
    assert _of(wrong_key, Train) == []


def test_the_commit_is_wanted_until_it_is_seen() -> None:
    reader = _open()
    _mine(reader)
    publish = Publish(Commit(0, digest("blob 0 1")), Height(12))
    assert _of(reader, Publish) == [publish]
    reader.tell(UpdateReady(0, digest("a second one")))
    assert _of(reader, Publish) == [publish]
    reader.block(*reader.commits(2))
    assert _of(reader, Publish) == [publish]
    reader.block(*reader.commits(1))
    assert _of(reader, Publish) == []


def test_the_commit_is_moot_once_no_block_can_hold_it() -> None:
    reader = _open()
    reader.block(*reader.commits(2))
    _mine(reader)
    reader.skip_to(11)
    assert len(_of(reader, Publish)) == 1
    reader.block(*reader.commits(3))
    assert _of(reader, Publish) == []
    assert reader.state.phase is Phase.ATTEST


def test_the_others_blobs_are_fetched_from_author_and_attesters() -> None:
    reader = _closed()
    assert _of(reader, Fetch) == [
        Fetch(0, OTHER, digest("blob 0 2"), INITIAL, ()),
        Fetch(0, THIRD, digest("blob 0 3"), INITIAL, ()),
    ]
    reader.block(*reader.attests((2,), 2, 3), *reader.attests((3,), 3))
    assert _of(reader, Fetch)[0].holders == (THIRD,)
    reader.tell(BlobHeld(0, OTHER, False))
    assert [f.participant for f in _of(reader, Fetch)] == [THIRD]


def test_a_blob_of_ours_that_is_not_what_stands_on_chain_is_fetched() -> None:
    reader = _open()
    reader.tell(UpdateReady(0, digest("another machine with the same key committed first")))
    reader.block(*reader.commits(1, 2, 3))
    assert [f.participant for f in _of(reader, Fetch)] == [ME, OTHER, THIRD]


def _positions(command: Command, count: int = 3) -> set[int]:
    assert isinstance(command, Publish)
    assert isinstance(command.record, Attest)
    return set(unpack(command.record.bitmap, count))


def test_attest_at_once_when_all_blobs_are_here() -> None:
    reader = _closed()
    assert _of(reader, ProvePossession) == []
    _all_held(reader)
    assert _of(reader, ProvePossession) == [ProvePossession(0, block_hash(4), (ME, OTHER, THIRD))]
    reader.tell(PossessionProved(0, (ME, OTHER, THIRD), b"p" * 16))
    assert _of(reader, ProvePossession) == []
    publish = _of(reader, Publish)[0]
    assert publish.until == 8
    assert publish.record == Attest(0, reader.current.list_digest, b"p" * 16, b"\xe0")
    reader.block((ME, publish.record))
    assert _of(reader, Publish) == []
    assert _of(reader, ProvePossession) == []


def test_a_blob_of_bad_form_is_held_but_not_attested() -> None:
    reader = _closed()
    reader.tell(BlobHeld(0, OTHER, False))
    reader.tell(BlobHeld(0, THIRD, True))
    assert _of(reader, ProvePossession)[0].participants == (ME, THIRD)
    reader.tell(PossessionProved(0, (ME, OTHER, THIRD), bytes(16)))
    assert _of(reader, Publish) == []
    reader.tell(PossessionProved(0, (ME, THIRD), bytes(16)))
    assert _positions(_of(reader, Publish)[0]) == {0, 2}


def test_half_way_what_is_here_is_attested_and_the_rest_later() -> None:
    reader = _closed()
    reader.skip_to(5)
    assert _of(reader, ProvePossession) == []
    reader.skip_to(6)
    assert _of(reader, ProvePossession)[0].participants == (ME,)
    reader.tell(PossessionProved(0, (ME,), bytes(16)))
    first = _of(reader, Publish)[0]
    _all_held(reader)
    assert _of(reader, Publish) == [first]
    reader.block((ME, first.record))
    assert _of(reader, ProvePossession)[0].participants == (ME, OTHER, THIRD)
    reader.tell(PossessionProved(0, (ME, OTHER, THIRD), bytes(16)))
    assert _positions(_of(reader, Publish)[0]) == {0, 1, 2}


def test_few_attestations_a_window_however_the_blobs_trickle_in() -> None:
    others = tuple(range(2, 31))
    reader = Reader(params(30, attest_blocks=20, min_weight=16), Local(ME, ME))
    reader.tell(StateSynced(INITIAL, 0))
    reader.tell(CaughtUp(Height(0)))
    reader.open_with(1, *others)
    _mine(reader)
    reader.block(*reader.commits(1, *others))
    sent = 0
    for n in others[:-1]:
        reader.tell(BlobHeld(0, address(n), True))
        for prove in _of(reader, ProvePossession):
            reader.tell(PossessionProved(0, prove.participants, bytes(16)))
        attests = [c for c in _of(reader, Publish) if isinstance(c.record, Attest)]
        sent += len(attests)
        reader.block(*((ME, c.record) for c in attests))
    assert 2 <= sent <= 4


def test_an_attestation_is_moot_after_the_freeze() -> None:
    reader = _closed()
    _all_held(reader)
    reader.tell(PossessionProved(0, (ME, OTHER, THIRD), bytes(16)))
    reader.block(*reader.attests((1, 2, 3), 2, 3))
    assert not any(isinstance(c.record, Attest) for c in _of(reader, Publish))


def test_the_state_is_applied_and_posted_with_what_this_host_read() -> None:
    reader = _frozen()
    assert _of(reader, Apply) == []
    assert [f.participant for f in _of(reader, Fetch)] == [OTHER, THIRD]
    reader.tell(BlobHeld(0, OTHER, False))
    reader.tell(BlobHeld(0, THIRD, True))
    included = tuple((address(n), digest(f"blob 0 {n}"), 1) for n in (1, 2, 3))
    assert _of(reader, Apply) == [Apply(0, INITIAL, included, 0)]
    reader.tell(StateComputed(0, digest("r"), 0, 10))
    assert _of(reader, Apply) == []
    expected = StateRoot(0, digest("r"), environment_digest(reader.environment), reader.current.roster.digest)
    assert _of(reader, Publish) == [Publish(expected, Height(9))]
    reader.block((ME, expected))
    assert _of(reader, Publish) == []


def test_only_included_blobs_are_fetched_after_the_freeze() -> None:
    reader = _closed()
    reader.skip_to(7)
    reader.block(*reader.attests((1, 2), 2, 3))
    assert reader.current.frozen == 8
    assert [f.participant for f in _of(reader, Fetch)] == [OTHER]
    reader.tell(BlobHeld(0, OTHER, True))
    assert [p for p, _, _ in _of(reader, Apply)[0].included] == [ME, OTHER]


def test_no_state_record_before_the_environment_is_read() -> None:
    reader = _closed()
    reader.hold = True
    reader.block(*reader.attests((1, 2, 3), 2, 3))
    _all_held(reader)
    reader.tell(StateComputed(0, digest("r"), 0, 10))
    assert _of(reader, Publish) == []


def test_after_a_final_root_of_ours_the_next_round_is_trained() -> None:
    reader = _frozen()
    _all_held(reader)
    reader.tell(StateComputed(0, digest("r"), 0, 10))
    reader.block(*reader.roots("r", 1, 2))
    assert _of(reader, Train)[0].base_root == digest("r")
    assert _of(reader, Keep) == [Keep((INITIAL, digest("r")), 0)]
    assert [s.round for s in _of(reader, Serve)] == [0]


def test_another_final_root_is_recomputed_once() -> None:
    reader = _frozen()
    _all_held(reader)
    reader.tell(StateComputed(0, digest("wrong"), 0, 10))
    reader.block(*reader.roots("r", 2, 3))
    assert _of(reader, Apply)[0].attempt == 1
    assert _of(reader, Sync) == []
    reader.tell(StateSynced(digest("r"), 10))
    assert _of(reader, Train) == []
    reader.tell(StateComputed(0, digest("r"), 1, 10))
    assert _of(reader, Train)[0].base_root == digest("r")


def test_a_second_wrong_root_halts_with_the_evidence() -> None:
    reader = _frozen()
    _all_held(reader)
    reader.tell(StateComputed(0, digest("wrong"), 0, 10))
    reader.block(*reader.roots("r", 2, 3))
    reader.tell(StateComputed(0, digest("wronger"), 1, 10))
    assert _of(reader, Halt) == [Halt(0, digest("wronger"), digest("r"))]
    assert {type(c) for c in reader.wanted} <= {Keep, Halt}


def test_without_a_blob_the_final_state_is_fetched_from_those_who_posted_it() -> None:
    reader = _frozen()
    reader.tell(BlobHeld(0, OTHER, True))
    reader.block(*reader.roots("r", 2, 3))
    assert _of(reader, Sync) == [Sync(digest("r"), (OTHER, THIRD))]
    assert _of(reader, Fetch) == []
    reader.tell(StateSynced(digest("r"), 10))
    assert _of(reader, Sync) == []
    assert len(_of(reader, Train)) == 1


def test_with_all_blobs_a_late_host_still_computes() -> None:
    reader = _frozen()
    _all_held(reader)
    reader.block(*reader.roots("r", 2, 3))
    assert _of(reader, Sync) == []
    assert _of(reader, Apply)[0].attempt == 0
    reader.tell(StateComputed(0, digest("r"), 0, 10))
    assert len(_of(reader, Train)) == 1


def test_a_late_wrong_root_is_recomputed_too() -> None:
    reader = _frozen()
    _all_held(reader)
    reader.block(*reader.roots("r", 2, 3))
    reader.tell(StateComputed(0, digest("wrong"), 0, 10))
    assert _of(reader, Apply)[0].attempt == 1


def test_former_state_and_blobs_are_kept_until_a_later_state_is_on_disk() -> None:
    reader = _open()
    for number in range(3):
        _mine(reader)
        reader.block(*reader.commits(1, 2, 3))
        _all_held(reader, number)
        reader.block(*reader.attests((1, 2, 3), 2, 3))
        reader.tell(StateComputed(number, digest(f"root {number}"), 0, 10))
        reader.block(*reader.roots(f"root {number}", 2, 3))
    assert _of(reader, Keep) == [Keep((digest("root 1"), digest("root 2")), 2)]
    assert [s.round for s in _of(reader, Serve)] == [2]
    assert set(reader.state.own.states) == {digest("root 1"), digest("root 2")}
    reader.play(2, 3)  # final without us: nothing of round 2 may go yet
    assert _of(reader, Keep)[0].blobs_from == 2
    assert set(_of(reader, Keep)[0].roots) == {digest("root 1"), digest("root 2"), digest("root 3")}
    reader.tell(StateSynced(digest("root 3"), 10))
    assert _of(reader, Keep)[0].blobs_from == 3


def test_blobs_are_served_from_the_close_on() -> None:
    reader = _open()
    reader.block(*reader.commits(1, 2))
    assert _of(reader, Serve) == []
    reader.block(*reader.commits(3))
    served = _of(reader, Serve)
    assert served == [Serve(0, tuple((address(n), digest(f"blob 0 {n}")) for n in (1, 2, 3)))]


def test_an_observer_only_reads_and_fetches_the_end() -> None:
    reader = _host(Local(None, None), rounds=1)
    reader.open_with(1, 2, 3)
    reader.play(1, 2, 3)
    assert reader.state.phase is Phase.ENDED
    assert _of(reader, Sync) == [Sync(digest("root 0"), (ME, OTHER, THIRD))]
    reader.tell(StateSynced(digest("root 0"), 5))
    assert {type(c) for c in reader.wanted} == {Keep}
    running = _host(Local(None, None))
    running.open_with(1, 2, 3)
    running.play(1, 2, 3)
    assert {type(c) for c in running.wanted} == {Keep}


def _ended(reader: Reader) -> CoreState:
    assert reader.state.phase is Phase.ENDED
    assert not _of(reader, Train)
    assert not _of(reader, SendJoin)
    return reader.block()


def test_the_run_ends_after_its_rounds_void_ones_too() -> None:
    reader = _open(rounds=2)
    reader.play(2, 3)
    assert reader.state.phase is Phase.TRAIN
    reader.play(2)
    state = _ended(reader)
    assert (state.final_root, state.height) == (digest("root 0"), reader.now - 1)


def test_the_run_ends_at_its_tokens() -> None:
    reader = _frozen(tokens=100)
    _all_held(reader)
    reader.tell(StateComputed(0, digest("r"), 0, 100))
    assert reader.state.phase is Phase.STATE
    reader.block(*reader.roots("r", 2, 3))
    assert _ended(reader).final_root == digest("r")
    below = _frozen(tokens=101)
    _all_held(below)
    below.tell(StateComputed(0, digest("r"), 0, 100))
    below.block(*below.roots("r", 2, 3))
    assert below.state.phase is Phase.TRAIN


def test_who_learns_late_of_the_tokens_ends_as_the_others_did() -> None:
    reader = _host(Local(None, None), tokens=100)
    reader.open_with(1, 2, 3)
    told = reader.play(1, 2, 3)
    assert _of(reader, Sync) == []
    reader.play()
    assert reader.state.round == 2
    assert _of(reader, Sync) == [Sync(digest("root 0"), (ME, OTHER, THIRD))]
    reader.tell(StateSynced(digest("root 0"), 100))
    assert (_ended(reader).last, reader.state.final_root) == (told, digest("root 0"))


def test_no_training_while_the_roster_cannot_decide() -> None:
    reader = Reader(params(None, min_weight=10), Local(ME, ME))
    reader.environment = Environment(NO_EPOCHS, ((ME, 5), (OTHER, 5)))
    reader.tell(CaughtUp(Height(0)))
    reader.open_with(1, 2)
    reader.tell(StateSynced(INITIAL, 0))
    assert len(_of(reader, Train)) == 1
    reader.environment = Environment(NO_EPOCHS, ((ME, 4), (OTHER, 4)))
    reader.play(1, 2)
    reader.tell(StateSynced(digest("root 0"), 1))
    assert not reader.current.roster.decides
    assert _of(reader, Train) == []


def test_the_set_can_be_made_again_from_the_state() -> None:
    reader = _frozen()
    assert machine.commands(reader.params, reader.local, reader.state) == reader.wanted


def _sorted(addresses: tuple[Address, ...]) -> bool:
    return list(addresses) == sorted(addresses)


def test_commands_name_participants_in_order() -> None:
    reader = _frozen()
    assert _sorted(tuple(f.participant for f in _of(reader, Fetch)))
