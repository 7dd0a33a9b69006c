"""Exact initial parameters from counter-based integers: any element on its own, the same bits everywhere.

Never a library's normal generator: those change with version and vector level. Element i of the flat vector takes the
top 24 bits u of splitmix64's output number i (Steele, Lea, Flood 2014: "Fast splittable pseudorandom number
generators") from a key of the seed. `2 * u + 1 - 2**24` is odd, exact in float32, of mean 0 and of variance
(2**48 - 1) / 3; one product with float32(std * sqrt(3) / 2**24) gives the value, one rounding.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final

import numpy as np
import numpy.typing as npt

from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.layout import Entry, Layout
from gonka_trainer.gradient.parallel import run_all
from gonka_trainer.types import lp, sha256

_TAG: Final = b"gonka-trainer/initial/1"
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))
_EXACT: Final = Context(prec=60)


def initial_parameters(layout: Layout, seed: bytes, threads: int | None = None) -> F32:
    """Return the parameters before round 0, float32[total_elements]."""
    parameters = np.empty(layout.total_elements, np.float32)

    def fill(index: int) -> None:
        start, stop = layout.chunk_range(index)
        parameters[start:stop] = initial_chunk(layout, seed, index)

    run_all(fill, layout.chunk_count, threads)
    return parameters


def initial_chunk(layout: Layout, seed: bytes, index: int) -> F32:
    """Return chunk `index` of the initial parameters alone."""
    start, stop = layout.chunk_range(index)
    chunk = np.empty(stop - start, np.float32)
    for entry, offset in zip(layout.entries, layout.offsets, strict=True):
        first, last = max(offset, start), min(offset + entry.elements, stop)
        if first < last:
            _fill(chunk[first - start : last - start], entry, seed, first)
    return chunk


def amplitude(std: str) -> np.float32:
    """Return float32(std * sqrt(3) / 2**24) for a decimal text: 60 digits, then to float64, then to float32."""
    exact = _EXACT.divide(_EXACT.multiply(Decimal(std), _EXACT.sqrt(Decimal(3))), Decimal(2**24))
    return np.float32(float(exact))


def _fill(out: F32, entry: Entry, seed: bytes, first: int) -> None:
    if not entry.init.startswith("uniform:"):
        out[:] = np.float32(entry.init == "ones")
        return
    draws = _splitmix64(_key(seed), first, out.size) >> np.uint64(40)
    odd = 2 * draws.astype(np.int64) + (1 - 2**24)
    np.multiply(odd.astype(np.float32), amplitude(entry.init.removeprefix("uniform:")), out=out)


def _key(seed: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(sha256(_TAG, lp(seed))[:8], "big"))


def _splitmix64(key: np.uint64, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Return outputs number `first` (from 0) and following of the generator with that key; uint64 wraps."""
    state = np.arange(first + 1, first + 1 + count, dtype=np.uint64) * _GAMMA + key
    for shift, factor in _MIX:
        state = (state ^ (state >> np.uint64(shift))) * factor
    return state ^ (state >> np.uint64(31))
