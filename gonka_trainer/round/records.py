"""The records of the run log: what each holds and its canonical bytes (docs/protocol.md 2).

A record is `version u8 || kind u8 || fields`; integers are big-endian and of fixed width, digests and addresses raw,
free-length bytes stand behind a u8 length. At most 192 bytes, so that the base64 fits a memo of 256 bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.types import Address, Digest, Height, Role

VERSION: Final = 1
MAX_RECORD_BYTES: Final = 192
MAX_URL_BYTES: Final = 120
MAX_HOST_BYTES: Final = 64
MAX_SOFTWARE_BYTES: Final = 24
MAX_BITMAP_BYTES: Final = 128  # 1,024 members, one bit each


@dataclass(frozen=True, slots=True)
class Announce:
    """A run exists: the manifest's hash and where to get the document (an https URL, or empty)."""

    manifest_hash: Digest
    url: bytes


@dataclass(frozen=True, slots=True)
class Delegate:
    """The participant (the author) lets `key` speak for it; `written` is the height at which this was written."""

    key: Address
    written: Height


@dataclass(frozen=True, slots=True)
class Revoke:
    """The participant (the author) takes its word from `key`."""

    key: Address
    written: Height


@dataclass(frozen=True, slots=True)
class Join:
    """The author binds itself to `participant` and says where its daemon listens and with which TLS key."""

    participant: Address
    role: Role
    spki: Digest
    host: bytes
    port: int
    software: bytes
    written: Height


@dataclass(frozen=True, slots=True)
class Leave:
    """`participant` leaves at the next opening; counts from it or from its speaking key."""

    participant: Address
    written: Height


@dataclass(frozen=True, slots=True)
class Commit:
    """The commitment of the author's participant for a round."""

    round: int
    commitment: Digest


@dataclass(frozen=True, slots=True)
class Attest:
    """Which of the round's committed blobs the author holds, in good form.

    `list_digest` is of (block hash at the close, the sorted committers); `possession` proves bytes; `bitmap` is packed
    as in `round.bitmap`.
    """

    round: int
    list_digest: bytes
    possession: bytes
    bitmap: bytes


@dataclass(frozen=True, slots=True)
class StateRoot:
    """What the author's participant computed for a round, and the environment and roster that it read."""

    round: int
    root: Digest
    environment: Digest
    roster: Digest


@dataclass(frozen=True, slots=True)
class Missing:
    """Blobs of the round that their owner could not get (sharded topology only)."""

    round: int
    bitmap: bytes


@dataclass(frozen=True, slots=True)
class Challenge:
    """Opens the window in which `subject` must answer for a segment of its round."""

    subject: Address
    round: int
    segment: int


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """The author's finding on a segment: `outcome` 0 is no objection, 1 no answer, others name the fault."""

    subject: Address
    round: int
    segment: int
    outcome: int
    evidence: Digest


@dataclass(frozen=True, slots=True)
class Secret:
    """A validator's secret for a round: its hash first (`revealed` 0), the secret itself later (1)."""

    round: int
    revealed: int
    value: Digest


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The author is alive at this inner step of this round; decides nothing."""

    round: int
    inner_step: int


Record = (
    Announce
    | Delegate
    | Revoke
    | Join
    | Leave
    | Commit
    | Attest
    | StateRoot
    | Missing
    | Challenge
    | VerdictRecord
    | Secret
    | Heartbeat
)


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with the account that the chain checked as its author, and its place in the block."""

    transaction: int
    message: int
    author: Address
    record: Record


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise DecodeError(f"record ends at byte {len(self.data)}, {self.at + count} wanted")
        self.at += count
        return self.data[self.at - count : self.at]

    def integer(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")


_Codec = tuple[Callable[[Any], bytes], Callable[[_Reader], Any]]


def _integer(count: int) -> _Codec:
    return (lambda value: int(value).to_bytes(count, "big"), lambda reader: reader.integer(count))


def _fixed(count: int) -> _Codec:
    def write(value: bytes) -> bytes:
        if len(value) != count:
            raise ValueError(f"{count} bytes wanted, {len(value)} given")
        return bytes(value)

    return write, lambda reader: reader.take(count)


def _free(limit: int) -> _Codec:
    def write(value: bytes) -> bytes:
        if len(value) > limit:
            raise ValueError(f"at most {limit} bytes, {len(value)} given")
        return bytes([len(value)]) + value

    def read(reader: _Reader) -> bytes:
        length = reader.integer(1)
        if length > limit:
            raise DecodeError(f"field of {length} bytes, at most {limit}")
        return reader.take(length)

    return write, read


def _read_role(reader: _Reader) -> Role:
    value = reader.integer(1)
    if value not in {role.value for role in Role}:
        raise DecodeError(f"role {value} is unknown")
    return Role(value)


def _read_flag(reader: _Reader) -> int:
    value = reader.integer(1)
    if value > 1:
        raise DecodeError(f"flag {value} is neither 0 nor 1")
    return value


_U16, _U32, _U64, _U8 = _integer(2), _integer(4), _integer(8), _integer(1)
_ADDRESS, _DIGEST, _HALF = _fixed(20), _fixed(32), _fixed(16)
_FLAG: _Codec = (_U8[0], _read_flag)
_ROLE: _Codec = (_U8[0], _read_role)
_BITMAP = _free(MAX_BITMAP_BYTES)

_LAYOUT: Final[dict[type, tuple[int, tuple[_Codec, ...]]]] = {
    Announce: (1, (_DIGEST, _free(MAX_URL_BYTES))),
    Delegate: (2, (_ADDRESS, _U64)),
    Revoke: (3, (_ADDRESS, _U64)),
    Join: (4, (_ADDRESS, _ROLE, _DIGEST, _free(MAX_HOST_BYTES), _U16, _free(MAX_SOFTWARE_BYTES), _U64)),
    Leave: (5, (_ADDRESS, _U64)),
    Commit: (6, (_U32, _DIGEST)),
    Attest: (7, (_U32, _HALF, _HALF, _BITMAP)),
    StateRoot: (8, (_U32, _DIGEST, _DIGEST, _DIGEST)),
    Missing: (9, (_U32, _BITMAP)),
    Challenge: (10, (_ADDRESS, _U32, _U32)),
    VerdictRecord: (11, (_ADDRESS, _U32, _U32, _U8, _DIGEST)),
    Secret: (12, (_U32, _FLAG, _DIGEST)),
    Heartbeat: (13, (_U32, _U32)),
}
_BY_KIND: Final = {kind: (cls, codecs) for cls, (kind, codecs) in _LAYOUT.items()}


def encode_record(record: Record) -> bytes:
    """Return the record's canonical bytes; ValueError or OverflowError when a field does not fit."""
    kind, codecs = _LAYOUT[type(record)]
    body = b"".join(
        write(getattr(record, field.name)) for (write, _), field in zip(codecs, fields(record), strict=True)
    )
    return bytes([VERSION, kind]) + body


def decode_record(data: bytes) -> Record:
    """Return the record whose canonical bytes these are; DecodeError for anything else."""
    if len(data) > MAX_RECORD_BYTES:
        raise DecodeError(f"{len(data)} bytes, at most {MAX_RECORD_BYTES}")
    reader = _Reader(data)
    if reader.integer(1) != VERSION:
        raise DecodeError("unknown version")
    found = _BY_KIND.get(reader.integer(1))
    if found is None:
        raise DecodeError("unknown kind")
    cls, codecs = found
    record: Record = cls(*(read(reader) for _, read in codecs))
    if reader.at != len(data):
        raise DecodeError(f"{len(data) - reader.at} spare bytes")
    return record


def to_text(record: Record) -> str:
    """Return the record as it stands in a memo or a KV value: canonical base64."""
    return base64.b64encode(encode_record(record)).decode("ascii")


def from_text(text: bytes) -> Record:
    """Read a memo's or value's bytes; DecodeError unless they are the canonical base64 of a record and nothing else."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError("not base64") from error
    if base64.b64encode(data) != text:
        raise DecodeError("base64 is not canonical")
    return decode_record(data)
