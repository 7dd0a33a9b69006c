"""bfloat16: the upper half of each float32, rounded to nearest even, little-endian. Two bytes an element.

Canonical: finite, within VALUE_BOUND, and zero is +0.0. Subnormals are kept. Source of the form: Intel, "BFLOAT16 -
Hardware Numerics Definition" (2018), which flushes subnormals; here nothing is flushed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import fused, kernels
from gonka_trainer.gradient.arrays import F32, LITTLE_U16, U16, Buffer
from gonka_trainer.gradient.codec import VALUE_BOUND, BoundError, check_size, encodable
from gonka_trainer.gradient.halves import widened
from gonka_trainer.gradient.whole import WholeStep

_BOUND: Final = 0x5380
"""The bits of VALUE_BOUND. Without their sign, bits of finite values grow with the value, and infinity and NaN are
above all of them."""


@dataclass(frozen=True, slots=True)
class CodecBf16(WholeStep):
    """bfloat16. Zero has one form, as in the f32 codec; what rounds to -0.0 is +0.0."""

    name: str = "bf16"
    version: int = 1

    def encoded_bytes(self, elements: int) -> int:
        """Return 2 bytes an element."""
        return 2 * elements

    def encode(self, values: F32) -> tuple[bytes, float]:
        """Return bytes and sum of squares (`Codec.encode`)."""
        values = encodable(values)
        halves = np.empty(values.size, np.uint16)
        kernels.round_bf16()(values.view(np.uint32), halves)
        return halves.astype(LITTLE_U16, copy=False).tobytes(), float(kernels.squares_f32()(widened(halves)))

    def sum_squares(self, payload: Buffer, elements: int) -> float:
        """Return the sum in float64: squares are exact, added left to right in blocks of 128, then over blocks."""
        return float(kernels.squares_f32()(self.decode(payload, elements)))

    def decode(self, payload: Buffer, elements: int) -> F32:
        """Return the values (`Codec.decode`)."""
        check_size(self, payload, elements)
        values = np.empty(elements, np.float32)
        largest, negative_zeros = kernels.widen_bf16()(_view(payload, elements), values.view(np.uint32))
        if largest > _BOUND:
            raise BoundError(f"an element is not finite, or beyond {VALUE_BOUND:.0f}")
        if negative_zeros:
            raise DecodeError("an element is -0.0, which is not canonical")
        return values

    def kernel(self) -> Any:
        """Return the kernel of the outer step."""
        return fused.step_bf16()


def _view(payload: Buffer, elements: int) -> U16:
    return np.frombuffer(payload, dtype=LITTLE_U16, count=elements)
