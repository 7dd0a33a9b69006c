"""Block headers as CometBFT 0.38's RPC writes them, and the hashes and encodings of its data structures: pure.

CometBFT's specification (core/data_structures, core/encoding): RFC 6962 Merkle trees over SHA-256, and protobuf in the
canonical form, of which only a few kinds of fields are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.types import DIGEST_BYTES, ZERO_DIGEST, Digest, Height, sha256

NANOSECONDS: Final = 1_000_000_000
_FRACTION_DIGITS: Final = 9
_HASH_FIELDS: Final = (
    "last_commit_hash",
    "data_hash",
    "validators_hash",
    "next_validators_hash",
    "consensus_hash",
    "app_hash",
    "last_results_hash",
    "evidence_hash",
    "proposer_address",
)


@dataclass(frozen=True, slots=True)
class Header:
    """What of a block's header is used here; `fields` are its encoded fields in the order of the header's hash."""

    chain_id: str
    height: Height
    time_ns: int
    previous_hash: Digest
    data_hash: Digest
    last_results_hash: Digest
    validators_hash: Digest
    next_validators_hash: Digest
    fields: tuple[bytes, ...]


def merkle_root(items: Sequence[bytes]) -> Digest:
    """Return the root of the RFC 6962 tree over the items; of none, SHA-256 of nothing."""
    if not items:
        return sha256()
    level = [sha256(b"\x00", item) for item in items]
    while len(level) > 1:  # pairing neighbours and lifting an odd last one gives the same tree as splitting
        paired = [sha256(b"\x01", level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = paired + level[len(paired) * 2 :]
    return level[0]


def header_hash(header: Header) -> Digest:
    """Return the block's hash, which is its header's."""
    return merkle_root(header.fields)


def varint(value: int) -> bytes:
    """Return the base-128 form of a number, which is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(field: int, value: int) -> bytes:
    """Return a varint field; nothing for 0."""
    return varint(field << 3) + varint(value) if value else b""


def fixed_field(field: int, value: int) -> bytes:
    """Return a field of 64 bits; nothing for 0."""
    return varint(field << 3 | 1) + value.to_bytes(8, "little", signed=True) if value else b""


def bytes_field(field: int, value: bytes, always: bool = False) -> bytes:
    """Return a field of bytes; nothing for no bytes, unless `always`."""
    return varint(field << 3 | 2) + varint(len(value)) + value if value or always else b""


def time_message(moment_ns: int) -> bytes:
    """Return a Timestamp's encoding."""
    seconds, nanos = divmod(moment_ns, NANOSECONDS)
    return number_field(1, seconds) + number_field(2, nanos)


def block_id_message(raw: dict[str, Any]) -> bytes:
    """Return the encoding of a block's id from its JSON; the canonical form in votes is the same."""
    parts = number_field(1, int(raw["parts"]["total"])) + bytes_field(2, bytes.fromhex(raw["parts"]["hash"]))
    return bytes_field(1, bytes.fromhex(raw["hash"])) + bytes_field(2, parts, always=True)


def time_ns(text: str) -> int:
    """Return an RFC 3339 time in UTC as nanoseconds since 1970; ValueError for other forms."""
    if not text.endswith("Z"):
        raise ValueError("time is not in UTC")
    seconds, _, fraction = text[:-1].partition(".")
    if len(fraction) > _FRACTION_DIGITS or (fraction and not fraction.isdigit()):
        raise ValueError("fraction of a second is not a number of nanoseconds")
    whole = int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp())
    return whole * NANOSECONDS + int(fraction.ljust(_FRACTION_DIGITS, "0"))


def digest(text: str) -> Digest:
    """Return a hash from its hex digits; the zero digest for none; ValueError for another length."""
    data = bytes.fromhex(text)
    if len(data) not in {0, DIGEST_BYTES}:
        raise ValueError(f"hash of {len(data)} bytes")
    return Digest(data) if data else ZERO_DIGEST


def parse_header(raw: Any) -> Header:
    """Read a header; DecodeError when it has not the form of CometBFT 0.38."""
    try:
        return _header(raw)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DecodeError(f"not a header of CometBFT 0.38: {type(error).__name__} {error}") from error


def _header(raw: dict[str, Any]) -> Header:
    height, moment = int(raw["height"]), time_ns(raw["time"])
    version = number_field(1, int(raw["version"]["block"])) + number_field(2, int(raw["version"].get("app", 0)))
    fields = (
        version,
        bytes_field(1, raw["chain_id"].encode()),
        number_field(1, height),
        time_message(moment),
        block_id_message(raw["last_block_id"]),
        *(bytes_field(1, bytes.fromhex(raw[name])) for name in _HASH_FIELDS),
    )
    return Header(
        chain_id=raw["chain_id"],
        height=Height(height),
        time_ns=moment,
        previous_hash=digest(raw["last_block_id"]["hash"]),
        data_hash=digest(raw["data_hash"]),
        last_results_hash=digest(raw["last_results_hash"]),
        validators_hash=digest(raw["validators_hash"]),
        next_validators_hash=digest(raw["next_validators_hash"]),
        fields=fields,
    )
