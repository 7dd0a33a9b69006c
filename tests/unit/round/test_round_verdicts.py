"""Challenges, verdicts, exclusions (docs/protocol.md 6)."""

from __future__ import annotations

import pytest
from round_world import Reader, Said, address, digest, join, params

from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.round.records import Challenge, VerdictRecord
from gonka_trainer.round.summary import Outcome, Seat
from gonka_trainer.round.verdicts import NO_ANSWER, NO_OBJECTION
from gonka_trainer.types import Role

FAULT = 2


def _open(members: int = 4, **changes: int) -> Reader:
    reader = Reader(params(members, **{"min_weight": 3, "exclusion_rounds": 2, **changes}))
    reader.open_with(*range(1, members + 1))
    return reader


def _verdicts(
    *authors: int, subject: int = 4, outcome: int = FAULT, segment: int = 0, evidence: str = "e"
) -> list[Said]:
    record = VerdictRecord(address(subject), 0, segment, outcome, digest(evidence))
    return [(address(n), record) for n in authors]


def _excluded(reader: Reader, n: int) -> int | None:
    return reader.state.membership.standing(address(n)).excluded


def test_more_than_half_excludes_from_the_next_opening() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2, 3))
    assert len(reader.current.roster.voices) == 4
    reader.play(1, 2, 3, 4)
    assert _excluded(reader, 4) == 2
    assert set(reader.current.roster.voices) == {address(1), address(2), address(3)}
    assert any(text.startswith("excluded") for text in reader.texts)


def test_half_is_not_enough() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2))
    reader.play(1, 2, 3, 4)
    assert _excluded(reader, 4) is None


def test_verdicts_add_up_over_rounds() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2))
    reader.play(1, 2, 3, 4)
    reader.block(*_verdicts(3))
    reader.play(1, 2, 3, 4)
    assert _excluded(reader, 4) == 3


def test_outcomes_and_segments_are_tallied_apart() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2), *_verdicts(3, outcome=3), *_verdicts(4, segment=1))
    reader.play(1, 2, 3, 4)
    assert _excluded(reader, 4) is None


def test_no_objection_excludes_nobody() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2, 3, 4, outcome=NO_OBJECTION))
    reader.play(1, 2, 3, 4)
    assert _excluded(reader, 4) is None


def test_the_first_verdict_stands_and_another_is_equivocation() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2), *_verdicts(3, outcome=NO_OBJECTION), *_verdicts(3), *_verdicts(1))
    reader.play(1, 2, 3, 4)
    assert _excluded(reader, 4) is None
    assert reader.texts == ["equivocation: another verdict on the same segment"]
    reader.block(*_verdicts(1, evidence="other"))
    assert len(reader.texts) == 2


def test_only_voices_give_verdicts() -> None:
    reader = Reader(params(4, min_weight=2))
    reader.open_with(1, 2)
    reader.block(*_verdicts(3, 4), *_verdicts(1, subject=2))
    assert len(reader.state.membership.verdicts) == 1


def test_an_excluded_one_returns_by_a_join_after_its_last_excluded_round() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2, 3))
    reader.play(1, 2, 3, 4)
    reader.block((address(4), join(address(4), reader.now)))  # too early: the exclusion is not over
    reader.play(1, 2, 3)
    reader.play(1, 2, 3)
    assert (_excluded(reader, 4), reader.state.round) == (None, 3)
    assert address(4) not in reader.current.roster.voices
    reader.block((address(4), join(address(4), reader.now)))
    reader.play(1, 2, 3)
    assert address(4) in reader.current.roster.voices


def test_each_finding_excludes_once() -> None:
    reader = _open(exclusion_rounds=1)
    reader.block(*_verdicts(1, 2, 3))
    reader.play(1, 2, 3, 4)
    reader.play(1, 2, 3)
    reader.block((address(4), join(address(4), reader.now)))
    reader.play(1, 2, 3)
    reader.play(1, 2, 3, 4)
    assert address(4) in reader.current.roster.voices
    reader.block(*_verdicts(1, 2, 3, segment=1))
    reader.play(1, 2, 3, 4)
    assert address(4) not in reader.current.roster.voices


def test_a_void_round_that_could_decide_tallies_too() -> None:
    reader = _open()
    reader.block(*_verdicts(1, 2, 3))
    assert reader.play(1).outcome is Outcome.VOID
    assert _excluded(reader, 4) == 2


def test_an_excluded_one_keeps_a_silent_seat_where_the_floor_needs_it() -> None:
    reader = _open(min_weight=4)
    reader.block(*_verdicts(1, 2, 3))
    reader.play(1, 2, 3, 4)
    assert reader.current.roster.seats[3] == Seat(address(4), 1, False)
    reader.block(*_verdicts(4, subject=1))
    assert reader.texts[-1] == "a verdict by somebody without a voice"
    assert reader.play(1, 2, 3).outcome is Outcome.FINAL


def test_no_answer_counts_only_after_the_window_of_a_challenge() -> None:
    reader = _open(challenge_blocks=2, train_blocks=40)
    no_answer = _verdicts(1, 2, 3, outcome=NO_ANSWER)
    reader.block(*no_answer)
    assert not reader.state.membership.verdicts
    height = reader.now
    reader.block((address(1), Challenge(address(4), 0, 0)), (address(1), Challenge(address(4), 0, 1)))
    reader.skip_to(height + 1)
    reader.block(*no_answer)
    assert not reader.state.membership.verdicts
    reader.block(*no_answer)
    assert len(reader.state.membership.verdicts) == 3


@pytest.mark.parametrize(("role", "counts"), [(Role.VALIDATOR, True), (Role.OBSERVER, False)])
def test_members_and_validators_may_challenge(role: Role, counts: bool) -> None:
    reader = _open(train_blocks=40)
    reader.block((address(9), join(address(9), reader.now, role)))
    reader.block((address(9), Challenge(address(4), 0, 0)), (address(8), Challenge(address(4), 0, 0)))
    assert bool(reader.state.membership.challenges) is counts


def _weighted(*weights: int) -> Environment:
    return Environment(NO_EPOCHS, tuple((address(n), w) for n, w in enumerate(weights, 1)))


def test_verdicts_weigh_what_their_authors_weigh() -> None:
    for authors, last in (((1, 2, 3), None), ((1, 4), 2)):
        reader = Reader(params(None, min_weight=10, exclusion_rounds=2))
        reader.environment = _weighted(2, 2, 2, 9)
        reader.open_with(1, 2, 3, 4)
        reader.block(*_verdicts(*authors, subject=2))
        reader.play(1, 2, 3, 4)
        assert _excluded(reader, 2) == last


def test_a_round_below_the_floor_tallies_nothing() -> None:
    reader = Reader(params(None, min_weight=10))
    reader.environment = _weighted(5, 5, 5)
    reader.open_with(1, 2, 3)
    reader.environment = _weighted(1, 1, 1)
    reader.play(1, 2, 3)
    assert not reader.current.roster.decides
    reader.block(*_verdicts(1, 2, subject=3))
    reader.environment = _weighted(5, 5, 5)
    reader.skip_to(reader.current.deadline + reader.params.commit_blocks)
    assert (reader.state.round, _excluded(reader, 3)) == (2, None)
    reader.play(1, 2, 3)
    assert _excluded(reader, 3) == 2 + reader.params.exclusion_rounds
