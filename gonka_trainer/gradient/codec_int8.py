"""Eight bits by block: one float32 scale for 128 elements, absmax / 127, and a signed byte an element.

Byte form of a chunk of n elements: ceil(n / 128) scales as little-endian float32, then n bytes of two's complement. A
value decodes to `float32(q) * scale`. Canonical: q in -127..127, scale finite and not negative, and 0 (not -0.0)
exactly when all of its block are 0. Quotients round to nearest even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import fused, kernels
from gonka_trainer.gradient.arrays import F32, I8, LITTLE_F32, Buffer, as_bytes
from gonka_trainer.gradient.codec import VALUE_BOUND, BoundError, check_size, encodable
from gonka_trainer.gradient.kernels import BLOCK
from gonka_trainer.gradient.whole import WholeStep

_MAX_SCALE: Final = np.float32(VALUE_BOUND / 127)


def _blocks(elements: int) -> int:
    return -(-elements // BLOCK)


@dataclass(frozen=True, slots=True)
class CodecInt8(WholeStep):
    """int8 with absmax scales by block of 128."""

    name: str = "int8"
    version: int = 1

    def encoded_bytes(self, elements: int) -> int:
        """Return one byte an element and four a block."""
        return elements + 4 * _blocks(elements)

    def encode(self, values: F32) -> tuple[bytes, float]:
        """Return bytes and sum of squares (`Codec.encode`)."""
        values = encodable(values)
        payload = bytearray(self.encoded_bytes(values.size))
        scales = np.empty(_blocks(values.size), np.float32)
        quants = np.frombuffer(payload, np.int8, offset=4 * scales.size) if values.size else np.empty(0, np.int8)
        kernels.quantise_int8()(values, quants, scales)
        payload[: 4 * scales.size] = scales.astype(LITTLE_F32, copy=False).tobytes()
        return bytes(payload), float(kernels.squares_int8()(quants, scales)[0])

    def sum_squares(self, payload: Buffer, elements: int) -> float:
        """Return the sum over blocks, left to right in float64, of (sum of q * q) * (scale * scale).

        The first factor is an exact integer and the second exact in float64, so a block costs two roundings.
        """
        return self._checked(payload, elements)[2]

    def decode(self, payload: Buffer, elements: int) -> F32:
        """Return the values (`Codec.decode`)."""
        quants, scales, _ = self._checked(payload, elements)
        values = np.empty(elements, np.float32)
        kernels.decode_int8()(values, quants, scales)
        return values

    def kernel(self) -> Any:
        """Return the kernel of the outer step."""
        return fused.step_int8()

    def _checked(self, payload: Buffer, elements: int) -> tuple[I8, F32, float]:
        check_size(self, payload, elements)
        quants, scales = _parts(payload, elements)
        _check_scales(scales)
        total, bad = kernels.squares_int8()(quants, scales)
        if bad >= 0:
            raise DecodeError(f"block {bad} is not canonical: -128, or a scale and values that do not go together")
        return quants, scales, float(total)


def _parts(payload: Buffer, elements: int) -> tuple[I8, F32]:
    data, scale_bytes = as_bytes(payload), 4 * _blocks(elements)
    return data[scale_bytes:].view(np.int8), data[:scale_bytes].view(LITTLE_F32)


def _check_scales(scales: F32) -> None:
    if not np.isfinite(scales).all():
        raise DecodeError("a scale is not finite")
    if np.signbit(scales).any():
        raise DecodeError("a scale is negative")
    if scales.size and np.max(scales) > _MAX_SCALE:
        raise BoundError(f"values of a block can be beyond {VALUE_BOUND:.0f}")
