from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonka_trainer.gradient.aggregate import Contribution, coefficients
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.oracle import reference_round
from gonka_trainer.gradient.outer import OuterSettings, outer_step

from .build import blob_of, flat, gradient

CODECS = pytest.mark.parametrize("name", ["f32", "bf16", "int8", "int4", "topk"])
SETTINGS = OuterSettings(np.float32(0.7), np.float32(0.9))


def contributions(layout: Layout, name: str, hosts: int, scale: float = 1.0) -> list[Contribution]:
    n = layout.total_elements
    return [
        blob_of(layout, gradient(n, 50 + host, scale * (1 + host)), name, host=host, tokens=100 + host).contribution()
        for host in range(hosts)
    ]


def step(
    parameters: F32, momentum: F32, blobs: list[Contribution], layout: Layout, name: str, threads: int | None = None
) -> tuple[F32, F32]:
    out = np.full_like(parameters, np.nan), np.full_like(momentum, np.nan)
    factors = coefficients(blobs)
    outer_step(parameters, momentum, *out, blobs, factors, SETTINGS, layout, codec(name, 1), threads)
    return out


def bits(vectors: tuple[F32, F32]) -> list[bytes]:
    return [vector.tobytes() for vector in vectors]


@CODECS
@pytest.mark.parametrize("elements", [0, 1, 127, 128, 129, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("hosts", [0, 1, 2, 5])
def test_the_fused_step_is_the_oracle_to_the_bit(name: str, elements: int, hosts: int) -> None:
    layout = flat(elements, 1500)
    parameters, momentum = gradient(elements, 1), gradient(elements, 2, 0.1)
    blobs = contributions(layout, name, hosts)
    expected = reference_round(parameters, momentum, blobs, SETTINGS, layout, name)
    assert bits(step(parameters, momentum, blobs, layout, name)) == bits(expected)


@CODECS
@given(
    elements=st.integers(1, 700), chunk_elements=st.integers(1, 900), hosts=st.integers(1, 4), threads=st.integers(1, 3)
)
@settings(max_examples=60)
def test_any_cut_into_chunks_reduces_every_element_once(
    name: str, elements: int, chunk_elements: int, hosts: int, threads: int
) -> None:
    """Scales begin anew in each chunk, so there the oracle gets the same cut; others are compared with one chunk."""
    layout = flat(elements, chunk_elements)
    parameters, momentum = gradient(elements, 1), gradient(elements, 2)
    blobs = contributions(layout, name, hosts)
    got = bits(step(parameters, momentum, blobs, layout, name, threads))
    assert got == bits(reference_round(parameters, momentum, blobs, SETTINGS, layout, name))
    if name in {"f32", "bf16"}:
        # Sums of squares add up in another order in another cut: the coefficients of the first are kept.
        whole = flat(elements, elements)
        joined = contributions(whole, name, hosts)
        out = np.empty_like(parameters), np.empty_like(momentum)
        outer_step(parameters, momentum, *out, joined, coefficients(blobs), SETTINGS, whole, codec(name, 1))
        assert bits(out) == got


@CODECS
def test_subnormal_values_are_kept(name: str) -> None:
    layout = flat(600, 256)
    parameters, momentum = gradient(600, 1, 1e-39), gradient(600, 2, 1e-40)
    blobs = contributions(layout, name, 3, scale=1e-38)
    got = step(parameters, momentum, blobs, layout, name)
    assert bits(got) == bits(reference_round(parameters, momentum, blobs, SETTINGS, layout, name))
    assert np.any((got[1] != 0) & (np.abs(got[1]) < 2.0**-126))


@CODECS
def test_hosts_may_come_in_any_order(name: str) -> None:
    elements, chunk_elements = (60_000, 5000) if name == "topk" else (500, 200)  # enough that three hosts kept alike
    layout = flat(elements, chunk_elements)
    parameters, momentum = gradient(elements, 1), gradient(elements, 2)
    blobs = contributions(layout, name, 4)
    results = {tuple(bits(step(parameters, momentum, list(order), layout, name))) for order in permutations(blobs)}
    assert len(results) == 1
    reverse = sorted(blobs, key=lambda each: each.participant, reverse=True)
    renamed = [replace(each, participant=other.participant) for each, other in zip(reverse, reverse[::-1], strict=True)]
    assert (
        tuple(bits(step(parameters, momentum, renamed, layout, name))) not in results
    )  # the order does matter to bits


@CODECS
def test_in_place_and_mapped_states(name: str, tmp_path: Path) -> None:
    layout = flat(3000, 1100)
    parameters, momentum = gradient(3000, 1), gradient(3000, 2)
    blobs = contributions(layout, name, 3)
    expected = bits(step(parameters, momentum, blobs, layout, name))
    assert bits((parameters, momentum)) == bits((gradient(3000, 1), gradient(3000, 2)))  # the former state is kept
    mapped = [np.memmap(tmp_path / str(i), np.float32, "w+", shape=3000) for i in range(2)]
    frozen = parameters.copy(), momentum.copy()
    for each in frozen:
        each.flags.writeable = False
    outer_step(*frozen, mapped[0], mapped[1], blobs, coefficients(blobs), SETTINGS, layout, codec(name, 1), 2)
    assert [each.tobytes() for each in mapped] == expected
    arguments = (parameters, momentum) * 2
    outer_step(*arguments, blobs, coefficients(blobs), SETTINGS, layout, codec(name, 1), 2)
    assert bits((parameters, momentum)) == expected


@CODECS
def test_payloads_may_lie_at_odd_addresses(name: str) -> None:
    layout = flat(515, 129)
    parameters, momentum = gradient(515, 1), gradient(515, 2)
    blobs = contributions(layout, name, 3)
    shifted = [replace(each, payload=memoryview(b"x" + bytes(each.payload))[1:]) for each in blobs]
    expected = bits(step(parameters, momentum, blobs, layout, name))
    assert bits(step(parameters, momentum, shifted, layout, name)) == expected


def test_golden_numbers_of_three_steps_on_one_weight() -> None:
    """lr 0.5, mu 0.5, gradient 1: b is 1, 1.5, 1.75; steps are 0.5 * (1 + b / 2): 0.75, 0.875, 0.9375."""
    layout = flat(1, 1)
    parameters, momentum = np.zeros(1, np.float32), np.zeros(1, np.float32)
    blobs = [blob_of(layout, np.ones(1, np.float32), "f32").contribution()]
    half = OuterSettings(np.float32(0.5), np.float32(0.5))
    trace = []
    for _ in range(3):
        outer_step(*(parameters, momentum) * 2, blobs, coefficients(blobs), half, layout, codec("f32", 1))
        trace.append((float(parameters[0]), float(momentum[0])))
    assert trace == [(-0.75, 1.0), (-1.625, 1.5), (-2.5625, 1.75)]


def test_lr_1_without_momentum_moves_one_host_to_its_local_parameters() -> None:
    layout = flat(64, 64)
    base, local = gradient(64, 1), np.zeros(64, np.float32)
    blobs = [blob_of(layout, base - local, "f32").contribution()]
    plain = OuterSettings(np.float32(1), np.float32(0))
    out = np.empty(64, np.float32), np.empty(64, np.float32)
    outer_step(base, np.zeros(64, np.float32), *out, blobs, coefficients(blobs), plain, layout, codec("f32", 1))
    assert not out[0].any()


@CODECS
def test_without_weight_the_state_stays_momentum_too(name: str) -> None:
    layout = flat(300, 128)
    parameters, momentum = gradient(300, 1), gradient(300, 2)
    bad = [replace(each, good=False, payload=b"") for each in contributions(layout, name, 3)]
    assert bits(step(parameters, momentum, bad, layout, name)) == bits((parameters, momentum))


@CODECS
def test_a_blob_that_is_not_good_changes_nothing(name: str) -> None:
    layout = flat(300, 128)
    parameters, momentum = gradient(300, 1), gradient(300, 2)
    blobs = contributions(layout, name, 3)
    poisoned = replace(blobs[1], good=False, payload=b"\xff" * len(blobs[1].payload))
    left = bits(step(parameters, momentum, [blobs[0], blobs[2]], layout, name))
    assert bits(step(parameters, momentum, [blobs[0], poisoned, blobs[2]], layout, name)) == left


def test_wrong_arguments_are_refused() -> None:
    layout = flat(300, 128)
    blobs = contributions(layout, "int8", 2)
    good = np.zeros(300, np.float32)
    short = replace(blobs[0], payload=bytes(blobs[0].payload)[:-1])
    cases = [
        (good[:-1], blobs, "parameters is float32"),
        (np.zeros(300, np.float64), blobs, "parameters is float64"),
        (np.zeros(600, np.float32)[::2], blobs, "not contiguous"),
        (good, [blobs[0], blobs[0]], "twice"),
        (good, [short, blobs[1]], "payload has"),
    ]
    for parameters, used, message in cases:
        with pytest.raises(ValueError, match=message):
            outer_step(
                parameters,
                good,
                good.copy(),
                good.copy(),
                used,
                [np.float32(0.5)] * 2,
                SETTINGS,
                layout,
                codec("int8", 1),
            )
    with pytest.raises(ValueError):
        outer_step(good, good, good, good, blobs, [np.float32(1)], SETTINGS, layout, codec("int8", 1))


def test_a_codec_reads_no_payload_of_another_size() -> None:
    state = np.zeros(300, np.float32), np.zeros(300, np.float32)
    for name in ("f32", "bf16", "int8", "int4", "topk"):
        with pytest.raises(ValueError, match="not"):
            codec(name, 1).step(
                [np.zeros(299, np.uint8)], np.ones(1, np.float32), state, state, np.float32(1), np.float32(0)
            )


def test_memory_is_a_few_chunks() -> None:
    """A step over mapped bytes allocates scratch tiles, not vectors: the peak of numpy's allocations says so."""
    import tracemalloc

    layout = flat(2_000_000, 1 << 16)
    blobs = contributions(layout, "int8", 2)
    parameters, momentum = np.zeros(2_000_000, np.float32), np.zeros(2_000_000, np.float32)
    arguments = (*(parameters, momentum) * 2, blobs, coefficients(blobs), SETTINGS, layout, codec("int8", 1), 2)
    outer_step(*arguments)
    tracemalloc.start()
    outer_step(*arguments)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 1 << 20
