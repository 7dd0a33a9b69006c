from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import oracle
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.codec_topk import kept_of, largest
from gonka_trainer.gradient.outer import OuterSettings

TOPK, INT4 = codec("topk", 1), codec("int4", 1)
SIZES = [0, 1, 2, 31, 32, 33, 63, 64, 65, 97, 1021, 2048, 2049, 4099, 65536, 65537]


def sample(elements: int, seed: int = 0) -> F32:
    return np.random.default_rng(seed).standard_normal(elements).astype(np.float32)


@pytest.mark.parametrize("elements", SIZES)
def test_sizes_follow_from_the_elements_and_the_oracle_agrees(elements: int) -> None:
    values = sample(elements)
    payload, total = TOPK.encode(values)
    assert len(payload) == TOPK.encoded_bytes(elements)
    assert payload == oracle.reference_encode_topk(values)
    assert total == TOPK.sum_squares(payload, elements) == oracle.reference_sum_squares_topk(payload, elements)
    decoded = TOPK.decode(payload, elements)
    assert decoded.tobytes() == oracle.reference_decode("topk", payload, elements).tobytes()
    chosen = largest(values)
    assert chosen.size == kept_of(elements) == -(-elements // 32)
    assert set(np.flatnonzero(decoded)) <= set(chosen.tolist())
    assert np.array_equal(decoded[chosen], INT4.decode(INT4.encode(values[chosen])[0], chosen.size))


def test_a_large_chunk_costs_eleven_and_a_quarter_bits_an_entry() -> None:
    elements = 1 << 19
    assert TOPK.encoded_bytes(elements) == pytest.approx(elements / 32 * 11.25 / 8, abs=2)


@given(arrays(np.float32, st.integers(1, 300), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 2.0**-149, -3.5])))
def test_the_largest_are_kept_and_of_equal_ones_the_first(values: F32) -> None:
    chosen = largest(values).tolist()
    order = sorted(range(values.size), key=lambda i: (-abs(float(values[i])), i))
    assert chosen == sorted(order[: -(-values.size // 32)])


@given(arrays(np.uint32, st.integers(1, 500), elements=st.integers(0, 0x53800000)), st.integers(0, 2**32 - 1))
def test_selection_tells_neighbouring_floats_apart(bits: np.ndarray, seed: int) -> None:
    signs = np.random.default_rng(seed).integers(0, 2, bits.size, dtype=np.uint32) << np.uint32(31)
    values = (bits | signs).view(np.float32)
    chosen = largest(values)
    order = np.lexsort((np.arange(values.size), -np.abs(values)))
    assert np.array_equal(chosen, np.sort(order[: chosen.size]))


def refused(payload: bytes, elements: int, match: str) -> None:
    for read in (TOPK.decode, TOPK.sum_squares):
        with pytest.raises(DecodeError, match=match):
            read(payload, elements)


def chunk(elements: int, indices: list[int], low_bits: int, pairs: bytes = b"", spare: int = 0) -> bytes:
    """Write any indices, in any order, as the form would."""
    low = high = 0
    for place, index in enumerate(indices):
        low |= (index & ((1 << low_bits) - 1)) << place * low_bits
        high |= 1 << ((index >> low_bits) + place)
    values = b"\x80\x3f" * -(-len(indices) // 64) + (pairs or b"\x11" * (len(indices) // 2))
    low_bytes = -(-len(indices) * low_bits // 8)
    high_bytes = TOPK.encoded_bytes(elements) - len(values) - low_bytes
    return values + (low | spare).to_bytes(low_bytes, "little") + high.to_bytes(high_bytes, "little")


def test_every_break_of_the_indices_is_refused() -> None:
    """64 elements: 2 entries, 5 low bits; high has 2 + 1 bits."""
    good = chunk(64, [3, 40], 5)
    assert np.flatnonzero(TOPK.decode(good, 64)).tolist() == [3, 40]
    assert TOPK.decode(chunk(64, [62, 63], 5), 64)[62:].tolist() == [1.0, 1.0]
    refused(chunk(64, [40, 40], 5), 64, "ascending")
    refused(chunk(64, [41, 40], 5), 64, "ascending")
    refused(chunk(64, [3, 64], 5), 64, "ascending")
    refused(chunk(64, [3, 40], 5, spare=1 << 10), 64, "spare bit")
    refused(good[:-1] + bytes([good[-1] | 0x80]), 64, "ascending")
    refused(good[:-1] + bytes([good[-1] | 0x02]), 64, "ascending")
    refused(good[:-1] + b"\x01", 64, "ascending")
    refused(good[:-1] + b"\x00", 64, "ascending")
    refused(good + b"\0", 64, "bytes")
    refused(good[:-1], 64, "bytes")
    refused(chunk(64, [3, 40], 5, b"\x18"), 64, "canonical")
    refused(chunk(63, [3, 62], 4)[:-3] + b"\xff\xff\xff", 63, "ascending")
    refused(b"\0", 0, "bytes")
    assert TOPK.decode(b"", 0).size == 0


def test_the_last_element_of_a_short_chunk_is_the_last_index() -> None:
    refused(chunk(63, [3, 63], 4), 63, "ascending")
    assert TOPK.decode(chunk(63, [3, 62], 4), 63)[62] == 1.0


@given(elements=st.integers(0, 4000), data=st.binary(max_size=300), seed=st.integers(0, 99))
@settings(max_examples=200)
def test_damaged_chunks_decode_to_as_many_entries_or_are_refused(elements: int, data: bytes, seed: int) -> None:
    payload = bytearray(TOPK.encode(sample(elements, seed))[0])
    for at, change in enumerate(data):
        if change < 8 and payload:
            payload[at * 7 % len(payload)] ^= 1 << change
    try:
        decoded = TOPK.decode(payload, elements)
    except DecodeError:
        return
    assert np.isfinite(decoded).all()
    assert np.count_nonzero(decoded) <= kept_of(elements)
    assert decoded.tobytes() == oracle.reference_decode("topk", payload, elements).tobytes()


@pytest.mark.parametrize("elements", [1, 33, 2049, 70_001])
@pytest.mark.parametrize("hosts", [1, 2, 7])
def test_the_sparse_step_is_that_of_dense_vectors(elements: int, hosts: int) -> None:
    """Of decoded dense vectors, subnormal momentum, negative zeros in the state and products that vanish included."""
    parameters, momentum = sample(elements, 1), sample(elements, 2) * np.float32(1e-39)
    parameters[::5], momentum[::3] = -0.0, -0.0
    made = [TOPK.encode(sample(elements, 10 + host) * np.float32(10.0 ** (-9 * host)))[0] for host in range(hosts)]
    factors = np.linspace(0.1, 1.1, hosts, dtype=np.float32)
    settings_ = OuterSettings(np.float32(0.7), np.float32(0.9))
    gradients = [(a, oracle.reference_decode("topk", each, elements)) for a, each in zip(factors, made, strict=True)]
    expected = oracle.reference_step(parameters, momentum, gradients, settings_)
    out = np.empty_like(parameters), np.empty_like(momentum)
    payloads = [np.frombuffer(each, np.uint8) for each in made]
    TOPK.step(payloads, factors, (parameters, momentum), out, settings_.learning_rate, settings_.momentum)
    assert [each.tobytes() for each in out] == [each.tobytes() for each in expected]


def test_a_step_over_bytes_that_were_never_checked_touches_nothing_outside() -> None:
    state = np.zeros(64, np.float32), np.zeros(64, np.float32)
    bad = np.frombuffer(chunk(64, [3, 64], 5), np.uint8)
    with pytest.raises(DecodeError):
        TOPK.step([bad], np.ones(1, np.float32), state, state, np.float32(1), np.float32(0))
    assert not state[0].any()
