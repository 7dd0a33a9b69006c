"""Who speaks for whom, who has joined, left or is barred (docs/protocol.md 1), and what else outlives a round.

A pair (K, P) is complete when K's last join names P, and K = P or P's last delegate names K. Completing it makes K
the *speaker* of P until another pair of P is complete, P revokes K, or K joins another participant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gonka_trainer.round.records import Delegate, Join, Leave, Record, Revoke
from gonka_trainer.types import Address, Digest, Height, Role


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a record stands on the chain; places compare in the order of the log."""

    height: Height
    transaction: int
    message: int


NEVER: Final = Height(0)
"""Before every block."""

NOWHERE: Final = Place(NEVER, 0, 0)
"""Before every record."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """An author of joins and leaves: the height that its last one was written at, and its last join."""

    written: Height = NEVER
    join: Join | None = None
    joined: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Standing:
    """A participant. `barred`: only a join in a later block counts; `excluded`: the last round it is excluded from."""

    speaker: Address | None = None
    delegate: Address | None = None
    written: Height = NEVER
    delegated: Place = NOWHERE
    revoked: Place = NOWHERE
    left: Place = NOWHERE
    barred: Height = NEVER
    absence: int = 0
    excluded: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """What a challenge or a verdict is about."""

    subject: Address
    round: int
    segment: int


@dataclass(frozen=True)
class Membership:
    """All that outlives a round besides its state; mappings are copied, never changed.

    `ever`: who was ever in a roster that could decide. `verdicts`: (author, segment) -> (outcome, evidence).
    `tallied`: (segment, outcome) that excluded their subject already. `challenges`: (author, segment) -> height.
    """

    keys: Mapping[Address, KeyEntry] = field(default_factory=dict)
    participants: Mapping[Address, Standing] = field(default_factory=dict)
    ever: frozenset[Address] = frozenset()
    verdicts: Mapping[tuple[Address, Segment], tuple[int, Digest]] = field(default_factory=dict)
    tallied: frozenset[tuple[Segment, int]] = frozenset()
    challenges: Mapping[tuple[Address, Segment], Height] = field(default_factory=dict)

    def standing(self, participant: Address) -> Standing:
        """Return what is known of the participant; a stranger has the defaults."""
        return self.participants.get(participant, _STRANGER)

    def speaks_for(self, key: Address) -> Address | None:
        """Return the participant whose speaker the key is."""
        join = self.keys.get(key, _NO_KEY).join
        return join.participant if join is not None and self.standing(join.participant).speaker == key else None

    def join_of(self, participant: Address) -> Join | None:
        """Return the counting join of a participant that is in the run, whatever its role; None when it is not in.

        In: it has a speaker, whose last join stands after its last leave and in a block after the one it was barred
        in, and it is not excluded.
        """
        standing = self.standing(participant)
        if standing.speaker is None or standing.excluded is not None:
            return None
        entry = self.keys[standing.speaker]
        after = entry.joined > standing.left and entry.joined.height > standing.barred
        return entry.join if after else None

    def is_member(self, participant: Address) -> bool:
        """Whether the participant is in the run with a vote."""
        join = self.join_of(participant)
        return join is not None and join.role is Role.MEMBER

    def members(self) -> list[Address]:
        """Return all participants that are in with a vote, sorted."""
        return sorted(p for p in self.participants if self.is_member(p))

    def with_standing(self, participant: Address, standing: Standing) -> Membership:
        """Return a copy with this participant's entry put in."""
        return replace(self, participants={**self.participants, participant: standing})

    def with_key(self, key: Address, entry: KeyEntry) -> Membership:
        """Return a copy with this author's entry put in."""
        return replace(self, keys={**self.keys, key: entry})

    def present(self, participant: Address) -> Membership:
        """Return a copy in which the participant's absence is 0."""
        standing = self.standing(participant)
        if standing.absence == 0:
            return self
        return self.with_standing(participant, replace(standing, absence=0))


_STRANGER: Final = Standing()
_NO_KEY: Final = KeyEntry()


def apply(members: Membership, place: Place, author: Address, record: Record) -> tuple[Membership, str]:
    """Count a delegate, revoke, join or leave; return the membership and why the record is nothing ("" if it counts).

    Records of other kinds change nothing.
    """
    match record:
        case Delegate() | Revoke():
            last = members.standing(author).written
        case Join() | Leave():
            last = members.keys.get(author, _NO_KEY).written
        case _:
            return members, ""
    if not last < record.written <= place.height:
        return members, f"written at {record.written}, not above {last} and at most {place.height}"
    match record:
        case Delegate():
            return _delegate(members, place, author, record), ""
        case Revoke():
            return _revoke(members, place, author, record), ""
        case Join():
            return _join(members, place, author, record), ""
    return _leave(members, place, author, record)


def _delegate(members: Membership, place: Place, author: Address, record: Delegate) -> Membership:
    standing = replace(members.standing(author), delegate=record.key, delegated=place, written=record.written)
    join = members.keys.get(record.key, _NO_KEY).join
    if join is not None and join.participant == author:
        standing = replace(standing, speaker=record.key)
    return members.with_standing(author, standing)


def _revoke(members: Membership, place: Place, author: Address, record: Revoke) -> Membership:
    standing = replace(members.standing(author), revoked=place, written=record.written)
    if standing.delegate == record.key:
        standing = replace(standing, delegate=None)
    if standing.speaker == record.key:
        standing = replace(standing, speaker=None)
    return members.with_standing(author, standing)


def _join(members: Membership, place: Place, author: Address, record: Join) -> Membership:
    former = members.speaks_for(author)
    if former is not None and former != record.participant:
        members = members.with_standing(former, replace(members.standing(former), speaker=None))
    members = members.with_key(author, KeyEntry(record.written, record, place))
    standing = members.standing(record.participant)
    if author not in {record.participant, standing.delegate, standing.speaker}:
        return members
    return members.with_standing(record.participant, replace(standing, speaker=author, absence=0))


def _leave(members: Membership, place: Place, author: Address, record: Leave) -> tuple[Membership, str]:
    standing = members.standing(record.participant)
    if author not in {record.participant, standing.speaker}:
        return members, "a leave by somebody who does not speak for the participant"
    members = members.with_standing(record.participant, replace(standing, left=place))
    return members.with_key(author, replace(members.keys.get(author, _NO_KEY), written=record.written)), ""
