"""RIPEMD-160 (Dobbertin, Bosselaers, Preneel, 1996): OpenSSL's where it is built in, else in Python.

Account addresses need it, and OpenSSL 3 may come without it. Inputs here are 32 bytes, so speed does not matter.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

_MASK: Final = 0xFFFFFFFF
_START: Final[tuple[int, ...]] = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_RHO: Final = (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8)
_K_LEFT: Final = (0x00000000, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_K_RIGHT: Final = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0x00000000)
_SHIFTS: Final = (  # by round and message word
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7),
    (13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9),
    (14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6),
    (15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5),
)


def _orders(first: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    orders = [first]
    for _ in range(4):
        orders.append(tuple(_RHO[word] for word in orders[-1]))
    return tuple(orders)


_LEFT: Final = _orders(tuple(range(16)))
_RIGHT: Final = _orders(tuple((9 * i + 5) % 16 for i in range(16)))


def _mix(j: int, x: int, y: int, z: int) -> int:
    return (x ^ y ^ z, x & y | ~x & z, (x | ~y) ^ z, x & z | y & ~z, x ^ (y | ~z))[j] & _MASK


def _rotate(value: int, by: int) -> int:
    value &= _MASK
    return (value << by | value >> 32 - by) & _MASK


def _line(state: tuple[int, ...], words: tuple[int, ...], left: bool) -> tuple[int, ...]:
    a, b, c, d, e = state
    for j in range(5):
        order, constant = (_LEFT[j], _K_LEFT[j]) if left else (_RIGHT[j], _K_RIGHT[j])
        for word in order:
            mixed = _mix(j if left else 4 - j, b, c, d)
            a = (_rotate(a + mixed + words[word] + constant, _SHIFTS[j][word]) + e) & _MASK
            a, b, c, d, e = e, a, b, _rotate(c, 10), d
    return a, b, c, d, e


def portable(data: bytes) -> bytes:
    """Return RIPEMD-160 of the data, computed in Python."""
    padded = data + b"\x80" + bytes((55 - len(data)) % 64) + struct.pack("<Q", 8 * len(data))
    state = _START
    for at in range(0, len(padded), 64):
        words = struct.unpack_from("<16I", padded, at)
        left, right = _line(state, words, True), _line(state, words, False)
        state = tuple((state[(i + 1) % 5] + left[(i + 2) % 5] + right[(i + 3) % 5]) & _MASK for i in range(5))
    return struct.pack("<5I", *state)


def ripemd160(data: bytes) -> bytes:
    """Return RIPEMD-160 of the data, 20 bytes."""
    if "ripemd160" not in hashlib.algorithms_available:
        return portable(data)
    try:
        return hashlib.new("ripemd160", data).digest()
    except ValueError:  # listed, but its provider is not loaded
        return portable(data)
