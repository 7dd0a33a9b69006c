from __future__ import annotations

import numpy as np
import pytest

from gonka_trainer.gradient.initial import amplitude, initial_chunk, initial_parameters
from gonka_trainer.gradient.layout import Entry, Layout

ENTRIES = (
    Entry("w", (101, 97), "uniform:0.02"),
    Entry("s", (), "ones"),
    Entry("e", (0,), "ones"),
    Entry("b", (7,), "zeros"),
)
TOTAL = 101 * 97 + 8


@pytest.mark.parametrize("chunk_elements", [1000, TOTAL, TOTAL + 1, 7919])
def test_chunks_do_not_change_the_values(chunk_elements: int) -> None:
    whole = initial_parameters(Layout(ENTRIES, TOTAL), b"seed")
    layout = Layout(ENTRIES, chunk_elements)
    assert initial_parameters(layout, b"seed", threads=3).tobytes() == whole.tobytes()
    chunks = [initial_chunk(layout, b"seed", i) for i in range(layout.chunk_count)]
    assert np.concatenate(chunks).tobytes() == whole.tobytes()


def test_tensors_are_filled_as_their_init_says() -> None:
    values = initial_parameters(Layout(ENTRIES, 64), b"seed")
    assert values[-8:].tolist() == [1.0] + [0.0] * 7
    weights = values[:-8].astype(np.float64)
    assert abs(weights.std() / 0.02 - 1) < 0.01
    assert abs(weights.mean()) < 4 * 0.02 / np.sqrt(weights.size)
    assert 0.999 < np.abs(weights).max() / (0.02 * np.sqrt(3)) <= 1
    assert np.unique(weights).size > weights.size - 20


def test_seeds_give_other_values() -> None:
    layout = Layout(ENTRIES, 64)
    assert not np.array_equal(initial_parameters(layout, b"a"), initial_parameters(layout, b"b"))


def test_neighbours_are_not_correlated() -> None:
    values = initial_parameters(Layout((Entry("w", (1 << 18,), "uniform:1"),), 1 << 16), b"seed").astype(np.float64)
    for lag in (1, 2, 128, 512):
        assert abs(np.mean(values[lag:] * values[:-lag])) < 5 / np.sqrt(values.size)


def test_amplitude_is_the_nearest_float32() -> None:
    assert amplitude("1") == np.float32(np.sqrt(3.0) * 2.0**-24)
    assert amplitude("0") == 0
