"""Four bits by block: one bfloat16 scale for 64 elements, absmax / 7, and half a byte an element.

Byte form of a chunk of n elements: ceil(n / 64) scales as little-endian bfloat16, then ceil(n / 2) bytes, byte j with
element 2j in its low and 2j + 1 in its high half, two's complement; the spare half of an odd count is 0. A value
decodes to `float32(q) * scale`, which is exact. Canonical: q in -7..7, scale finite and not negative, and 0 (not -0.0)
exactly when all of its block are 0. Scales and quotients round to nearest even.

Block and scale were chosen by measure, on pseudo-gradients of a small Llama (`bench/codecs.py` prints the table anew):

    block, scale     bytes a parameter   relative error
    32, float32      0.625               0.0894
    32, bfloat16     0.5625              0.0894
    64, float32      0.5625              0.0995
    64, bfloat16     0.53125             0.0995
    128, float32     0.53125             0.1102
    128, bfloat16    0.515625            0.1102

A bfloat16 scale costs no error that can be seen. One more bit an element halves the error: measured by that, going from
128 to 64 brings 0.15 bits for 0.125, going from 64 to 32 brings 0.16 bits for 0.25.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import fused, kernels_int4
from gonka_trainer.gradient.arrays import F32, LITTLE_U16, U8, Buffer, as_bytes
from gonka_trainer.gradient.codec import VALUE_BOUND, BoundError, check_size, encodable
from gonka_trainer.gradient.halves import NEGATIVE_ZERO, rounded_halves, widened
from gonka_trainer.gradient.kernels_int4 import BLOCK4
from gonka_trainer.gradient.whole import WholeStep

_MAX_SCALE: Final = 0x5212
"""The bits of the nearest bfloat16 of VALUE_BOUND / 7, which is below it; infinity and NaN are above."""
_INFINITE: Final = 0x7F80


def _blocks(elements: int) -> int:
    return -(-elements // BLOCK4)


@dataclass(frozen=True, slots=True)
class CodecInt4(WholeStep):
    """int4 with absmax scales by block of 64."""

    name: str = "int4"
    version: int = 1

    def encoded_bytes(self, elements: int) -> int:
        """Return half a byte an element, rounded up, and two a block."""
        return (elements + 1) // 2 + 2 * _blocks(elements)

    def encode(self, values: F32) -> tuple[bytes, float]:
        """Return bytes and sum of squares (`Codec.encode`)."""
        values = encodable(values)
        largest = np.empty(_blocks(values.size), np.float32)
        kernels_int4.largest_by_block()(values, largest)
        halves = rounded_halves(largest / np.float32(7))
        pairs, scales = np.empty((values.size + 1) // 2, np.uint8), widened(halves)
        kernels_int4.quantise_int4()(values, scales, pairs)
        total, _ = kernels_int4.squares_int4()(pairs, scales)
        return halves.astype(LITTLE_U16, copy=False).tobytes() + pairs.tobytes(), float(total)

    def sum_squares(self, payload: Buffer, elements: int) -> float:
        """Return the sum over blocks, left to right in float64, of (sum of q * q) * (scale * scale).

        Both factors and their product are exact in float64, so a block costs one rounding.
        """
        return self._checked(payload, elements)[2]

    def decode(self, payload: Buffer, elements: int) -> F32:
        """Return the values (`Codec.decode`)."""
        pairs, scales, _ = self._checked(payload, elements)
        values = np.empty(elements, np.float32)
        kernels_int4.decode_int4()(values, pairs, scales)
        return values

    def kernel(self) -> Any:
        """Return the kernel of the outer step."""
        return fused.step_int4()

    def _checked(self, payload: Buffer, elements: int) -> tuple[U8, F32, float]:
        check_size(self, payload, elements)
        data, scale_bytes = as_bytes(payload), 2 * _blocks(elements)
        scales = _checked_scales(data[:scale_bytes])
        pairs = data[scale_bytes:]
        if elements % 2 and pairs[-1] > 15:
            raise DecodeError("the spare half of the last byte is not 0")
        total, bad = kernels_int4.squares_int4()(pairs, scales)
        if bad >= 0:
            raise DecodeError(f"block {bad} is not canonical: -8, or a scale and values that do not go together")
        return pairs, scales, float(total)


def _checked_scales(data: U8) -> F32:
    halves = data.view(LITTLE_U16)
    if ((halves & _INFINITE) == _INFINITE).any():
        raise DecodeError("a scale is not finite")
    if (halves >= NEGATIVE_ZERO).any():
        raise DecodeError("a scale is negative")
    if halves.size and np.max(halves) > _MAX_SCALE:
        raise BoundError(f"values of a block can be beyond {VALUE_BOUND:.0f}")
    return widened(halves)
