from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gonka_trainer.gradient import oracle
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.blob import BlobIndex, encode_blob
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.feedback import Feedback, feedback_root
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.state import vector_root
from gonka_trainer.types import ZERO_DIGEST

from .build import flat, gradient, header_of

CODECS = pytest.mark.parametrize("name", ["f32", "bf16", "int8", "int4", "topk"])


def encoded(
    base: F32, local: F32, layout: Layout, name: str, residual: F32 | None, threads: int | None = None
) -> tuple[BlobIndex, list[bytes], F32]:
    chunks: list[bytes] = []
    left: list[F32] = []
    feedback = Feedback(residual, left.append)
    index = encode_blob(
        base, local, layout, codec(name, 1), header_of(layout, name), chunks.append, threads, feedback=feedback
    )
    return index, chunks, np.concatenate([np.empty(0, np.float32), *left])


@CODECS
@given(elements=st.integers(0, 400), chunk_elements=st.integers(40, 500), seed=st.integers(0, 9))
@settings(max_examples=30)
def test_the_residual_is_the_oracles_to_the_bit(name: str, elements: int, chunk_elements: int, seed: int) -> None:
    layout = flat(elements, chunk_elements)
    base, local, residual = (gradient(elements, seed + i, 10.0**-i) for i in range(3))
    index, chunks, left = encoded(base, local, layout, name, residual)
    expected = oracle.reference_feedback(base, local, residual, layout, name, chunks)
    assert left.tobytes() == expected.tobytes()
    assert index.header.feedback_root == feedback_root(layout, left)
    assert index.header.feedback_root == (vector_root(layout, left) if left.any() else ZERO_DIGEST)


@CODECS
def test_no_residual_is_a_residual_of_zeros(name: str) -> None:
    layout, base, local = flat(3000, 700), gradient(3000, 1), gradient(3000, 2)
    none, zeros = (encoded(base, local, layout, name, residual) for residual in (None, np.zeros(3000, np.float32)))
    assert none[1] == zeros[1]
    assert none[2].tobytes() == zeros[2].tobytes()
    assert none[0].commitment == zeros[0].commitment
    plain: list[bytes] = []
    index = encode_blob(base, local, layout, codec(name, 1), header_of(layout, name), plain.append)
    assert plain == none[1]
    assert index.header.feedback_root == ZERO_DIGEST
    assert index.header.payload_root == none[0].header.payload_root


def test_nothing_left_has_the_zero_root() -> None:
    layout, base, local = flat(900, 400), gradient(900, 1), gradient(900, 2)
    index, _, left = encoded(base, local, layout, "f32", None)
    assert not left.any()
    assert index.header.feedback_root == ZERO_DIGEST == feedback_root(layout, None)
    assert feedback_root(layout, -left) == ZERO_DIGEST
    assert feedback_root(flat(0, 4), np.empty(0, np.float32)) == ZERO_DIGEST


def test_threads_and_memory_maps_change_nothing(tmp_path: Path) -> None:
    layout, base, local = flat(5000, 99), gradient(5000, 3), gradient(5000, 4)
    mapped = np.memmap(tmp_path / "residual", np.float32, "w+", shape=5000)
    mapped[:] = gradient(5000, 5, 0.1)
    made = [encoded(base, local, layout, "topk", mapped, threads) for threads in (1, 2, 5)]
    assert len({index.commitment for index, _, _ in made}) == 1
    assert len({left.tobytes() for _, _, left in made}) == 1


def test_a_residual_may_be_written_over_in_place() -> None:
    layout, base, local = flat(5000, 99), gradient(5000, 3), gradient(5000, 4)
    residual = gradient(5000, 5, 0.1)
    _, _, expected = encoded(base, local, layout, "topk", residual)
    place = 0

    def write(chunk: F32) -> None:
        nonlocal place
        residual[place : place + chunk.size] = chunk
        place += chunk.size

    encode_blob(
        base, local, layout, codec("topk", 1), header_of(layout), lambda _: None, feedback=Feedback(residual, write)
    )
    assert residual.tobytes() == expected.tobytes()


def test_feedback_brings_what_was_left_out() -> None:
    """The same gradient each round: with feedback the mean of what is sent nears it, without it most stays away."""
    elements, rounds = 2048, 64
    layout, local, base = flat(elements, 512), gradient(elements, 6), np.zeros(2048, np.float32)
    target = base - local
    residual: F32 | None = None
    sent, alone = np.zeros(elements), np.zeros(elements)
    each = codec("topk", 1)
    for _ in range(rounds):
        _, chunks, residual = encoded(base, local, layout, "topk", residual)
        sent += np.concatenate([each.decode(chunk, 512) for chunk in chunks])
        _, chunks, _ = encoded(base, local, layout, "topk", None)
        alone += np.concatenate([each.decode(chunk, 512) for chunk in chunks])
    norm = np.linalg.norm(target)
    assert np.linalg.norm(sent / rounds - target) < 0.3 * norm
    assert np.linalg.norm(alone / rounds - target) > 0.8 * norm
    assert residual is not None
    assert np.allclose(sent + residual, rounds * target.astype(np.float64), atol=1e-3)


@pytest.mark.parametrize("wrong", [np.zeros(701, np.float32), np.zeros(700, np.float64)], ids=str)
def test_a_residual_of_another_size_or_type_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ValueError, match="the residual is"):
        encoded(gradient(700, 1), gradient(700, 2), flat(700, 300), "topk", wrong)


def test_a_residual_that_is_not_finite_is_named() -> None:
    residual = np.zeros(700, np.float32)
    residual[650] = np.inf
    with pytest.raises(ValueError, match=r"chunk 2 \(from element 600\): element 50 is inf"):
        encoded(gradient(700, 1), gradient(700, 2), flat(700, 300), "int4", residual)
    with pytest.raises(ValueError, match="element 650 is inf"):
        feedback_root(flat(700, 300), residual)
