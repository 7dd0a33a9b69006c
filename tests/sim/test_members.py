"""Chains made by hand about membership: keys that come and go, joins, leaves, drops, exclusions."""

from __future__ import annotations

import pytest

from gonka_trainer.round.records import Challenge, Delegate, Leave, Revoke, VerdictRecord
from gonka_trainer.types import Height, Role, sha256

from .script import A, B, C, D, E, K, L, Script, all_but_c, equal, join, rules, script, weighted


def test_join_counts_from_the_next_opening() -> None:
    s = Script(rules([A, B, C], 2), equal([A, B, C])).join(1, A, B).join(3, C)
    end = s.whole(3, 0, [A, B])
    rounds = s.play(end + 1)
    assert rounds[0].voices == {A, B}
    assert rounds[1].voices == {A, B, C}


def test_key_that_joins_another_participant_ends_its_old_pair() -> None:
    s = Script(rules([A, B, C, D], 3), equal([A, B, C, D])).join(1, A, B)
    s.say(1, C, Delegate(K, Height(1))).say(1, K, join(C, 1))
    s.say(3, D, Delegate(K, Height(3))).say(4, K, join(D, 4))
    s.commit(5, 0, A, B, K)
    r0 = s.play(5)[0]
    assert r0.keys == {A: A, B: B, C: K}  # frozen at the opening
    assert set(r0.commits) == {A, B, C}
    for who in (A, B):
        s.attest(6, 0, 5, [A, B, C], who, [A, B, C])
    s.post(7, 0, 6, A, B)
    r1 = s.play(8)[1]
    assert (r1.keys, r1.silent) == ({A: A, B: B, D: K}, set())


def test_old_pair_speaks_until_the_new_one_is_complete() -> None:
    s = Script(rules([A, B], 2), equal([A, B])).join(1, A, B)
    s.say(4, A, Delegate(K, Height(4)))
    end = s.whole(5, 0, [A, B])
    s.say(end + 1, K, join(A, end + 1))
    second = s.whole(end + 2, 1, [A, B])
    rounds = s.play(second + 1)
    assert [r.keys[A] for r in rounds] == [A, A, K]


def test_new_key_does_not_speak_in_the_round_in_which_its_pair_was_completed() -> None:
    s = Script(rules([A, B], 2), equal([A, B])).join(1, A, B)
    s.say(4, A, Delegate(K, Height(4))).say(4, K, join(A, 4))
    s.commit(5, 0, K)
    end = s.whole(6, 0, [A, B])
    rounds = s.play(end + 1)
    assert rounds[0].commits[A] == (sha256(b"C", A, bytes([0])), 6)
    assert rounds[1].keys[A] == K


def test_join_for_a_participant_that_names_no_such_key_changes_nothing() -> None:
    s = Script(rules([A, B, C], 2), equal([A, B, C])).join(1, A, B)
    s.say(1, K, join(A, 1)).say(1, L, join(C, 1))
    s.say(1, C, Delegate(K, Height(1))).say(2, C, Revoke(K, Height(2))).say(2, K, join(C, 2))
    end = s.whole(3, 0, [A, B])
    assert [r.keys for r in s.play(end + 1)] == [{A: A, B: B}, {A: A, B: B}]


def test_join_of_the_key_that_speaks_counts_while_another_is_named() -> None:
    s = Script(rules([A, B, C], 2), equal([A, B, C])).join(1, B, C)
    s.say(1, A, Delegate(K, Height(1))).say(1, K, join(A, 1))
    s.say(3, A, Delegate(L, Height(3)), Leave(A, Height(3))).say(4, K, join(A, 4))
    s.commit(5, 0, B, C, K)
    for who in (B, C):
        s.attest(6, 0, 5, [A, B, C], who, [A, B, C])
    s.post(7, 0, 6, B, C)
    assert s.play(8)[1].keys == {A: K, B: B, C: C}


def test_join_of_the_key_that_speaks_ends_absence_while_another_is_named() -> None:
    s = Script(rules([A, B, C], 2, absent_rounds=2), equal([A, B, C])).join(1, A, B)
    s.say(1, C, Delegate(K, Height(1))).say(1, K, join(C, 1))
    opened = all_but_c(s, 3, 0)
    s.say(opened, C, Delegate(L, Height(opened))).say(opened, K, join(C, opened))
    opened = all_but_c(s, opened, 1)
    assert s.play(opened)[1].dropped == ()


def test_revoked_key_does_not_speak_and_the_participants_own_needs_a_new_join() -> None:
    s = Script(rules([A, B, C], 2), equal([A, B, C])).join(1, A, B, C)
    s.say(1, A, Delegate(K, Height(1))).say(2, K, join(A, 2)).say(4, A, Revoke(K, Height(4)))
    s.commit(5, 0, K, B, C)
    for who in (B, C):
        s.attest(6, 0, 5, [A, B, C], who, [A, B, C])
    s.post(7, 0, 6, B, C)
    rounds = s.play(8)
    assert rounds[0].keys[A] == K
    assert rounds[1].voices == {B, C}
    s.join(9, A)
    s.commit(9, 1, B, C)
    for who in (B, C):
        s.attest(10, 1, 9, [B, C], who, [B, C])
    s.post(11, 1, 10, B, C)
    assert s.play(12)[2].voices == {A, B, C}


@pytest.mark.parametrize(("written", "counts"), [(3, True), (1, False), (5, False)])
def test_written_height_is_above_the_last_and_not_above_the_block(written: int, counts: bool) -> None:
    s = Script(rules([A, B, C], 2), equal([A, B, C])).join(1, A, B, C)
    s.say(4, C, Leave(C, Height(written)))
    end = s.whole(5, 0, [A, B, C])
    assert (C not in s.play(end + 1)[1].voices) is counts


def test_leave_in_the_name_of_another_is_nothing() -> None:
    s = Script(rules([A, B, C], 2), equal([A, B, C])).join(1, A, B, C)
    s.say(4, K, Leave(C, Height(4))).say(4, B, Leave(C, Height(4)))
    end = s.whole(5, 0, [A, B, C])
    assert s.play(end + 1)[1].voices == {A, B, C}


def test_observer_and_validator_have_no_seat() -> None:
    s = Script(rules([A, B, C, D], 2), equal([A, B, C, D])).join(1, A, B)
    s.say(1, C, join(C, 1, Role.OBSERVER)).say(1, D, join(D, 1, Role.VALIDATOR))
    assert s.play(4)[0].voices == {A, B}


def test_drop_is_after_the_records_of_the_ending_block_and_a_later_join_brings_back() -> None:
    s = script([A, B, C], 2, absent_rounds=2)
    opened = all_but_c(s, all_but_c(s, 3, 0), 1)
    rounds = s.play(opened)
    assert rounds[1].dropped == (C,)
    assert rounds[2].voices == {A, B}
    s.say(opened, C, join(C, 2))  # written long ago, in a block after the drop
    end = s.whole(opened, 2, [A, B])
    assert s.play(end + 1)[3].voices == {A, B, C}


def test_commit_or_join_resets_the_absence() -> None:
    s = script([A, B, C], 2, absent_rounds=2)
    opened = all_but_c(s, 3, 0)
    s.join(opened, C)
    opened = all_but_c(s, opened, 1)
    assert s.play(opened)[1].dropped == ()
    opened = s.whole(opened, 2, [A, B, C]) + 1
    opened = all_but_c(s, opened, 3)
    assert s.play(opened)[3].dropped == ()
    opened = all_but_c(s, opened, 4)
    assert s.play(opened)[4].dropped == (C,)


def test_void_rounds_do_not_count_as_absence() -> None:
    s = script([A, B, C], 2, absent_rounds=2)
    rounds = s.play(60)
    assert len(rounds) > 3
    assert all(r.reason == "commit" and not r.dropped and r.voices == {A, B, C} for r in rounds[:-1])
    assert len({r.base_root for r in rounds}) == 1


@pytest.mark.parametrize(("late", "back"), [(0, False), (1, True)])
def test_verdicts_of_more_than_half_exclude_for_the_manifests_rounds(late: int, back: bool) -> None:
    """Of the joins of an excluded one only one counts that stands after the block in which the last round ended."""
    s = script([A, B, C, D], 3, exclusion_rounds=2)
    for who in (A, B, C):
        s.say(3, who, VerdictRecord(D, 0, 0, 2, sha256(b"evidence")))
    opened = s.whole(3, 0, [A, B, C, D]) + 1
    s.join(opened, D)
    for number in (1, 2):
        opened = s.whole(opened, number, [A, B, C]) + 1
    s.join(opened - 1 + late, D)
    opened = s.whole(opened, 3, [A, B, C]) + 1
    rounds = s.play(opened)
    assert rounds[0].excluded == (D,)
    assert [D in r.voices for r in rounds] == [True, False, False, False, back]


@pytest.mark.parametrize(
    ("outcome", "voices", "challenged", "excluded"),
    [(2, 3, 0, True), (2, 2, 0, False), (0, 3, 0, False), (1, 3, 0, False), (1, 3, 3, True), (1, 3, 4, False)],
)
def test_which_verdicts_exclude(outcome: int, voices: int, challenged: int, excluded: bool) -> None:
    """Of four: half is not enough, no objection is none, no answer counts after the window of a challenge."""
    s = script([A, B, C, D], 3, challenge_blocks=2)
    if challenged:
        s.say(challenged, A, Challenge(D, 0, 0))
    for who in (A, B, C)[:voices]:
        s.say(6, who, VerdictRecord(D, 0, 0, outcome, sha256(b"evidence")))
    end = s.whole(7, 0, [A, B, C, D])
    rounds = s.play(end + 1)
    assert (rounds[0].excluded == (D,)) is excluded
    assert (D not in rounds[1].voices) is excluded


def test_of_more_than_the_limit_the_heaviest_stay_and_ties_go_by_address() -> None:
    s = weighted({A: 5, B: 3, C: 3, D: 6, E: 1}, 9, roster_limit=3)
    assert s.play(4)[0].seats == ((A, 5, True), (B, 3, True), (D, 6, True))


def test_who_weighs_nothing_or_is_not_listed_has_no_seat() -> None:
    s = weighted({A: 5, B: 3, C: 0}, 4).join(1, D)
    assert s.play(4)[0].voices == {A, B}
    assert script([A, B], 2).join(1, C).play(4)[0].voices == {A, B}


def test_run_ends_after_the_manifests_rounds_and_a_void_one_uses_up_its_number() -> None:
    s = script([A, B], 2, rounds=2)
    rounds = s.play(60)
    assert [r.reason for r in rounds] == ["commit", "commit"]
    assert s.whole(rounds[0].opened, 0, [A, B]) == 5
    assert [r.reason for r in s.play(60)] == ["", "commit"]
