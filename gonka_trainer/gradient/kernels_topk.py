"""The compiled loops of the topk codec: selection by radix, ascending indices as bits, and the sparse sum.

Indices are in the form of Elias (J. ACM 21, 1974) and Fano (1971): the lower bits of each as they are, and for the
upper parts, which do not descend, bit `upper + i` set for entry i.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from gonka_trainer.gradient.kernels import compiled

MAGNITUDE: Final = np.uint32(0x7FFFFFFF)
"""All bits of a float32 but the sign. Among finite values they grow with |value|."""

_F32_IN: Final = types.Array(types.float32, 1, "C", readonly=True)
_U32_IN: Final = types.Array(types.uint32, 1, "C", readonly=True, aligned=False)
_U8_IN: Final = types.Array(types.uint8, 1, "C", readonly=True)
_F32: Final = types.Array(types.float32, 1, "C")
_U32: Final = types.Array(types.uint32, 1, "C")
_I64: Final = types.Array(types.int64, 1, "C")
_U8: Final = types.Array(types.uint8, 1, "C")


def _count(bits: Any, prefix: Any, shift: Any, width: Any, counts: Any) -> None:
    mask = np.uint32(counts.size - 1)
    above = shift + width
    for j in range(counts.size):
        counts[j] = 0
    for j in range(bits.size):
        magnitude = bits[j] & MAGNITUDE
        if (magnitude >> above) == prefix:
            counts[(magnitude >> shift) & mask] += 1


def _gather(bits: Any, threshold: Any, ties: Any, indices: Any) -> None:
    at = 0
    left = ties
    for j in range(bits.size):
        magnitude = bits[j] & MAGNITUDE
        if magnitude >= threshold:
            if magnitude == threshold:
                if left == 0:
                    continue
                left -= 1
            indices[at] = j
            at += 1


def _pack(indices: Any, low_bits: Any, low: Any, high: Any) -> None:
    mask = (np.uint32(1) << low_bits) - np.uint32(1)
    for i in range(indices.size):
        place = np.int64(indices[i] >> low_bits) + i
        high[place >> 3] |= np.uint8(1 << (place & 7))
        rest = np.uint32(indices[i] & mask)
        for bit in range(low_bits):
            place = i * np.int64(low_bits) + bit
            low[place >> 3] |= np.uint8(((rest >> np.uint32(bit)) & np.uint32(1)) << (place & 7))


def _unpack(low: Any, high: Any, low_bits: Any, elements: Any, indices: Any) -> Any:
    found = 0
    previous = np.int64(-1)
    mask = (1 << np.int64(low_bits)) - 1
    for byte in range(high.size):
        value = high[byte]
        if value == 0:
            continue
        for bit in range(8):
            if not (value >> bit) & 1:
                continue
            if found == indices.size:
                return False
            start = found * np.int64(low_bits)
            word = np.int64(0)
            if low_bits > 0:
                word = np.int64(low[start >> 3])
                if (start >> 3) + 1 < low.size:
                    word |= np.int64(low[(start >> 3) + 1]) << 8
            index = ((np.int64(8 * byte + bit) - found) << np.int64(low_bits)) | ((word >> (start & 7)) & mask)
            if index <= previous or index >= elements:
                return False
            previous = index
            indices[found] = index
            found += 1
    return found == indices.size


def _add(mean: Any, indices: Any, values: Any, coefficient: Any) -> None:
    for i in range(indices.size):
        at = indices[i]
        mean[at] = mean[at] + coefficient * values[i]


@cache
def count() -> Any:
    """Return `(bits u32, prefix u32, shift u32, width u32, counts i64[2**width] out)`.

    Counts by the digit of `width` bits at `shift`, over the magnitudes that are `prefix` above it.
    """
    return compiled(types.void(_U32_IN, types.uint32, types.uint32, types.uint32, _I64), _count)


@cache
def gather() -> Any:
    """Return `(bits u32, threshold u32, ties i64, indices u32 out)`.

    Indices of magnitudes above the threshold and of the first `ties` that equal it, ascending.
    """
    return compiled(types.void(_U32_IN, types.uint32, types.int64, _U32), _gather)


@cache
def pack() -> Any:
    """Return `(indices u32, low_bits u32, low u8, high u8)`: sets bits in the two, which must be 0 before."""
    return compiled(types.void(_U32_IN, types.uint32, _U8, _U8), _pack)


@cache
def unpack() -> Any:
    """Return `(low u8, high u8, low_bits, elements, indices u32 out) -> bool`.

    False unless there are exactly as many as `indices` holds, ascending without repeats, all below `elements`. At most
    9 low bits; reads and writes stay inside of the arrays whatever the bytes are.
    """
    return compiled(types.boolean(_U8_IN, _U8_IN, types.uint32, types.int64, _U32), _unpack)


@cache
def add() -> Any:
    """Return `(mean f32, indices u32, values f32, coefficient f32)`: mean[i] + coefficient * value, two roundings."""
    return compiled(types.void(_F32, _U32_IN, _F32_IN, types.float32), _add)
