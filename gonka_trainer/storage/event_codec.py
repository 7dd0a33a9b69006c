"""Events as canonical bytes: `kind u8 || fields`, integers big-endian of fixed width. Never pickle, never JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.round.environment import decode_environment, encode_environment
from gonka_trainer.round.events import (
    BlobHeld,
    BlockSeen,
    CaughtUp,
    EnvironmentRead,
    Event,
    PossessionProved,
    Resumed,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.records import PlacedRecord, decode_record, encode_record
from gonka_trainer.round.roster_bytes import decode_roster, encode_roster
from gonka_trainer.types import ADDRESS_BYTES, DIGEST_BYTES, Address, Digest, Height, lp, u16, u32, u64
from gonka_trainer.wire import Reader

POSSESSION_BYTES: Final = 16


def encode_event(event: Event) -> bytes:
    """Return the event's canonical bytes; ValueError or OverflowError when a field does not fit."""
    kind, write, _ = _CODECS[type(event)]
    return bytes([kind]) + write(event)


def decode_event(data: bytes) -> Event:
    """Return the event whose canonical bytes these are; DecodeError for anything else."""
    reader = Reader(data)
    read = _READERS.get(reader.integer(1))
    if read is None:
        raise DecodeError(f"unknown kind of event {data[0]}")
    event = read(reader)
    reader.end()
    return event


def _fixed(value: bytes, size: int) -> bytes:
    if len(value) != size:
        raise ValueError(f"{size} bytes wanted, {len(value)} given")
    return value


def _digest(reader: Reader) -> Digest:
    return Digest(reader.raw(DIGEST_BYTES))


def _address(reader: Reader) -> Address:
    return Address(reader.raw(ADDRESS_BYTES))


def _flag(reader: Reader) -> bool:
    value = reader.integer(1)
    if value > 1:
        raise DecodeError(f"flag {value} is neither 0 nor 1")
    return value == 1


def _write_placed(placed: PlacedRecord) -> bytes:
    record = encode_record(placed.record)
    author = _fixed(placed.author, ADDRESS_BYTES)
    return u32(placed.transaction) + u32(placed.message) + author + bytes([len(record)]) + record


def _read_placed(reader: Reader) -> PlacedRecord:
    transaction, message, author = reader.integer(4), reader.integer(4), _address(reader)
    return PlacedRecord(transaction, message, author, decode_record(reader.raw(reader.integer(1))))


def _write_block(event: BlockSeen) -> bytes:
    head = u64(event.height) + _fixed(event.block_hash, DIGEST_BYTES) + u32(len(event.records))
    return head + b"".join(map(_write_placed, event.records))


def _read_block(reader: Reader) -> BlockSeen:
    height, block_hash, count = Height(reader.integer(8)), _digest(reader), reader.integer(4)
    return BlockSeen(height, block_hash, tuple(_read_placed(reader) for _ in range(count)))


def _write_environment(event: EnvironmentRead) -> bytes:
    return u64(event.height) + lp(encode_environment(event.environment))


def _read_environment(reader: Reader) -> EnvironmentRead:
    height = Height(reader.integer(8))
    return EnvironmentRead(height, decode_environment(reader.raw(reader.integer(4))))


def _write_possession(event: PossessionProved) -> bytes:
    addresses = b"".join(_fixed(address, ADDRESS_BYTES) for address in event.participants)
    head = u32(event.round) + _fixed(event.possession, POSSESSION_BYTES)
    return head + u16(len(event.participants)) + addresses


def _read_possession(reader: Reader) -> PossessionProved:
    number, possession, count = reader.integer(4), reader.raw(POSSESSION_BYTES), reader.integer(2)
    return PossessionProved(number, tuple(_address(reader) for _ in range(count)), possession)


def _write_resumed(event: Resumed) -> bytes:
    final = b"" if event.final is None else encode_environment(event.final)
    return lp(encode_roster(event.roster)) + lp(encode_environment(event.environment)) + lp(final)


def _read_resumed(reader: Reader) -> Resumed:
    roster, environment, final = (reader.raw(reader.integer(4)) for _ in range(3))
    return Resumed(decode_roster(roster), decode_environment(environment), decode_environment(final) if final else None)


_Codec = tuple[int, Callable[[Any], bytes], Callable[[Reader], Event]]

_CODECS: Final[dict[type, _Codec]] = {
    BlockSeen: (1, _write_block, _read_block),
    CaughtUp: (2, lambda e: u64(e.height), lambda r: CaughtUp(Height(r.integer(8)))),
    EnvironmentRead: (3, _write_environment, _read_environment),
    UpdateReady: (
        4,
        lambda e: u32(e.round) + _fixed(e.commitment, DIGEST_BYTES),
        lambda r: UpdateReady(r.integer(4), _digest(r)),
    ),
    BlobHeld: (
        5,
        lambda e: u32(e.round) + _fixed(e.participant, ADDRESS_BYTES) + bytes([e.form_good]),
        lambda r: BlobHeld(r.integer(4), _address(r), _flag(r)),
    ),
    PossessionProved: (6, _write_possession, _read_possession),
    StateComputed: (
        7,
        lambda e: u32(e.round) + _fixed(e.root, DIGEST_BYTES) + u32(e.attempt) + u64(e.tokens),
        lambda r: StateComputed(r.integer(4), _digest(r), r.integer(4), r.integer(8)),
    ),
    StateSynced: (
        8,
        lambda e: _fixed(e.root, DIGEST_BYTES) + u64(e.tokens),
        lambda r: StateSynced(_digest(r), r.integer(8)),
    ),
    Resumed: (9, _write_resumed, _read_resumed),
}
_READERS: Final = {kind: read for kind, _, read in _CODECS.values()}
