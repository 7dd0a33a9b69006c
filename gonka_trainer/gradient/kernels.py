"""The compiled loops. Each has a plain numpy twin in `oracle`, and the tests hold them to the same bits.

`fastmath=False` keeps every operation and its rounding as written: no contraction to fused multiply-add, no change of
order. Kernels are compiled at first use, with one signature each, and nothing is cached on disk: numba's cache is a
pickle, does not see changes in other files, and cannot be written by a service with a read-only home.
Loops run over slices so that the compiler sees that indices are not negative, and vectorises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, Final

import numba
import numpy as np
from numba import types

BLOCK: Final = 128
"""Elements that share an int8 scale, and a partial sum of squares in the f32 codec."""

_ROUND: Final = np.float32(12582912.0)  # 1.5 * 2**23: adding and taking it away rounds |x| < 2**22 to even integers

_F32_IN: Final = types.Array(types.float32, 1, "C", readonly=True, aligned=False)
_U16_IN: Final = types.Array(types.uint16, 1, "C", readonly=True, aligned=False)
_U16_OUT: Final = types.Array(types.uint16, 1, "C")
_U32_IN: Final = types.Array(types.uint32, 1, "C", readonly=True, aligned=False)
_U32_OUT: Final = types.Array(types.uint32, 1, "C")
_I8_IN: Final = types.Array(types.int8, 1, "C", readonly=True)
_F32_OUT: Final = types.Array(types.float32, 1, "C")
_I8_OUT: Final = types.Array(types.int8, 1, "C")

_compiling: Final = Lock()


def _decode_int8(out: Any, quants: Any, scales: Any) -> None:
    for block in range(scales.size):
        scale = scales[block]
        values = quants[block * BLOCK : block * BLOCK + BLOCK]
        target = out[block * BLOCK : block * BLOCK + BLOCK]
        for j in range(target.size):
            target[j] = np.float32(values[j]) * scale


def _quantise_int8(values: Any, quants: Any, scales: Any) -> None:
    for block in range(scales.size):
        start = block * BLOCK
        source = values[start : start + BLOCK]
        out = quants[start : start + BLOCK]
        largest = np.float32(0.0)
        for j in range(source.size):
            largest = max(largest, abs(source[j]))
        scale = largest / np.float32(127.0)
        scales[block] = scale
        if scale == np.float32(0.0):
            for j in range(out.size):
                out[j] = 0
            continue
        for j in range(out.size):
            rounded = (source[j] / scale + _ROUND) - _ROUND
            out[j] = np.int32(min(np.float32(127.0), max(np.float32(-127.0), rounded)))


def _squares_int8(quants: Any, scales: Any) -> Any:
    total = 0.0
    bad = -1
    for block in range(scales.size):
        values = quants[block * BLOCK : block * BLOCK + BLOCK]
        squares = np.int32(0)
        lowest = np.int8(0)
        for j in range(values.size):
            value = np.int32(values[j])
            squares = np.int32(squares + value * value)
            lowest = min(lowest, values[j])
        if bad < 0 and (lowest == -128 or (squares == 0) != (scales[block] == 0)):
            bad = block
        scale = np.float64(scales[block])
        total = total + np.float64(squares) * (scale * scale)
    return total, bad


def _squares_f32(values: Any) -> Any:
    total = 0.0
    whole = values.size // (4 * BLOCK) * (4 * BLOCK)
    for start in range(0, whole, 4 * BLOCK):  # each block's order stays; four at a time, as additions wait for another
        first = values[start : start + BLOCK]
        second = values[start + BLOCK : start + 2 * BLOCK]
        third = values[start + 2 * BLOCK : start + 3 * BLOCK]
        fourth = values[start + 3 * BLOCK : start + 4 * BLOCK]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(BLOCK):
            a = a + np.float64(first[j]) * np.float64(first[j])
            b = b + np.float64(second[j]) * np.float64(second[j])
            c = c + np.float64(third[j]) * np.float64(third[j])
            d = d + np.float64(fourth[j]) * np.float64(fourth[j])
        total = (((total + a) + b) + c) + d
    for start in range(whole, values.size, BLOCK):
        block = values[start : start + BLOCK]
        squares = 0.0
        for j in range(block.size):
            value = np.float64(block[j])
            squares = squares + value * value
        total = total + squares
    return total


def _round_bf16(bits: Any, out: Any) -> None:
    for j in range(out.size):
        even = (bits[j] >> np.uint32(16)) & np.uint32(1)
        half = np.uint32(np.uint32(bits[j] + (even + np.uint32(0x7FFF))) >> np.uint32(16))
        out[j] = np.uint16(half) if half != np.uint32(0x8000) else np.uint16(0)


def _widen_bf16(halves: Any, out: Any) -> Any:
    largest = np.uint16(0)
    negative_zeros = 0
    for j in range(out.size):
        half = halves[j]
        out[j] = np.uint32(half) << np.uint32(16)
        largest = max(largest, np.uint16(half & np.uint16(0x7FFF)))
        negative_zeros += half == np.uint16(0x8000)
    return largest, negative_zeros


def _products(left: Any, right: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] = left[j] * right[j]


def _sums(left: Any, right: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] = left[j] + right[j]


def compiled(signature: Any, function: Callable[..., Any]) -> Any:
    """Compile for one signature; one thread at a time."""
    with _compiling:
        return numba.njit(signature, nogil=True, fastmath=False, error_model="numpy")(function)


@cache
def decode_int8() -> Any:
    """Return `(out f32, quants i8, scales f32)`: out = quant * scale."""
    return compiled(types.void(_F32_OUT, _I8_IN, _F32_IN), _decode_int8)


@cache
def quantise_int8() -> Any:
    """Return `(values f32, quants i8 out, scales f32 out)`: absmax scales by block; values must be finite."""
    return compiled(types.void(_F32_IN, _I8_OUT, _F32_OUT), _quantise_int8)


@cache
def squares_int8() -> Any:
    """Return `(quants, scales) -> (sum f64, first block that breaks the form or -1)`."""
    return compiled((_I8_IN, _F32_IN), _squares_int8)


@cache
def squares_f32() -> Any:
    """Return `(values) -> sum f64`: left to right in each block, then block by block."""
    return compiled((_F32_IN,), _squares_f32)


@cache
def round_bf16() -> Any:
    """Return `(bits u32 of float32, halves u16 out)`: to nearest even, -0.0 to +0.0; values must be finite."""
    return compiled(types.void(_U32_IN, _U16_OUT), _round_bf16)


@cache
def widen_bf16() -> Any:
    """Return `(halves u16, bits u32 of float32 out) -> (largest bits without sign, number of -0.0)`."""
    return compiled((_U16_IN, _U32_OUT), _widen_bf16)


@cache
def products() -> Any:
    """Return `(left, right, out)`: element by element; the probe of the floating-point mode."""
    return compiled(types.void(_F32_IN, _F32_IN, _F32_OUT), _products)


@cache
def sums() -> Any:
    """Return `(left, right, out)`: element by element; the probe of the rounding mode."""
    return compiled(types.void(_F32_IN, _F32_IN, _F32_OUT), _sums)
