"""From the included blobs to the coefficients of their weighted mean, decided alike by every host.

The rule is the mean weighted by tokens, of gradients whose norms are clipped to the median norm:

    norm_i = sqrt(sum of squares_i)                             float64, from the leaf lists
    M      = weighted lower median of the norms, by roster weight, over the good blobs with tokens:
             the smallest norm for which 2 * (weight of norms up to it) >= total weight
    clip_i = M / norm_i if norm_i > M else 1
    a_i    = float32(float64(tokens_i) * clip_i / float64(sum of tokens))      left to right, one rounding each

A blob that is not good, or has no tokens, has coefficient 0 and takes no part in M or in the sum. The divisor is the
sum of the tokens of what is averaged: not of all members, nor of those who contribute to a coordinate. So the step's
size does not depend on who failed to take part, and clipping makes it smaller, not the others' share larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gonka_trainer.gradient.arrays import Buffer
from gonka_trainer.gradient.blob import BlobIndex
from gonka_trainer.types import Address


@dataclass(frozen=True, slots=True)
class Contribution:
    """One included blob: who made it, its author's roster weight, its index and the bytes of its chunks, one after the
    other. `good`: its header verdict and all of its chunks' are good; if not, `payload` is never read.
    """

    participant: Address
    weight: int
    index: BlobIndex
    payload: Buffer
    good: bool

    @property
    def tokens(self) -> int:
        """The weight in the mean: 0 for a blob that is not good."""
        return self.index.header.tokens if self.good else 0


def coefficients(contributions: Sequence[Contribution]) -> tuple[np.float32, ...]:
    """Return a_i for each contribution, in the order given; they do not depend on that order.

    All are 0 when no good blob has tokens: then the state stays as it is. Raises ValueError when a participant appears
    twice.
    """
    check_distinct(contributions)
    total = sum(each.tokens for each in contributions)
    if total == 0:
        return (np.float32(0),) * len(contributions)
    averaged = [each for each in contributions if each.tokens > 0]
    median = weighted_lower_median([(_norm(each), each.weight) for each in averaged])
    return tuple(_coefficient(each, median, total) for each in contributions)


def weighted_lower_median(pairs: Sequence[tuple[float, int]]) -> float:
    """Return the smallest value whose cumulative weight, doubled, reaches the total weight; ValueError for no pairs."""
    total = sum(weight for _, weight in pairs)
    cumulated = 0
    for value, weight in sorted(pairs):
        cumulated += weight
        if 2 * cumulated >= total:
            return value
    raise ValueError("the median of nothing")


def check_distinct(contributions: Sequence[Contribution]) -> None:
    """Raise ValueError when a participant contributes twice."""
    if len({each.participant for each in contributions}) != len(contributions):
        raise ValueError("a participant contributes twice")


def _norm(contribution: Contribution) -> float:
    return math.sqrt(contribution.index.sum_squares)


def _coefficient(contribution: Contribution, median: float, total: int) -> np.float32:
    if contribution.tokens == 0:
        return np.float32(0)
    norm = _norm(contribution)
    clip = median / norm if norm > median else 1.0
    return np.float32(float(contribution.tokens) * clip / float(total))
