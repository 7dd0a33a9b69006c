"""Challenges, verdicts and the exclusions that follow from them (docs/protocol.md 6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from gonka_trainer.round.membership import Membership, Segment
from gonka_trainer.round.records import Challenge, VerdictRecord
from gonka_trainer.round.roster import Roster
from gonka_trainer.types import Address, Height, Role

NO_OBJECTION: Final = 0
"""The outcome of a verdict that excludes nobody."""

NO_ANSWER: Final = 1
"""The outcome that counts only after the window of a challenge; all above it name a fault that was found."""


def count_challenge(members: Membership, height: Height, author: Address, record: Challenge) -> tuple[Membership, str]:
    """Count a challenge of a member or validator; the latest of an author on a segment stands."""
    challenger = members.speaks_for(author)
    join = members.join_of(challenger) if challenger is not None else None
    if challenger is None or join is None or join.role is Role.OBSERVER:
        return members, "a challenge by somebody who is neither member nor validator"
    about = Segment(record.subject, record.round, record.segment)
    return replace(members, challenges={**members.challenges, (challenger, about): height}), ""


def count_verdict(
    members: Membership, roster: Roster, height: Height, author: Address, record: VerdictRecord, challenge_blocks: int
) -> tuple[Membership, str]:
    """Count a verdict of a voice of the open round; the first of (participant, segment) stands."""
    participant = roster.keys.get(author)
    if participant is None:
        return members, "a verdict by somebody without a voice"
    about = Segment(record.subject, record.round, record.segment)
    if record.outcome == NO_ANSWER and not _window_passed(members, about, height, challenge_blocks):
        return members, "a verdict of no answer before the window of a challenge is over"
    found, first = (record.outcome, record.evidence), members.verdicts.get((participant, about))
    if first is not None:
        return members, "" if first == found else "equivocation: another verdict on the same segment"
    return replace(members, verdicts={**members.verdicts, (participant, about): found}), ""


def after_round(
    members: Membership, roster: Roster, number: int, ended: Height, exclusion_rounds: int
) -> tuple[Membership, tuple[Address, ...]]:
    """Release whose last excluded round is `number`, tally verdicts; return the membership and the newly excluded."""
    for participant, standing in sorted(members.participants.items()):
        if standing.excluded == number:
            released = replace(standing, excluded=None, barred=max(standing.barred, ended))
            members = members.with_standing(participant, released)
    guilty = _convicted(members, roster) if roster.decides else []
    subjects = sorted({about.subject for about, _ in guilty}) if exclusion_rounds > 0 else []
    for subject in subjects:
        last = max(number + exclusion_rounds, members.standing(subject).excluded or 0)
        members = members.with_standing(subject, replace(members.standing(subject), excluded=last))
    return replace(members, tallied=members.tallied.union(guilty)), tuple(subjects)


def _convicted(members: Membership, roster: Roster) -> list[tuple[Segment, int]]:
    """Return the (segment, outcome) that voices of more than W/2 agree on and that excluded nobody yet."""
    voices, tally = roster.voices, Counter[tuple[Segment, int]]()
    for (participant, about), (outcome, _) in members.verdicts.items():
        if outcome != NO_OBJECTION:
            tally[about, outcome] += voices.get(participant, 0)
    return [item for item, weight in tally.items() if roster.majority(weight) and item not in members.tallied]


def _window_passed(members: Membership, about: Segment, height: Height, challenge_blocks: int) -> bool:
    return any(a == about and height > h + challenge_blocks for (_, a), h in members.challenges.items())
