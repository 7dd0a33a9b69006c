"""All that outlives a round besides its state, as bytes: the preimage of the roster digest (docs/protocol.md 3).

Encoding and decoding are a strict pair: whoever has the bytes under a roster digest can go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import tags
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Segment, Standing
from gonka_trainer.round.records import Join, decode_record, encode_record
from gonka_trainer.round.summary import Seat
from gonka_trainer.types import ADDRESS_BYTES, DIGEST_BYTES, Address, Digest, Height, sha256, u32, u64
from gonka_trainer.wire import Reader

_T = TypeVar("_T")
_NONE: Final = b"\x00"
_SOME: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class Settled:
    """The last final round: its number, its state root and the digest of its environment."""

    number: int
    root: Digest
    environment: Digest


@dataclass(frozen=True)
class RosterState:
    """What the roster digest of a round covers, at the end of block `last_height` = O - 1.

    `environment` is the digest of the one that R is drawn from; `settled` is None before the first final round;
    `seats` are R's, sorted by address; `members` is the membership before R's seats become "ever in R".
    """

    round: int
    last_height: Height
    environment: Digest
    settled: Settled | None
    seats: tuple[Seat, ...]
    members: Membership


def roster_digest(preimage: bytes) -> Digest:
    """Return SHA-256 over the tag and the canonical bytes."""
    return sha256(tags.ROSTER, preimage)


def encode_roster(state: RosterState) -> bytes:
    """Return the canonical bytes under the roster digest: every list behind its count (u32), sorted by its key.

    Round (u32) and height O - 1 (u64); digest of R's environment; the last final round; seats; keys (authors of joins
    and leaves); participants; who was ever in a roster that could decide; verdicts; exclusions already made;
    challenges.
    """
    members = state.members
    return b"".join(
        (
            u32(state.round),
            u64(state.last_height),
            state.environment,
            _settled(state.settled),
            _list(seat.participant + u64(seat.weight) + bytes([seat.voice]) for seat in state.seats),
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


def decode_roster(data: bytes) -> RosterState:
    """Read canonical bytes; DecodeError for anything else, also for a speaker whose last join names another."""
    reader = _Reader(data)
    number, height, environment = reader.integer(4), Height(reader.integer(8)), reader.digest()
    settled = _read_settled(reader)
    seats = tuple(reader.many(_read_seat))
    members = Membership(
        keys=dict(reader.many(_read_key)),
        participants=dict(reader.many(_read_standing)),
        ever=frozenset(reader.many(_Reader.address)),
        verdicts=dict(reader.many(_read_verdict)),
        tallied=frozenset(reader.many(lambda r: (_read_segment(r), r.integer(1)))),
        challenges=dict(reader.many(lambda r: ((r.address(), _read_segment(r)), Height(r.integer(8))))),
    )
    state = RosterState(number, height, environment, settled, seats, members)
    if [s.participant for s in seats] != sorted({s.participant for s in seats}) or encode_roster(state) != data:
        raise DecodeError("a roster that is not canonical")
    _check_speakers(members)
    return state


def _check_speakers(members: Membership) -> None:
    for participant, standing in members.participants.items():
        if standing.speaker is None:
            continue
        entry = members.keys.get(standing.speaker)
        if entry is None or entry.join is None or entry.join.participant != participant:
            raise DecodeError("a roster with a speaker whose last join does not name its participant")


def _list(items: Iterable[bytes]) -> bytes:
    parts = list(items)
    return u32(len(parts)) + b"".join(parts)


def _settled(settled: Settled | None) -> bytes:
    return _NONE if settled is None else _SOME + u32(settled.number) + settled.root + settled.environment


def _key(entry: KeyEntry) -> bytes:
    record = b"" if entry.join is None else encode_record(entry.join)
    return u64(entry.written) + bytes([len(record)]) + record + _place(entry.joined)


def _standing(s: Standing) -> bytes:
    places = _place(s.delegated) + _place(s.revoked) + _place(s.left)
    excluded = _NONE if s.excluded is None else _SOME + u32(s.excluded)
    return b"".join(
        (_optional(s.speaker), _optional(s.delegate), u64(s.written), places, u64(s.barred), u32(s.absence), excluded)
    )


def _segment(segment: Segment) -> bytes:
    return segment.subject + u32(segment.round) + u32(segment.segment)


def _place(place: Place) -> bytes:
    return u64(place.height) + u32(place.transaction) + u32(place.message)


def _optional(address: Address | None) -> bytes:
    return _NONE if address is None else _SOME + address


class _Reader(Reader):
    """Reads the parts of a roster."""

    def address(self) -> Address:
        return Address(self.raw(ADDRESS_BYTES))

    def digest(self) -> Digest:
        return Digest(self.raw(DIGEST_BYTES))

    def flag(self) -> bool:
        value = self.integer(1)
        if value > 1:
            raise DecodeError(f"flag {value} is neither 0 nor 1")
        return value == 1

    def optional(self, read: Callable[[_Reader], _T]) -> _T | None:
        return read(self) if self.flag() else None

    def many(self, read: Callable[[_Reader], _T]) -> list[_T]:
        return [read(self) for _ in range(self.integer(4))]


def _read_settled(reader: _Reader) -> Settled | None:
    return reader.optional(lambda r: Settled(r.integer(4), r.digest(), r.digest()))


def _read_seat(reader: _Reader) -> Seat:
    return Seat(reader.address(), reader.integer(8), reader.flag())


def _read_key(reader: _Reader) -> tuple[Address, KeyEntry]:
    key, written, raw = reader.address(), Height(reader.integer(8)), reader.raw(reader.integer(1))
    join = decode_record(raw) if raw else None
    if join is not None and not isinstance(join, Join):
        raise DecodeError("a roster with another record in a join's place")
    return key, KeyEntry(written, join, _read_place(reader))


def _read_standing(reader: _Reader) -> tuple[Address, Standing]:
    return reader.address(), Standing(
        speaker=reader.optional(_Reader.address),
        delegate=reader.optional(_Reader.address),
        written=Height(reader.integer(8)),
        delegated=_read_place(reader),
        revoked=_read_place(reader),
        left=_read_place(reader),
        barred=Height(reader.integer(8)),
        absence=reader.integer(4),
        excluded=reader.optional(lambda r: r.integer(4)),
    )


def _read_verdict(reader: _Reader) -> tuple[tuple[Address, Segment], tuple[int, Digest]]:
    return (reader.address(), _read_segment(reader)), (reader.integer(1), reader.digest())


def _read_segment(reader: _Reader) -> Segment:
    return Segment(reader.address(), reader.integer(4), reader.integer(4))


def _read_place(reader: _Reader) -> Place:
    return Place(Height(reader.integer(8)), reader.integer(4), reader.integer(4))
