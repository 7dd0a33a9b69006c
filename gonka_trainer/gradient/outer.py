"""The outer step: decode, weighted mean and Nesterov momentum in one pass over memory, exact to the bit.

For each element, hosts in order of their addresses, float32, each operation rounded once:

    m = 0;  m = m + a_i * g_i            for the hosts whose a_i is not 0
    b = mu * b + m
    theta = theta - lr * (m + mu * b)

With b = 0 at first, b starts as the mean gradient. Nothing can overflow: |g| <= 2**40 and the a_i sum to at most about
1, so b grows by at most 2**40 a round; `index_state` still refuses a state that is not finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gonka_trainer.gradient.aggregate import Contribution, check_distinct
from gonka_trainer.gradient.arrays import F32, U8, as_bytes, check_vector
from gonka_trainer.gradient.codec import Codec
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.parallel import run_all


@dataclass(frozen=True, slots=True)
class OuterSettings:
    """The outer optimizer: learning rate and momentum as float32."""

    learning_rate: np.float32
    momentum: np.float32


@dataclass(frozen=True, slots=True)
class _Source:
    coefficient: np.float32
    contribution: Contribution
    payload: U8

    def chunk(self, index: int) -> U8:
        start = self.contribution.index.offset(index)
        return self.payload[start : start + self.contribution.index.chunk_bytes(index)]


def outer_step(
    parameters: F32,
    momentum: F32,
    out_parameters: F32,
    out_momentum: F32,
    contributions: Sequence[Contribution],
    coefficients: Sequence[np.float32],
    settings: OuterSettings,
    layout: Layout,
    codec: Codec,
    threads: int | None = None,
) -> None:
    """Write the state after the step to the `out_` vectors, which may be the given ones (in place) or memory maps.

    All vectors are float32[total_elements], contiguous. Contributions may come in any order, with their coefficients;
    their chunks must have been found good. If all coefficients are 0, the state is copied unchanged, momentum too.
    Raises ValueError for vectors or payloads of another size and a participant given twice; MachineError when a thread
    does not compute in the default floating-point mode: then the output is worthless.
    """
    _check(layout, parameters=parameters, momentum=momentum, out_parameters=out_parameters, out_momentum=out_momentum)
    sources = _sources(contributions, coefficients)

    factors = np.array([source.coefficient for source in sources], np.float32)

    def step(index: int) -> None:
        start, stop = layout.chunk_range(index)
        former = parameters[start:stop], momentum[start:stop]
        new = out_parameters[start:stop], out_momentum[start:stop]
        if not sources:
            _copy(former, new)
            return
        chunks = [source.chunk(index) for source in sources]
        codec.step(chunks, factors, former, new, settings.learning_rate, settings.momentum)

    run_all(step, layout.chunk_count, threads)


def _sources(contributions: Sequence[Contribution], coefficients: Sequence[np.float32]) -> list[_Source]:
    """Return what is to be read, in order of addresses. A coefficient of 0 adds exactly nothing and is left out."""
    check_distinct(contributions)
    pairs = sorted(zip(contributions, coefficients, strict=True), key=lambda pair: pair[0].participant)
    return [_source(each, coefficient) for each, coefficient in pairs if coefficient != 0]


def _source(contribution: Contribution, coefficient: np.float32) -> _Source:
    payload = as_bytes(contribution.payload)
    if payload.size != contribution.index.total_bytes:
        raise ValueError(f"a payload has {payload.size} bytes, its index says {contribution.index.total_bytes}")
    return _Source(coefficient, contribution, payload)


def _check(layout: Layout, **vectors: F32) -> None:
    for name, vector in vectors.items():
        check_vector(name, vector, layout.total_elements)
        if not vector.flags.c_contiguous:
            raise ValueError(f"{name} is not contiguous")


def _copy(former: tuple[F32, F32], new: tuple[F32, F32]) -> None:
    for source, target in zip(former, new, strict=True):
        np.copyto(target, source)
