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

CODECS = [codec(name, 1) for name in ("f32", "bf16", "int8", "int4", "topk")]
F32C, BF16, INT8, INT4, TOPK = CODECS
FINITE = st.floats(-VALUE_BOUND, VALUE_BOUND, width=32, allow_subnormal=True)
VECTORS = arrays(np.float32, st.integers(0, 400), elements=FINITE)
EVERY = pytest.mark.parametrize("each", CODECS, ids=lambda c: c.name)


@EVERY
@given(VECTORS)
def test_encoding_round_trips_and_is_canonical(each: Codec, values: F32) -> None:
    payload, total = each.encode(values)
    assert len(payload) == each.encoded_bytes(values.size)
    decoded = each.decode(payload, values.size)
    assert not np.signbit(decoded[decoded == 0]).any()
    assert each.sum_squares(payload, values.size) == total
    if each.name == "f32":
        assert np.array_equal(decoded, values)
    again = each.encode(decoded)[0] if each.name in {"f32", "bf16"} else payload
    assert again == payload
    assert np.abs(decoded).max(initial=0) <= VALUE_BOUND * (1 + 2**-20)


@given(VECTORS)
def test_kernels_are_the_oracle_to_the_bit(values: F32) -> None:
    n = values.size
    encoders = [
        oracle.reference_encode_bf16,
        oracle.reference_encode_int8,
        oracle.reference_encode_int4,
        oracle.reference_encode_topk,
    ]
    for each, encode in zip(CODECS[1:], encoders, strict=True):
        payload, _ = each.encode(values)
        assert payload == encode(values)
        assert each.decode(payload, n).tobytes() == oracle.reference_decode(each.name, payload, n).tobytes()
    payload, total = INT8.encode(values)
    assert total == oracle.reference_sum_squares_int8(payload, n)
    payload, total = INT4.encode(values)
    assert total == oracle.reference_sum_squares_int4(payload, n)
    payload, total = TOPK.encode(values)
    assert total == oracle.reference_sum_squares_topk(payload, n)
    payload, total = BF16.encode(values)
    assert total == oracle.reference_sum_squares_f32(oracle.reference_decode("bf16", payload, n))
    assert F32C.encode(values)[1] == oracle.reference_sum_squares_f32(values)


@pytest.mark.parametrize(("each", "block", "most"), [(INT8, 128, 127), (INT4, 64, 7)])
@given(values=arrays(np.float32, st.integers(1, 300), elements=st.floats(-1e4, 1e4, width=32)))
def test_integers_are_off_by_half_a_step_at_most(each: Codec, block: int, most: int, values: F32) -> None:
    """The int4 scale is a bfloat16: a step is up to 2**-8 of itself larger, or smaller and then the largest is cut."""
    payload, _ = each.encode(values)
    decoded = each.decode(payload, values.size).astype(np.float64)
    slack, least = (2.0**-8 * most, 2.0**-130) if each is INT4 else (1e-4, 2.0**-142)
    for start in range(0, values.size, block):
        part = values[start : start + block].astype(np.float64)
        step = np.abs(part).max() / most
        assert np.abs(decoded[start : start + block] - part).max() <= step * (0.5 + slack) + least


@given(arrays(np.uint32, st.integers(0, 400), elements=st.integers(0, 2**32 - 1)))
def test_bf16_is_the_nearest_and_torchs(bits: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    values = bits.view(np.float32)
    values = values[np.abs(values) <= VALUE_BOUND]
    decoded = BF16.decode(BF16.encode(values)[0], values.size)
    assert np.array_equal(decoded, torch.from_numpy(values).bfloat16().float().numpy())


@pytest.mark.parametrize("each", [BF16, INT4], ids=lambda c: c.name)
@pytest.mark.parametrize("elements", [0, 1, 2, 3, 63, 64, 65, 127, 251, 1021])
@pytest.mark.parametrize("scale", [2.0**-149, 2.0**-133, 2.0**-126, 1.0, 2.0**38])
def test_odd_shapes_at_every_magnitude(each: Codec, elements: int, scale: float) -> None:
    values = (np.random.default_rng(elements).integers(-4, 5, elements) * np.float64(scale)).astype(np.float32)
    payload, total = each.encode(values)
    assert len(payload) == each.encoded_bytes(elements)
    decoded = each.decode(payload, elements)
    assert np.abs(decoded - values).max(initial=0) <= np.abs(values).max(initial=0) / 13 + 2.0**-130
    assert each.sum_squares(payload, elements) == total
    assert decoded.tobytes() == oracle.reference_decode(each.name, payload, elements).tobytes()


@pytest.mark.parametrize(("each", "block"), [(INT8, 128), (INT4, 64)])
@pytest.mark.parametrize("blocks", [2, 3])
def test_one_outlier_costs_its_own_block_alone(each: Codec, block: int, blocks: int) -> None:
    values = np.full(block * blocks, 0.01, np.float32)
    values[5] = 2.0**39
    decoded = each.decode(each.encode(values)[0], values.size)
    assert decoded[5] == pytest.approx(values[5], rel=2.0**-8)
    assert np.allclose(decoded[block:], 0.01, rtol=1e-2)


@EVERY
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**40 * (1 + 2**-23), -(2.0**41), 1e30])
@pytest.mark.parametrize("position", [0, 127, 128, 299])
def test_what_cannot_be_encoded_is_named(each: Codec, bad: float, position: int) -> None:
    values = np.ones(300, np.float32)
    values[position] = bad
    with pytest.raises(ValueError, match=f"element {position} is"):
        each.encode(values)


@EVERY
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
    assert each.name in {"int8", "int4", "topk"} or each.encode(decoded)[0] == payload
    assert each.sum_squares(payload, elements) >= 0


@EVERY
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


def int4_chunk(scale: int, *pairs: int) -> bytes:
    """`scale`: bits of a bfloat16."""
    return struct.pack("<H", scale) + bytes(pairs)


REFUSED = [
    ("int4", int4_chunk(0x3F80, 0x08), 2, DecodeError),
    ("int4", int4_chunk(0x3F80, 0x80), 2, DecodeError),
    ("int4", int4_chunk(0x3F80, 0x11), 1, DecodeError),
    ("int4", int4_chunk(0x3F80, 0x11, 0x10), 3, DecodeError),
    ("int4", int4_chunk(0, 0x10), 2, DecodeError),
    ("int4", int4_chunk(0x3F80, 0), 2, DecodeError),
    ("int4", int4_chunk(0x8000, 0), 2, DecodeError),
    ("int4", int4_chunk(0xBF80, 1), 2, DecodeError),
    ("int4", int4_chunk(0x7F80, 1), 2, DecodeError),
    ("int4", int4_chunk(0x7FC0, 1), 2, DecodeError),
    ("int4", int4_chunk(0xFF80, 1), 2, DecodeError),
    ("int4", int4_chunk(0x5213, 1), 2, BoundError),
    ("int4", int4_chunk(0x3F80, 1, 0), 2, DecodeError),
    ("int4", int4_chunk(0x3F80), 1, DecodeError),
    ("int4", b"\0", 0, DecodeError),
    ("bf16", struct.pack("<H", 0x8000), 1, DecodeError),
    ("bf16", struct.pack("<H", 0x7F80), 1, BoundError),
    ("bf16", struct.pack("<H", 0xFFC0), 1, BoundError),
    ("bf16", struct.pack("<H", 0x5381), 1, BoundError),
    ("bf16", struct.pack("<H", 0xD381), 1, BoundError),
    ("bf16", struct.pack("<H", 0x3F80) + b"\0", 1, DecodeError),
    ("bf16", b"\0", 1, DecodeError),
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


def test_the_largest_values_there_are_canonical() -> None:
    assert BF16.decode(struct.pack("<2H", 0x5380, 0xD380), 2).tolist() == [VALUE_BOUND, -VALUE_BOUND]
    top = INT4.decode(int4_chunk(0x5212, 0x97), 2)
    assert top[0] == -top[1]
    assert VALUE_BOUND * 0.99 < top[0] <= VALUE_BOUND


def test_refusal_in_the_last_block_is_noticed() -> None:
    payload = bytearray(INT8.encode(np.ones(1000, np.float32))[0])
    payload[-1] = 0x80
    with pytest.raises(DecodeError, match="block 7 "):
        INT8.decode(payload, 1000)


@EVERY
def test_strided_reversed_and_transposed_values_encode_alike(each: Codec) -> None:
    values = np.linspace(-1, 1, 300, dtype=np.float32)
    wide = np.zeros((300, 2), np.float32)
    wide[:, 1] = values
    frozen = values.copy()
    frozen.flags.writeable = False
    for same in (wide[:, 1], values[::-1].copy()[::-1], np.asfortranarray(wide)[:, 1], wide.T[1], frozen):
        assert each.encode(same) == each.encode(values)


@EVERY
def test_values_may_lie_at_odd_addresses(each: Codec) -> None:
    values = np.linspace(-1, 1, 300, dtype=np.float32)
    odd = np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:].view(np.float32)
    assert not odd.flags.aligned
    assert each.encode(odd) == each.encode(values)


@EVERY
@pytest.mark.parametrize("elements", [511, 512, 513, 1024, 1663])
def test_sums_over_many_blocks_are_added_in_the_stated_order(each: Codec, elements: int) -> None:
    values = (np.random.default_rng(elements).standard_normal(elements) * 1e3).astype(np.float32)
    payload, total = each.encode(values)
    decoded = each.decode(payload, elements)
    by_integers = {
        "int8": oracle.reference_sum_squares_int8,
        "int4": oracle.reference_sum_squares_int4,
        "topk": oracle.reference_sum_squares_topk,
    }
    wanted = by_integers.get(each.name, lambda _, __: oracle.reference_sum_squares_f32(decoded))
    assert total == each.sum_squares(payload, elements) == wanted(payload, elements)


@EVERY
@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros(3, np.float16), np.zeros((3, 1), np.float32)], ids=str)
def test_values_of_another_type_are_refused(each: Codec, wrong: F32) -> None:
    with pytest.raises(ValueError, match="expected float32"):
        each.encode(wrong)


@EVERY
def test_payloads_may_lie_anywhere_in_memory(each: Codec) -> None:
    values = np.linspace(-1, 1, 300, dtype=np.float32)
    payload, total = each.encode(values)
    shifted = memoryview(b"x" + payload)[1:]
    assert each.decode(shifted, 300).tobytes() == each.decode(payload, 300).tobytes()
    assert each.sum_squares(np.frombuffer(payload, np.uint8), 300) == total


@pytest.mark.parametrize(("name", "version"), [("int8", 2), ("bf16", 0), ("int2", 1), ("", 0)])
def test_unknown_codecs(name: str, version: int) -> None:
    with pytest.raises(KeyError, match="no codec"):
        codec(name, version)
