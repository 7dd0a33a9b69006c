"""The plain codec: little-endian float32, one after the other. Exact, four bytes an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import fused, kernels
from gonka_trainer.gradient.arrays import F32, LITTLE_F32, Buffer, first_not_finite
from gonka_trainer.gradient.codec import VALUE_BOUND, BoundError, check_size, encodable
from gonka_trainer.gradient.whole import WholeStep

_NEGATIVE_ZERO: Final = 0x80000000


@dataclass(frozen=True, slots=True)
class CodecF32(WholeStep):
    """float32 as it is. Zero has one form: -0.0 is encoded as +0.0 and refused when read."""

    name: str = "f32"
    version: int = 1

    def encoded_bytes(self, elements: int) -> int:
        """Return 4 bytes an element."""
        return 4 * elements

    def encode(self, values: F32) -> tuple[bytes, float]:
        """Return bytes and sum of squares (`Codec.encode`)."""
        values = encodable(values)
        canonical = values + np.float32(0.0)  # turns -0.0 into +0.0 and nothing else
        return canonical.astype(LITTLE_F32, copy=False).tobytes(), float(kernels.squares_f32()(canonical))

    def sum_squares(self, payload: Buffer, elements: int) -> float:
        """Return the sum in float64: squares are exact, added left to right in blocks of 128, then over blocks."""
        return float(kernels.squares_f32()(self._checked(payload, elements)))

    def decode(self, payload: Buffer, elements: int) -> F32:
        """Return the values (`Codec.decode`)."""
        return self._checked(payload, elements).astype(np.float32)

    def kernel(self) -> Any:
        """Return the kernel of the outer step."""
        return fused.step_f32()

    def _checked(self, payload: Buffer, elements: int) -> F32:
        check_size(self, payload, elements)
        values = _view(payload, elements)
        bad = first_not_finite(values)
        if bad >= 0:
            raise BoundError(f"element {bad} is not finite")
        if elements and np.max(np.abs(values)) > VALUE_BOUND:
            raise BoundError(f"an element is beyond {VALUE_BOUND:.0f}")
        if (values.view(np.uint32) == _NEGATIVE_ZERO).any():
            raise DecodeError("an element is -0.0, which is not canonical")
        return values


def _view(payload: Buffer, elements: int) -> F32:
    return np.frombuffer(payload, dtype=LITTLE_F32, count=elements)
