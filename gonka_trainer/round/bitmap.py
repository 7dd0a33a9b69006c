"""Bitmaps over a round's sorted committers (docs/protocol.md 3): bit i is bit 7 - (i mod 8) of byte i // 8."""

from __future__ import annotations

from collections.abc import Iterable

from gonka_trainer.errors import DecodeError


def pack(positions: Iterable[int], count: int) -> bytes:
    """Return ceil(count/8) bytes with the bits of `positions` set; ValueError for a position outside 0..count-1."""
    out = bytearray((count + 7) // 8)
    for position in positions:
        if not 0 <= position < count:
            raise ValueError(f"position {position} of {count}")
        out[position // 8] |= 0x80 >> (position % 8)
    return bytes(out)


def unpack(bitmap: bytes, count: int) -> frozenset[int]:
    """Return the positions whose bits are set; DecodeError for a wrong length or spare bits that are not 0."""
    if len(bitmap) != (count + 7) // 8:
        raise DecodeError(f"bitmap of {len(bitmap)} bytes for {count} committers")
    found = frozenset(i for i in range(len(bitmap) * 8) if bitmap[i // 8] & (0x80 >> (i % 8)))
    if any(i >= count for i in found):
        raise DecodeError("a spare bit is set")
    return found
