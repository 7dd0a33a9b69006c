"""Absence: who is dropped, and when (docs/protocol.md 3)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from gonka_trainer.round.membership import Membership
from gonka_trainer.round.roster import Roster
from gonka_trainer.types import Address, Height


def after_final(
    members: Membership, roster: Roster, committed: Collection[Address], ended: Height, absent_rounds: int
) -> tuple[Membership, tuple[Address, ...]]:
    """Count a final round: absence grows for each voice without a commit; return the membership and who is dropped.

    Dropped is who reaches `absent_rounds`; only a join in a block after `ended` brings it back.
    """
    dropped = []
    for participant in sorted(set(roster.voices) - set(committed)):
        standing = members.standing(participant)
        standing = replace(standing, absence=standing.absence + 1)
        if standing.absence >= absent_rounds:
            standing = replace(standing, barred=ended)
            dropped.append(participant)
        members = members.with_standing(participant, standing)
    return members, tuple(dropped)
