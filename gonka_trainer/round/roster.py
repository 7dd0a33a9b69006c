"""The roster R of a round: seats, voices, weights, keys, frozen at the opening (docs/protocol.md, assumption and 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from gonka_trainer.round import tags
from gonka_trainer.round.environment import Environment
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Segment, Standing
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.summary import Seat
from gonka_trainer.types import Address, Digest, Height, sha256, u32, u64


@dataclass(frozen=True)
class Roster:
    """R of one round. `seats` are sorted by address; `keys` says which key speaks for whom and has voices only.

    `weight` is W, the weight of all seats; `decides` whether it reaches min_weight; `digest` the roster digest.
    """

    seats: tuple[Seat, ...]
    keys: Mapping[Address, Address]
    weight: int
    decides: bool
    digest: Digest

    @cached_property
    def voices(self) -> Mapping[Address, int]:
        """The weight of each participant with a voice."""
        return {seat.participant: seat.weight for seat in self.seats if seat.voice}

    def majority(self, weight: int) -> bool:
        """Whether this weight is more than W/2."""
        return 2 * weight > self.weight


def weights(params: RoundParams, environment: Environment) -> Mapping[Address, int]:
    """Return the weight of everybody who may be in a roster: of the manifest's list, else the environment's."""
    if params.equal_members is not None:
        return dict.fromkeys(params.equal_members, 1)
    return environment.by_address


def draw(
    params: RoundParams, members: Membership, environment: Environment, number: int, last_height: Height
) -> Roster:
    """Return R of round `number` from the membership at the end of block `last_height` = O - 1."""
    by_address = weights(params, environment)
    voices = _heaviest(members.members(), by_address)[: params.roster_limit]
    weight = sum(by_address[p] for p in voices)
    silent = _silent(params, members, by_address, weight)
    weight += sum(by_address[p] for p in silent)
    heard = frozenset(voices)
    seats = tuple(Seat(p, by_address[p], voice=p in heard) for p in sorted(heard.union(silent)))
    keys = {key: p for p in voices if (key := members.standing(p).speaker) is not None}
    digest = sha256(tags.ROSTER, encode_roster(members, seats, number, last_height))
    return Roster(seats, keys, weight, weight >= params.min_weight, digest)


def joined_weight(params: RoundParams, members: Membership, environment: Environment) -> int:
    """Return the weight of all members, as far as the roster's limit lets them in."""
    by_address = weights(params, environment)
    return sum(by_address[p] for p in _heaviest(members.members(), by_address)[: params.roster_limit])


def _silent(params: RoundParams, members: Membership, by_address: Mapping[Address, int], weight: int) -> list[Address]:
    """Return just enough of the departed, heaviest first, to bring `weight` up to min_weight (all, if too few)."""
    chosen: list[Address] = []
    for participant in _heaviest((p for p in members.ever if not members.is_member(p)), by_address):
        if weight >= params.min_weight:
            break
        chosen.append(participant)
        weight += by_address[participant]
    return chosen


def _heaviest(participants: Iterable[Address], by_address: Mapping[Address, int]) -> list[Address]:
    """Return those with a weight, heaviest first, ties by address."""
    return sorted((p for p in participants if by_address.get(p, 0) > 0), key=lambda p: (-by_address[p], p))


def encode_roster(members: Membership, seats: tuple[Seat, ...], number: int, last_height: Height) -> bytes:
    """Return the canonical bytes under the roster digest: every list behind its count (u32), sorted by its key.

    Round (u32) and height O - 1 (u64); seats; keys (authors of joins and leaves); participants; who was ever in a
    roster that could decide; verdicts; exclusions already made; challenges.
    """
    return b"".join(
        (
            u32(number),
            u64(last_height),
            _list(seat.participant + u64(seat.weight) + bytes([seat.voice]) for seat in seats),
            _list(key + _key(members.keys[key]) for key in sorted(members.keys)),
            _list(p + _standing(members.participants[p]) for p in sorted(members.participants)),
            _list(sorted(members.ever)),
            _list(
                author + _segment(segment) + bytes([outcome]) + evidence
                for (author, segment), (outcome, evidence) in sorted(members.verdicts.items())
            ),
            _list(_segment(segment) + bytes([outcome]) for segment, outcome in sorted(members.tallied)),
            _list(author + _segment(about) + u64(h) for (author, about), h in sorted(members.challenges.items())),
        )
    )


def _list(items: Iterable[bytes]) -> bytes:
    parts = list(items)
    return u32(len(parts)) + b"".join(parts)


def _key(entry: KeyEntry) -> bytes:
    join = b"\x00" if entry.join is None else b"\x01" + entry.join.participant + bytes([entry.join.role])
    return u64(entry.written) + join + _place(entry.joined)


def _standing(s: Standing) -> bytes:
    places = _place(s.delegated) + _place(s.revoked) + _place(s.left)
    excluded = b"\x00" if s.excluded is None else b"\x01" + u32(s.excluded)
    return b"".join(
        (_optional(s.speaker), _optional(s.delegate), u64(s.written), places, u64(s.barred), u32(s.absence), excluded)
    )


def _segment(segment: Segment) -> bytes:
    return segment.subject + u32(segment.round) + u32(segment.segment)


def _place(place: Place) -> bytes:
    return u64(place.height) + u32(place.transaction) + u32(place.message)


def _optional(address: Address | None) -> bytes:
    return b"\x00" if address is None else b"\x01" + address
