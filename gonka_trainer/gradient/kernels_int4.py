"""The compiled loops of the int4 codec; their plain twins are in `oracle`."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numba import types

from gonka_trainer.gradient.kernels import compiled

BLOCK4: Final = 64
"""Elements that share an int4 scale: even, so that a block begins with a byte."""

_ROUND: Final = np.float32(12582912.0)  # as in `kernels`: rounds to even integers
_PAIRS: Final = BLOCK4 // 2

_F32_IN: Final = types.Array(types.float32, 1, "C", readonly=True, aligned=False)
_U8_IN: Final = types.Array(types.uint8, 1, "C", readonly=True)
_F32_OUT: Final = types.Array(types.float32, 1, "C")
_U8_OUT: Final = types.Array(types.uint8, 1, "C")


def _largest(values: Any, out: Any) -> None:
    for block in range(out.size):
        source = values[block * BLOCK4 : block * BLOCK4 + BLOCK4]
        most = np.float32(0.0)
        for j in range(source.size):
            most = max(most, abs(source[j]))
        out[block] = most


def _quantise(values: Any, scales: Any, pairs: Any) -> None:
    for block in range(scales.size):
        source = values[block * BLOCK4 : block * BLOCK4 + BLOCK4]
        out = pairs[block * _PAIRS : block * _PAIRS + _PAIRS]
        scale = scales[block]
        if scale == np.float32(0.0):
            for j in range(out.size):
                out[j] = 0
            continue
        for j in range(source.size // 2):
            low = (source[2 * j] / scale + _ROUND) - _ROUND
            high = (source[2 * j + 1] / scale + _ROUND) - _ROUND
            first = np.int32(min(np.float32(7.0), max(np.float32(-7.0), low)))
            second = np.int32(min(np.float32(7.0), max(np.float32(-7.0), high)))
            out[j] = np.uint8((first & 15) | ((second & 15) << 4))
        if source.size & 1:
            low = (source[source.size - 1] / scale + _ROUND) - _ROUND
            out[out.size - 1] = np.uint8(np.int32(min(np.float32(7.0), max(np.float32(-7.0), low))) & 15)


def _squares(pairs: Any, scales: Any) -> Any:
    total = 0.0
    bad = -1
    for block in range(scales.size):
        packed = pairs[block * _PAIRS : block * _PAIRS + _PAIRS]
        squares = np.int32(0)
        lowest = np.int32(0)
        for j in range(packed.size):
            pair = np.int32(packed[j])
            low = np.int32(((pair & 15) ^ 8) - 8)
            high = np.int32(((pair >> 4) ^ 8) - 8)
            squares = np.int32(squares + low * low + high * high)
            lowest = min(lowest, low, high)
        if bad < 0 and (lowest == -8 or (squares == 0) != (scales[block] == 0)):
            bad = block
        scale = np.float64(scales[block])
        total = total + np.float64(squares) * (scale * scale)
    return total, bad


def _decode(out: Any, pairs: Any, scales: Any) -> None:
    for block in range(scales.size):
        target = out[block * BLOCK4 : block * BLOCK4 + BLOCK4]
        packed = pairs[block * _PAIRS : block * _PAIRS + _PAIRS]
        scale = scales[block]
        for j in range(target.size // 2):
            pair = np.int32(packed[j])
            target[2 * j] = np.float32(((pair & 15) ^ 8) - 8) * scale
            target[2 * j + 1] = np.float32(((pair >> 4) ^ 8) - 8) * scale
        if target.size & 1:
            target[target.size - 1] = np.float32(((np.int32(packed[packed.size - 1]) & 15) ^ 8) - 8) * scale


@cache
def largest_by_block() -> Any:
    """Return `(values f32, out f32)`: the largest |value| of each block."""
    return compiled(types.void(_F32_IN, _F32_OUT), _largest)


@cache
def quantise_int4() -> Any:
    """Return `(values f32, scales f32, pairs u8 out)`: quotients to nearest even, clamped, two in a byte."""
    return compiled(types.void(_F32_IN, _F32_IN, _U8_OUT), _quantise)


@cache
def squares_int4() -> Any:
    """Return `(pairs, scales) -> (sum f64, first block that breaks the form or -1)`; the spare nibble must be 0."""
    return compiled((_U8_IN, _F32_IN), _squares)


@cache
def decode_int4() -> Any:
    """Return `(out f32, pairs, scales)`: out = quant * scale, which is exact."""
    return compiled(types.void(_F32_OUT, _U8_IN, _F32_IN), _decode)
