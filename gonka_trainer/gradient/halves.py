"""bfloat16 as bits: the upper half of a float32, rounded to nearest even, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from gonka_trainer.gradient.arrays import F32, U16

NEGATIVE_ZERO: Final = 0x8000


def rounded_halves(values: F32) -> U16:
    """Return the bits of the nearest bfloat16 of each value, ties to even; values must be finite and contiguous.

    Half a unit is added below the kept bits, one less where the kept part is even, and a carry runs into the exponent.
    """
    bits = values.view(np.uint32)
    return ((bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))) >> np.uint32(16)).astype(np.uint16)


def widened(halves: U16) -> F32:
    """Return the float32 of each bfloat16; exact."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
