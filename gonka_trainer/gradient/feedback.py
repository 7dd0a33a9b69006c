"""Error feedback: what an encoding left out of this round's pseudo-gradient is added to the next one.

For each element, float32, each operation rounded once, in this order:

    value        = (base - local) + residual in
    residual out = value - decoded(encoded(value))

Source: Seide et al., "1-bit stochastic gradient descent" (Interspeech 2014); Karimireddy et al., arXiv:1901.09847. A
residual is float32[total_elements], as large as the parameters, and may be a memory map. It starts at zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.digest import merkle_root
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.state import vector_leaves
from gonka_trainer.types import ZERO_DIGEST, Digest


@dataclass(frozen=True, slots=True)
class Feedback:
    """`residual`: what is left of earlier rounds, None for nothing. `sink` takes the new one, chunk by chunk in order.

    A chunk of the residual is not read any more when the sink gets its successor; but a residual written over in place
    is lost when the blob is then not finished or not included, and the old one is wanted again.
    """

    residual: F32 | None
    sink: Callable[[F32], object]


def compensated(gradient: F32, residual: F32) -> F32:
    """Return what is to be encoded: the pseudo-gradient and the residual of the same elements."""
    return np.add(gradient, residual)


def left_over(values: F32, decoded: F32) -> F32:
    """Return the new residual of what was to be encoded and what its encoding decodes to."""
    return np.subtract(values, decoded)


def feedback_root(layout: Layout, residual: F32 | None, threads: int | None = None) -> Digest:
    """Return the root of a residual as headers have it: a state vector's, but 32 zero bytes where nothing is left.

    So a host that joins, one whose codec keeps no residual and one whose encoding was exact have the same root.
    ValueError naming the first element that is not finite.
    """
    if residual is None:
        return ZERO_DIGEST
    return root_of(vector_leaves(layout, residual, threads), bool(residual.any()))


def root_of(leaves: tuple[Digest, ...], something_left: bool) -> Digest:
    """Return the root over a residual's leaves; `something_left` says whether any element is not 0."""
    return merkle_root(leaves) if something_left else ZERO_DIGEST
