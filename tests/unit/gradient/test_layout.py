from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.gradient.layout import MAX_CHUNK_ELEMENTS, Entry, Layout, layout_root

SHAPES = st.lists(st.lists(st.integers(0, 7), max_size=3).map(tuple), max_size=6)


def layout_of(shapes: list[tuple[int, ...]], chunk_elements: int) -> Layout:
    return Layout(tuple(Entry(f"t{i}", shape, "zeros") for i, shape in enumerate(shapes)), chunk_elements)


@given(SHAPES, st.integers(1, 400))
def test_chunks_cover_every_element_once(shapes: list[tuple[int, ...]], chunk_elements: int) -> None:
    layout = layout_of(shapes, chunk_elements)
    covered = [i for chunk in range(layout.chunk_count) for i in range(*layout.chunk_range(chunk))]
    assert covered == list(range(layout.total_elements))
    assert sum(layout.chunk_elements_of(i) for i in range(layout.chunk_count)) == layout.total_elements


@given(SHAPES)
def test_tensors_lie_side_by_side(shapes: list[tuple[int, ...]]) -> None:
    layout = layout_of(shapes, 5)
    at = 0
    for entry, offset in zip(layout.entries, layout.offsets, strict=True):
        assert offset == at
        at += entry.elements
    assert at == layout.total_elements


def test_a_scalar_has_one_element_and_an_empty_tensor_none() -> None:
    layout = layout_of([(), (0, 3), (2,)], 2)
    assert (layout.total_elements, layout.offsets, layout.chunk_count) == (3, (0, 1, 1), 2)


@pytest.mark.parametrize("index", [-1, 2])
def test_no_such_chunk(index: int) -> None:
    with pytest.raises(IndexError):
        layout_of([(3,)], 2).chunk_elements_of(index)


def test_every_part_of_a_layout_changes_its_root() -> None:
    base = Layout((Entry("a", (2, 3), "zeros"), Entry("b", (), "ones")), 4)
    others = [
        Layout(base.entries, 5),
        Layout(base.entries[::-1], 4),
        Layout(base.entries[:1], 4),
        Layout((Entry("a", (3, 2), "zeros"), base.entries[1]), 4),
        Layout((Entry("a", (6,), "zeros"), base.entries[1]), 4),
        Layout((Entry("a", (2, 3), "ones"), base.entries[1]), 4),
        Layout((Entry("c", (2, 3), "zeros"), base.entries[1]), 4),
        Layout((base.entries[0], Entry("b", (1,), "ones")), 4),
    ]
    assert len({layout_root(each) for each in [base, *others]}) == len(others) + 1


INITS = [
    "",
    "one",
    "normal:1",
    "uniform:",
    "uniform:-1",
    "uniform:1e-3",
    "uniform:.5",
    "uniform:01",
    "uniform:١",
    "ones ",
]


@pytest.mark.parametrize("init", INITS)
def test_unknown_inits_are_refused(init: str) -> None:
    with pytest.raises(ValueError, match="unknown init"):
        Entry("t", (1,), init)


def test_impossible_layouts_are_refused() -> None:
    entry = Entry("t", (1,), "zeros")
    with pytest.raises(ValueError, match="same name"):
        Layout((entry, entry), 4)
    with pytest.raises(ValueError, match="negative extent"):
        Entry("t", (2, -1), "zeros")
    with pytest.raises(ValueError, match="too many"):
        Layout((Entry("t", (2**63, 2**63), "zeros"),), 4)
    for chunk_elements in (0, -1, MAX_CHUNK_ELEMENTS + 1):
        with pytest.raises(ValueError, match="chunk_elements"):
            Layout((entry,), chunk_elements)
