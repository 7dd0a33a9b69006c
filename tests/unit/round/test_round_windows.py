"""Windows, majorities and keys of commits, attestations and state records (docs/protocol.md 2 and 3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from round_world import Reader, address, block_hash, digest, join, params

from gonka_trainer.round.bitmap import pack
from gonka_trainer.round.environment import NO_EPOCHS, Environment, environment_digest
from gonka_trainer.round.inclusion import list_digest
from gonka_trainer.round.records import Attest, Commit, StateRoot
from gonka_trainer.round.summary import Outcome, Phase, VoidReason
from gonka_trainer.types import Digest

# params: start 3, so O = 4; T = 8; commits count up to 12


def _open(members: int = 3, joined: tuple[int, ...] = (1, 2, 3), **changes: int) -> Reader:
    reader = Reader(params(members, **changes))
    reader.open_with(*joined)
    return reader


def _attesting(reader: Reader, *participants: int) -> Reader:
    reader.block(*reader.commits(*participants))
    while reader.current.closed is None:
        reader.block()
    return reader


def test_opening_deadline_and_phases() -> None:
    reader = _open()
    current = reader.current
    assert (current.opened, current.deadline, reader.state.height) == (4, 8, 3)
    phases = []
    for _ in range(4, 12):
        phases.append(reader.block().phase)
    assert phases == [Phase.TRAIN] * 4 + [Phase.COMMIT] * 4


def test_round_zero_waits_for_the_weight() -> None:
    reader = Reader(params(3))
    reader.block((address(1), join(address(1), 1)))
    reader.skip_to(6)
    assert reader.state.phase is Phase.WAITING
    reader.block((address(2), join(address(2), 7)))
    assert (reader.current.opened, reader.current.number) == (8, 0)


def test_a_commit_counts_in_the_opening_block_and_not_before() -> None:
    reader = Reader(params(3))
    reader.block(*((address(n), join(address(n), 1)) for n in (1, 2, 3)))
    reader.block(*reader.commits(1))
    reader.block(*reader.commits(1))
    assert reader.current.commits == {}
    reader.block(*reader.commits(1))
    assert list(reader.current.commits) == [address(1)]


def test_a_commit_counts_in_the_last_block_of_its_window() -> None:
    reader = _open()
    reader.block(*reader.commits(1))
    reader.skip_to(11)
    reader.block(*reader.commits(2))
    assert (reader.current.closed, len(reader.current.committers)) == (12, 2)


def test_a_commit_after_the_close_is_nothing() -> None:
    reader = _open()
    reader.block(*reader.commits(1, 2))
    reader.skip_to(12)
    reader.block(*reader.commits(3))
    assert reader.current.committers == (address(1), address(2))
    assert "a commit outside its window" in reader.texts


def test_the_window_closes_when_the_last_voice_commits() -> None:
    reader = _open()
    reader.block(*reader.commits(1, 2))
    assert reader.current.closed is None
    reader.block(*reader.commits(3))
    assert reader.current.closed == 5


def test_half_of_the_weight_is_not_more_than_half() -> None:
    reader = _open(4, (1, 2, 3, 4))
    reader.block(*reader.commits(1, 2))
    reader.skip_to(12)
    told = reader.summaries[0]
    assert (told.outcome, told.reason, told.closed, told.ended) == (Outcome.VOID, VoidReason.COMMIT, 12, 12)
    assert reader.current.opened == 13
    assert reader.state.round == 1


def test_the_first_commit_stands_and_another_is_equivocation() -> None:
    reader = _open()
    first = reader.commits(1)[0]
    reader.block(first, (address(1), Commit(0, digest("other"))), first)
    assert reader.current.commits[address(1)][0] == digest("blob 0 1")
    assert reader.texts == ["equivocation: another commitment"]


def test_records_of_strangers_and_of_other_rounds_are_nothing() -> None:
    reader = _open(3, (1, 2))
    reader.block((address(3), Commit(0, digest("x"))), (address(1), Commit(1, digest("y"))))
    assert reader.current.commits == {}
    assert len(reader.texts) == 2
    reader.block(*reader.commits(1))
    assert len(reader.current.commits) == 1


def test_the_list_digest_is_of_the_close_and_the_committers() -> None:
    reader = _attesting(_open(), 1, 2, 3)
    expected = list_digest(block_hash(4), [address(3), address(1), address(2)])
    assert reader.current.list_digest == expected
    assert len(expected) == 16
    assert list_digest(block_hash(5), [address(1), address(2), address(3)]) != expected
    assert list_digest(block_hash(4), [address(1), address(2)]) != expected


def test_all_attested_by_all_freezes_at_once() -> None:
    reader = _attesting(_open(), 1, 2, 3)
    reader.block(*reader.attests((1, 2, 3), 1))
    assert reader.current.frozen is None
    reader.block(*reader.attests((1, 2, 3), 2))
    assert reader.current.frozen == 6
    assert reader.current.included == (address(1), address(2), address(3))
    assert reader.state.phase is Phase.STATE


def test_an_attestation_in_the_closing_block_is_nothing() -> None:
    reader = _open()
    names = [address(n) for n in (1, 2, 3)]
    early = Attest(0, list_digest(block_hash(4), names), bytes(16), pack(range(3), 3))
    reader.block(*reader.commits(1, 2, 3), *((p, early) for p in names))
    assert reader.current.closed == 4
    assert reader.current.bits == {}
    reader.block(*((p, early) for p in names))
    assert reader.current.frozen == 5


def test_bits_add_up_over_attestations_and_extensions() -> None:
    reader = _attesting(_open(), 1, 2, 3)
    reader.block(*reader.attests((1,), 1, 2), *reader.attests((2,), 2))
    reader.skip_to(8)
    assert reader.current.extensions == 1  # one of three included at the limit, block 8
    reader.block(*reader.attests((2,), 3))
    assert reader.current.support == (2, 2, 0)
    reader.skip_to(11)
    assert reader.current.frozen is None
    reader.block()
    assert (reader.current.frozen, reader.current.included) == (12, (address(1), address(2)))


def test_the_same_bits_twice_count_once() -> None:
    reader = _attesting(_open(), 1, 2, 3)
    reader.block(*reader.attests((1, 2, 3), 1), *reader.attests((1, 2), 1))
    reader.block(*reader.attests((1, 2, 3), 1))
    assert reader.current.support == (1, 1, 1)


def test_at_the_limit_the_included_majority_freezes() -> None:
    reader = _attesting(_open(), 1, 2, 3)
    reader.skip_to(7)
    reader.block(*reader.attests((1, 2), 1, 2))
    assert (reader.current.frozen, reader.current.included) == (8, (address(1), address(2)))


def test_after_the_last_extension_the_round_is_void() -> None:
    reader = _attesting(_open(extensions=2), 1, 2, 3)
    reader.block(*reader.attests((1, 2, 3), 1))
    reader.skip_to(15)
    assert (reader.current.extensions, reader.state.phase) == (2, Phase.ATTEST)
    reader.block()
    told = reader.summaries[0]
    assert (told.reason, told.ended, told.closed, told.frozen) == (VoidReason.ATTEST, 16, 4, None)
    assert told.attestations == ((address(1), (address(1), address(2), address(3))),)


def test_ones_own_attestation_counts_and_a_commit_is_none() -> None:
    reader = _attesting(_open(2, (1, 2)), 1, 2)
    reader.block(*reader.attests((1, 2), 1))
    assert reader.current.support == (1, 1)
    reader.block(*reader.attests((1,), 2))
    assert reader.current.frozen is None
    reader.block(*reader.attests((2,), 2))
    assert reader.current.frozen == 7


@pytest.mark.parametrize(
    "change",
    [
        {"list_digest": bytes(16)},
        {"bitmap": b"\xe0\x00"},
        {"bitmap": b""},
        {"bitmap": b"\xf0"},
        {"round": 1},
    ],
)
def test_a_wrong_attestation_is_nothing(change: dict[str, object]) -> None:
    reader = _attesting(_open(), 1, 2, 3)
    author, record = reader.attests((1, 2, 3), 1)[0]
    assert isinstance(record, Attest)
    reader.block((author, replace(record, **change)))  # type: ignore[arg-type]
    assert reader.current.bits == {}
    assert len(reader.texts) == 1


def test_who_did_not_commit_may_attest() -> None:
    reader = _open()
    reader.block(*reader.commits(1, 2))
    reader.skip_to(12)
    reader.block(*reader.attests((1, 2), 1, 3))
    assert reader.current.frozen == 13


def _frozen(reader: Reader) -> Reader:
    _attesting(reader, 1, 2, 3)
    reader.block(*reader.attests((1, 2, 3), 1, 2))
    return reader  # frozen at 5


def test_final_by_more_than_half_of_the_weight() -> None:
    reader = _frozen(_open())
    reader.block(*reader.roots("a", 1))
    assert reader.state.round == 0
    reader.block(*reader.roots("a", 2))
    told = reader.summaries[0]
    assert (told.outcome, told.root, told.ended, told.frozen) == (Outcome.FINAL, digest("a"), 7, 5)
    assert reader.state.final_root == digest("a")
    assert (reader.current.opened, reader.current.base_root) == (8, digest("a"))


@pytest.mark.parametrize("field", ["root", "environment", "roster"])
def test_the_whole_triple_must_agree(field: str) -> None:
    reader = _frozen(_open())
    author, record = reader.roots("a", 2)[0]
    assert isinstance(record, StateRoot)
    reader.block(*reader.roots("a", 1), (author, replace(record, **{field: digest("other")})))
    assert reader.state.round == 0
    reader.block(*reader.roots("a", 3))
    assert reader.state.final is not None
    assert reader.state.final.holders == (address(1), address(3))


def test_state_records_count_after_the_freeze_and_up_to_the_limit() -> None:
    reader = _attesting(_open(), 1, 2, 3)
    environment = environment_digest(reader.environment)
    root = (address(1), StateRoot(0, digest("a"), environment, digest("r")))
    reader.block(*reader.attests((1, 2, 3), 1, 2), root)
    assert reader.current.posts == {}
    reader.block(root)
    reader.skip_to(8)
    assert reader.state.round == 0
    reader.block((address(2), root[1]))
    assert reader.summaries[0].root == digest("a")


def test_without_a_majority_root_the_round_is_void_and_changes_nothing() -> None:
    reader = _frozen(_open())
    reader.block(*reader.roots("a", 1), *reader.roots("b", 2))
    reader.skip_to(9)
    told = reader.summaries[0]
    assert (told.outcome, told.reason, told.ended) == (Outcome.VOID, VoidReason.STATE, 9)
    assert reader.state.final_root == Digest(reader.params.initial_root)
    assert reader.current.base_root == reader.params.initial_root


def test_the_first_state_record_stands() -> None:
    reader = _frozen(_open())
    reader.block(*reader.roots("a", 1), *reader.roots("b", 1, 2), *reader.roots("a", 1))
    assert reader.texts == ["equivocation: another state record"]
    assert reader.state.round == 0
    assert reader.current.posts[address(1)].root == digest("a")


def test_at_most_one_transition_a_block() -> None:
    reader = _open(attest_blocks=1, state_blocks=1, extensions=0)
    seen = [reader.block(*reader.commits(1, 2, 3)).phase]
    seen.append(reader.block(*reader.attests((1, 2, 3), 1, 2, 3)).phase)
    seen.append(reader.block(*reader.roots("a", 1, 2, 3)).phase)
    assert seen == [Phase.ATTEST, Phase.STATE, Phase.TRAIN]
    assert reader.current.opened == 7


def test_weights_decide_and_not_heads() -> None:
    reader = Reader(params(None, min_weight=10))
    reader.environment = Environment(NO_EPOCHS, ((address(1), 7), (address(2), 4), (address(3), 2)))
    reader.open_with(1, 2, 3)
    reader.block(*reader.commits(1, 2, 3))
    reader.block(*reader.attests((1, 2), 1), *reader.attests((3,), 2, 3))
    assert reader.current.support == (7, 7, 6)
    reader.skip_to(8)
    assert reader.current.included == (address(1), address(2))
