"""The largest values alone: of each chunk one element in 32, with values in int4's form. For use with error feedback.

A chunk of n elements keeps k = ceil(n / 32) entries (none of an empty chunk): the largest |values|, of equal ones those
of lower index. With l = floor(log2(floor(n / k))), its bytes are, in this order:

    values   k values in the form of int4 version 1, in the order of their indices
    low      the lowest l bits of each index, k * l bits
    high     bit (index >> l) + i set for entry i, k + ((n - 1) >> l) bits

Bits fill bytes from the lowest on, spare bits are 0. So an index costs 7 bits, where the entropy of a choice of one in
32 is 6.4, and a fixed width for a chunk of 2**19 would be 19; the size still follows from n alone. All other elements
decode to 0. Canonical: indices ascend strictly and are below n, and the values are canonical. A value may be 0 all the
same: chunks with fewer than k other elements, and quotients that round to 0.

Why int4 values: measured on pseudo-gradients of a small Llama, eight rounds with error feedback, by the relative error
of the sum of all that was sent:

    one in, values   bytes a parameter   error of the sum
    32, int8         0.0596              0.626
    32, int4         0.0439              0.627
    24, int4         0.0560              0.567
    20, 3 bits       0.0594              0.530

Bytes are better spent on entries than on bits of values, and int4 is the form with the fewest bits that there is. One
in 32 lies at the upper end of the 1 to 3 % for which SparseLoCo (arXiv:2508.15706) reports losses like dense
exchange's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import fused, kernels_topk
from gonka_trainer.gradient.arrays import F32, U8, U32, Buffer, as_bytes
from gonka_trainer.gradient.codec import check_size, encodable
from gonka_trainer.gradient.codec_int4 import CodecInt4

PERIOD: Final = 32
"""One element in so many is kept: the density's inverse. Part of the version."""

_VALUES: Final = CodecInt4()
_DIGITS: Final = 1 << 11


@dataclass(frozen=True, slots=True)
class CodecTopk:
    """Sparse: one element in 32, int4 values."""

    name: str = "topk"
    version: int = 1

    def encoded_bytes(self, elements: int) -> int:
        """Return the bytes of values and of both parts of the indices."""
        return sum(_sizes(elements))

    def encode(self, values: F32) -> tuple[bytes, float]:
        """Return bytes and sum of squares (`Codec.encode`)."""
        values = encodable(values)
        indices = largest(values)
        kept, total = _VALUES.encode(values[indices])
        _, low_bytes, high_bytes = _sizes(values.size)
        low, high = np.zeros(low_bytes, np.uint8), np.zeros(high_bytes, np.uint8)
        kernels_topk.pack()(indices, _low_bits(values.size), low, high)
        return kept + low.tobytes() + high.tobytes(), total

    def sum_squares(self, payload: Buffer, elements: int) -> float:
        """Return the sum as int4 has it, over the kept values in their order; the rest are 0."""
        kept, _ = self._checked(payload, elements)
        return _VALUES.sum_squares(kept, kept_of(elements))

    def decode(self, payload: Buffer, elements: int) -> F32:
        """Return all values (`Codec.decode`)."""
        values = np.zeros(elements, np.float32)
        kept, indices = self._checked(payload, elements)
        values[indices] = _VALUES.decode(kept, indices.size)
        return values

    def step(
        self,
        payloads: Sequence[U8],
        coefficients: F32,
        former: tuple[F32, F32],
        new: tuple[F32, F32],
        rate: np.float32,
        mu: np.float32,
    ) -> None:
        """Do the outer step on a chunk (`Codec.step`); the mean of a chunk is in memory, whatever the number of hosts.

        An element that a host did not keep adds coefficient * 0, which changes no bit of the mean: it starts as +0.0,
        and a sum is -0.0 only if both its parts are. So only kept elements are touched. The rest is the f32 codec's
        step for one host with coefficient 1, whose 0 + 1 * mean is the mean.
        """
        mean = np.zeros(new[0].size, np.float32)
        for payload, coefficient in zip(payloads, coefficients, strict=True):
            kept, indices = self._checked(payload, mean.size)
            kernels_topk.add()(mean, indices, _VALUES.decode(kept, indices.size), coefficient)
        fused.run(fused.step_f32(), [mean.view(np.uint8)], np.ones(1, np.float32), former, new, rate, mu)

    def _checked(self, payload: Buffer, elements: int) -> tuple[U8, U32]:
        """Return the values' bytes, not looked at, and the indices."""
        check_size(self, payload, elements)
        values_bytes, low_bytes, _ = _sizes(elements)
        kept, low, high = np.split(as_bytes(payload), [values_bytes, values_bytes + low_bytes])
        indices, low_bits = np.empty(kept_of(elements), np.uint32), _low_bits(elements)
        spare = -indices.size * low_bits % 8
        if spare and low[-1] >> (8 - spare):
            raise DecodeError("a spare bit of the indices is not 0")
        if not kernels_topk.unpack()(low, high, low_bits, elements, indices):
            raise DecodeError(f"the indices are not {indices.size} ascending ones below {elements}")
        return kept, indices


def kept_of(elements: int) -> int:
    """Return how many entries a chunk of that many elements has."""
    return -(-elements // PERIOD)


def largest(values: F32) -> U32:
    """Return the indices of the kept entries, ascending; values must be finite and contiguous.

    Radix selection over the magnitudes' 31 bits, in digits of 11, 11 and 9 bits from above: exact, and linear.
    """
    indices = np.empty(kept_of(values.size), np.uint32)
    bits, counts = values.view(np.uint32), np.empty(_DIGITS, np.int64)
    prefix, wanted = 0, indices.size
    for shift, width in ((20, 11), (9, 11), (0, 9)):
        kernels_topk.count()(bits, prefix, shift, width, counts[: 1 << width])
        from_above = np.cumsum(counts[: 1 << width][::-1])
        place = int(np.searchsorted(from_above, wanted))  # the first digit from above with which there are enough
        wanted -= int(from_above[place - 1]) if place else 0
        prefix = prefix << width | ((1 << width) - 1 - place)
    kernels_topk.gather()(bits, prefix, wanted, indices)
    return indices


def _low_bits(elements: int) -> int:
    return (elements // kept_of(elements)).bit_length() - 1 if elements else 0


def _sizes(elements: int) -> tuple[int, int, int]:
    """Return the bytes of the values, the low and the high part."""
    if elements == 0:
        return 0, 0, 0
    kept, low_bits = kept_of(elements), _low_bits(elements)
    high_bits = kept + ((elements - 1) >> low_bits)
    return _VALUES.encoded_bytes(kept), (kept * low_bits + 7) // 8, (high_bits + 7) // 8
