from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient.layout import layout_root
from gonka_trainer.gradient.state import (
    StateHeader,
    StateIndex,
    decode_state_header,
    encode_state_header,
    index_state,
    open_state,
    state_root,
    vector_root,
)
from gonka_trainer.types import Fault, Verdict, sha256

from .build import flat, gradient

LAYOUT = flat(700, 300)
PARAMETERS, MOMENTUM = gradient(700, 1), gradient(700, 2)
STATE = index_state(LAYOUT, PARAMETERS, MOMENTUM, 12345, 7)


def chunks() -> list[bytes]:
    cut = [vector[start : start + 300] for vector in (PARAMETERS, MOMENTUM) for start in (0, 300, 600)]
    return [each.astype("<f4").tobytes() for each in cut]


def opened(preamble: bytes = STATE.preamble, leaf_list: bytes = STATE.leaf_list) -> StateIndex | Verdict:
    return open_state(STATE.root, preamble, leaf_list, LAYOUT)


def test_a_state_opens_and_every_chunk_is_good() -> None:
    index = opened()
    assert isinstance(index, StateIndex)
    assert index == STATE
    assert (index.header.tokens, index.header.outer_steps, index.count) == (12345, 7, 6)
    data = chunks()
    assert [index.check(i, chunk).good for i, chunk in enumerate(data)] == [True] * 6
    assert [index.chunk_bytes(i) for i in range(6)] == [len(chunk) for chunk in data]
    assert [index.offset(i) for i in range(6)] == [sum(map(len, data[:i])) for i in range(6)]
    assert index.total_bytes == sum(map(len, data))


def test_every_part_changes_the_root() -> None:
    moved = PARAMETERS.copy()
    moved[699] = np.nextafter(moved[699], np.float32(9))
    others = [
        index_state(flat(700, 299), PARAMETERS, MOMENTUM, 12345, 7),
        index_state(LAYOUT, moved, MOMENTUM, 12345, 7),
        index_state(LAYOUT, PARAMETERS, moved, 12345, 7),
        index_state(LAYOUT, MOMENTUM, PARAMETERS, 12345, 7),
        index_state(LAYOUT, PARAMETERS, MOMENTUM, 12346, 7),
        index_state(LAYOUT, PARAMETERS, MOMENTUM, 12345, 8),
    ]
    assert len({each.root for each in [STATE, *others]}) == len(others) + 1


def test_a_trace_compares_with_the_parameters_root() -> None:
    assert vector_root(LAYOUT, PARAMETERS) == STATE.header.parameters_root


def test_threads_and_where_a_vector_lies_do_not_change_the_root() -> None:
    strided = np.zeros((700, 2), np.float32)
    strided[:, 0] = PARAMETERS
    assert index_state(LAYOUT, strided[:, 0], MOMENTUM, 12345, 7, threads=1).root == STATE.root


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1])
def test_a_state_that_is_not_finite_is_refused(bad: float, which: int) -> None:
    vectors = [PARAMETERS.copy(), MOMENTUM.copy()]
    vectors[which][601] = bad
    with pytest.raises(ValueError, match="element 601 is"):
        index_state(LAYOUT, *vectors, 0, 0)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_of_header_or_list_is_a_digest_fault(at: int, change: int) -> None:
    for name, data in (("preamble", STATE.preamble), ("leaf_list", STATE.leaf_list)):
        wrong = bytearray(data)
        wrong[at % len(wrong)] ^= change
        verdict = opened(**{name: bytes(wrong)})
        assert isinstance(verdict, Verdict)
        assert verdict.fault is Fault.DIGEST


@pytest.mark.parametrize("leaf_list", [b"", STATE.leaf_list[:-1], STATE.leaf_list + bytes(32)])
def test_leaf_lists_of_another_length_are_refused(leaf_list: bytes) -> None:
    verdict = opened(leaf_list=leaf_list)
    assert isinstance(verdict, Verdict)
    assert verdict.fault is Fault.DIGEST


def test_a_root_of_another_run_layout_or_of_junk_is_refused() -> None:
    for layout in (flat(701, 300), flat(700, 299)):
        verdict = open_state(STATE.root, STATE.preamble, STATE.leaf_list, layout)
        assert isinstance(verdict, Verdict)
        assert verdict.fault is Fault.HEADER
    junk = open_state(state_root(b"junk"), b"junk", b"", LAYOUT)
    assert isinstance(junk, Verdict)
    assert junk.fault is Fault.FORM


@given(st.integers(0, 5), st.binary(max_size=1300))
def test_foreign_bytes_are_a_digest_fault(index: int, data: bytes) -> None:
    assert STATE.check(index, data).fault is Fault.DIGEST


def test_parameters_and_momentum_cannot_trade_places() -> None:
    assert STATE.check(0, chunks()[3]).fault is Fault.DIGEST
    with pytest.raises(IndexError):
        STATE.check(6, b"")


@given(st.binary(max_size=200))
def test_state_headers_decode_strictly(data: bytes) -> None:
    try:
        header = decode_state_header(data)
    except DecodeError:
        assert len(data) != 140
        return
    assert encode_state_header(header) == data


def test_an_empty_layout_has_a_state() -> None:
    layout, none = flat(0, 4), np.empty(0, np.float32)
    index = index_state(layout, none, none, 0, 0)
    assert index.count == 0
    assert index.header == StateHeader(layout_root(layout), sha256(), sha256(), 0, 0)
    assert open_state(index.root, index.preamble, b"", layout) == index
