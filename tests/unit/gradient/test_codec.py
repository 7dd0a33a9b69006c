from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import oracle
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.codec import VALUE_BOUND, BoundError, Codec, codec

CODECS = [codec("f32", 1), codec("int8", 1)]
INT8 = CODECS[1]
FINITE = st.floats(-VALUE_BOUND, VALUE_BOUND, width=32, allow_subnormal=True)
VECTORS = arrays(np.float32, st.integers(0, 400), elements=FINITE)
BOTH = pytest.mark.parametrize("each", CODECS, ids=lambda c: c.name)


@BOTH
@given(VECTORS)
def test_encoding_round_trips_and_is_canonical(each: Codec, values: F32) -> None:
    payload, total = each.encode(values)
    assert len(payload) == each.encoded_bytes(values.size)
    decoded = each.decode(payload, values.size)
    assert not np.signbit(decoded[decoded == 0]).any()
    assert each.sum_squares(payload, values.size) == total
    if each.name == "f32":
        assert np.array_equal(decoded, values)
    assert np.abs(decoded).max(initial=0) <= VALUE_BOUND * (1 + 2**-20)


@given(VECTORS)
def test_kernels_are_the_oracle_to_the_bit(values: F32) -> None:
    payload, total = INT8.encode(values)
    assert payload == oracle.reference_encode_int8(values)
    assert total == oracle.reference_sum_squares_int8(payload, values.size)
    assert (
        INT8.decode(payload, values.size).tobytes() == oracle.reference_decode("int8", payload, values.size).tobytes()
    )
    assert CODECS[0].encode(values)[1] == oracle.reference_sum_squares_f32(values)


@given(arrays(np.float32, st.integers(1, 300), elements=st.floats(-1e4, 1e4, width=32)))
def test_int8_is_off_by_half_a_step_at_most(values: F32) -> None:
    payload, _ = INT8.encode(values)
    decoded = INT8.decode(payload, values.size).astype(np.float64)
    for start in range(0, values.size, 128):
        block = values[start : start + 128].astype(np.float64)
        step = np.abs(block).max() / 127
        assert np.abs(decoded[start : start + 128] - block).max() <= step * 0.5001 + 2.0**-142


@pytest.mark.parametrize("blocks", [2, 3])
def test_one_outlier_costs_its_own_block_alone(blocks: int) -> None:
    values = np.full(128 * blocks, 0.01, np.float32)
    values[5] = 1e30 if VALUE_BOUND > 1e30 else 2.0**39
    decoded = INT8.decode(INT8.encode(values)[0], values.size)
    assert decoded[5] == pytest.approx(values[5], rel=1e-6)
    assert np.allclose(decoded[128:], 0.01, rtol=1e-2)


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**40 * (1 + 2**-23), -(2.0**41), 1e30])
@pytest.mark.parametrize("position", [0, 127, 128, 299])
def test_what_cannot_be_encoded_is_named(each: Codec, bad: float, position: int) -> None:
    values = np.ones(300, np.float32)
    values[position] = bad
    with pytest.raises(ValueError, match=f"element {position} is"):
        each.encode(values)


@BOTH
@given(st.data())
@settings(max_examples=300)
def test_arbitrary_bytes_decode_or_raise_decode_error(each: Codec, data: st.DataObject) -> None:
    elements = data.draw(st.integers(0, 260))
    size = data.draw(st.sampled_from([each.encoded_bytes(elements), each.encoded_bytes(elements) + 1, elements]))
    payload = data.draw(st.binary(min_size=size, max_size=size))
    try:
        decoded = each.decode(payload, elements)
    except DecodeError:
        with pytest.raises(DecodeError):
            each.sum_squares(payload, elements)
        return
    assert decoded.shape == (elements,)
    assert np.isfinite(decoded).all()
    assert np.abs(decoded).max(initial=0) <= VALUE_BOUND
    assert each.encode(decoded)[0] == payload or each.name == "int8"
    assert each.sum_squares(payload, elements) >= 0


@BOTH
@given(values=VECTORS, flip=st.integers(0, 8 * 2048))
def test_a_flipped_bit_decodes_to_finite_values_or_is_refused(each: Codec, values: F32, flip: int) -> None:
    payload = bytearray(each.encode(values)[0])
    if not payload:
        return
    payload[flip // 8 % len(payload)] ^= 1 << flip % 8
    try:
        decoded = each.decode(payload, values.size)
    except DecodeError:
        return
    assert np.isfinite(decoded).all()
    assert (np.abs(decoded) <= VALUE_BOUND).all()


def int8_chunk(scale: float, *quants: int) -> bytes:
    return struct.pack("<f", scale) + struct.pack(f"{len(quants)}b", *quants)


REFUSED = [
    ("int8", int8_chunk(1.0, -128, 0), 2, DecodeError),
    ("int8", int8_chunk(0.0, 1, 0), 2, DecodeError),
    ("int8", int8_chunk(1.0, 0, 0), 2, DecodeError),
    ("int8", int8_chunk(-0.0, 0, 0), 2, DecodeError),
    ("int8", int8_chunk(-1.0, 1, 0), 2, DecodeError),
    ("int8", int8_chunk(float("nan"), 1, 0), 2, DecodeError),
    ("int8", int8_chunk(float("inf"), 1, 0), 2, DecodeError),
    ("int8", int8_chunk(2.0**40, 1, 0), 2, BoundError),
    ("int8", int8_chunk(1.0, 1, 0) + b"\0", 2, DecodeError),
    ("int8", int8_chunk(1.0, 1), 2, DecodeError),
    ("int8", b"", 1, DecodeError),
    ("int8", b"\0", 0, DecodeError),
    ("f32", struct.pack("<f", float("nan")), 1, BoundError),
    ("f32", struct.pack("<f", float("-inf")), 1, BoundError),
    ("f32", struct.pack("<f", 2.0**41), 1, BoundError),
    ("f32", struct.pack("<f", -0.0), 1, DecodeError),
    ("f32", struct.pack("<f", 1.0) + b"\0", 1, DecodeError),
    ("f32", struct.pack("<f", 1.0)[:3], 1, DecodeError),
]


@pytest.mark.parametrize(("name", "payload", "elements", "error"), REFUSED)
def test_what_is_not_canonical_is_refused(name: str, payload: bytes, elements: int, error: type[DecodeError]) -> None:
    for read in (codec(name, 1).decode, codec(name, 1).sum_squares):
        with pytest.raises(DecodeError) as caught:
            read(payload, elements)
        assert type(caught.value) is error


def test_refusal_in_the_last_block_is_noticed() -> None:
    payload = bytearray(INT8.encode(np.ones(1000, np.float32))[0])
    payload[-1] = 0x80
    with pytest.raises(DecodeError, match="block 7 "):
        INT8.decode(payload, 1000)


@BOTH
def test_strided_reversed_and_transposed_values_encode_alike(each: Codec) -> None:
    values = np.linspace(-1, 1, 300, dtype=np.float32)
    wide = np.zeros((300, 2), np.float32)
    wide[:, 1] = values
    frozen = values.copy()
    frozen.flags.writeable = False
    for same in (wide[:, 1], values[::-1].copy()[::-1], np.asfortranarray(wide)[:, 1], wide.T[1], frozen):
        assert each.encode(same) == each.encode(values)


@BOTH
@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros(3, np.float16), np.zeros((3, 1), np.float32)], ids=str)
def test_values_of_another_type_are_refused(each: Codec, wrong: F32) -> None:
    with pytest.raises(ValueError, match="expected float32"):
        each.encode(wrong)


@BOTH
def test_payloads_may_lie_anywhere_in_memory(each: Codec) -> None:
    values = np.linspace(-1, 1, 300, dtype=np.float32)
    payload, total = each.encode(values)
    shifted = memoryview(b"x" + payload)[1:]
    assert each.decode(shifted, 300).tobytes() == each.decode(payload, 300).tobytes()
    assert each.sum_squares(np.frombuffer(payload, np.uint8), 300) == total


@pytest.mark.parametrize(("name", "version"), [("int8", 2), ("bf16", 1), ("", 0)])
def test_unknown_codecs(name: str, version: int) -> None:
    with pytest.raises(KeyError, match="no codec"):
        codec(name, version)
