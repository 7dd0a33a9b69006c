from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.gradient.blob import BlobIndex, encode_blob, open_blob
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.digest import ENTRY_BYTES, merkle_root
from gonka_trainer.types import Digest, Fault, Verdict, sha256

from .build import Blob, blob_of, expected_of, flat, forged, forged_or_verdict, gradient, header_of

CODECS = pytest.mark.parametrize("name", ["f32", "bf16", "int8", "int4", "topk"])
LAYOUT = flat(700, 300)
BLOB = blob_of(LAYOUT, gradient(700, 1))


def opened(blob: Blob, preamble: bytes | None = None, leaf_list: bytes | None = None) -> BlobIndex | Verdict:
    index = blob.index
    return open_blob(
        index.commitment,
        index.preamble if preamble is None else preamble,
        index.leaf_list if leaf_list is None else leaf_list,
        expected_of(index.header),
        index.layout,
    )


@CODECS
@pytest.mark.parametrize("chunk_elements", [1, 127, 128, 129, 699, 700, 701, 5000])
def test_a_blob_opens_and_every_chunk_is_good(name: str, chunk_elements: int) -> None:
    layout, values = flat(700, chunk_elements), gradient(700, 2)
    blob = blob_of(layout, values, name)
    index = opened(blob)
    assert isinstance(index, BlobIndex)
    assert index.header_verdict.good
    assert [index.check(i, chunk).good for i, chunk in enumerate(blob.chunks)] == [True] * layout.chunk_count
    assert [index.offset(i) for i in range(index.count)] == [sum(map(len, blob.chunks[:i])) for i in range(index.count)]
    assert [index.chunk_bytes(i) for i in range(index.count)] == [len(chunk) for chunk in blob.chunks]
    assert index.total_bytes == index.header.payload_bytes == len(blob.payload)
    sizes = [layout.chunk_elements_of(i) for i in range(index.count)]
    decoded = np.concatenate([codec(name, 1).decode(c, n) for c, n in zip(blob.chunks, sizes, strict=True)])
    sent = decoded != 0 if name == "topk" else np.ones(700, bool)
    atol = {"f32": 0, "bf16": 0.01, "int8": 0.02, "int4": 0.3, "topk": 0.3}[name]
    assert np.allclose(decoded[sent], values[sent], atol=atol)
    assert index.sum_squares == pytest.approx(float(np.sum(decoded.astype(np.float64) ** 2)))


@CODECS
def test_threads_do_not_change_a_blob(name: str) -> None:
    base, local, layout = gradient(5000, 3), gradient(5000, 4), flat(5000, 99)
    made = []
    for threads in (1, 2, 5):
        chunks: list[bytes] = []
        header = header_of(layout, name)
        index = encode_blob(base, local, layout, codec(name, 1), header, chunks.append, threads)
        made.append((index.preamble, index.leaf_list, chunks))
    assert made[0] == made[1] == made[2]


def test_the_pseudo_gradient_is_base_minus_local() -> None:
    base, local = np.array([3, 1], np.float32), np.array([1, 2], np.float32)
    chunks: list[bytes] = []
    layout = flat(2, 2)
    encode_blob(base, local, layout, codec("f32", 1), header_of(layout, "f32"), chunks.append)
    assert struct.unpack("<2f", chunks[0]) == (2.0, -1.0)


def test_strided_and_mapped_vectors_encode_alike(tmp_path_factory: pytest.TempPathFactory) -> None:
    values = gradient(700, 5)
    mapped = np.memmap(tmp_path_factory.mktemp("blob") / "v", np.float32, "w+", shape=700)
    mapped[:] = values
    wide = np.zeros((700, 3), np.float32)
    wide[:, 1] = values
    backwards = values[::-1].copy()[::-1]
    indices = []
    for local in (values, mapped, wide[:, 1], backwards):
        chunks: list[bytes] = []
        zero = np.zeros(700, np.float32)
        indices.append(encode_blob(zero, local, LAYOUT, codec("int8", 1), header_of(LAYOUT), chunks.append))
    assert len({index.commitment for index in indices}) == 1


@pytest.mark.parametrize(
    "wrong", [np.zeros(701, np.float32), np.zeros(700, np.float64), np.zeros((700, 1), np.float32)]
)
def test_vectors_of_another_size_or_type_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected float32"):
        encode_blob(np.zeros(700, np.float32), wrong, LAYOUT, codec("int8", 1), header_of(LAYOUT), lambda _: None)


def test_a_value_that_is_not_finite_stops_the_encoding_and_is_named() -> None:
    values = gradient(700, 1)
    values[650] = np.nan
    with pytest.raises(ValueError, match=r"chunk 2 \(from element 600\): element 50 is nan"):
        blob_of(LAYOUT, values)


def test_an_empty_layout_has_an_empty_blob() -> None:
    blob = blob_of(flat(0, 4), np.empty(0, np.float32))
    index = opened(blob)
    assert isinstance(index, BlobIndex)
    assert (index.header_verdict.good, index.count, index.total_bytes, index.sum_squares) == (True, 0, 0, 0.0)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_preamble_is_not_the_committed_one(at: int, change: int) -> None:
    preamble = bytearray(BLOB.index.preamble)
    preamble[at % len(preamble)] ^= change
    verdict = opened(BLOB, preamble=bytes(preamble))
    assert isinstance(verdict, Verdict)
    assert verdict.fault is Fault.COMMITMENT


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_every_byte_of_the_leaf_list_is_bound(at: int, change: int) -> None:
    """Sums and lengths too: one who relays a list can neither change a norm nor put a breach on its author."""
    listed = bytearray(BLOB.index.leaf_list)
    listed[at % len(listed)] ^= change
    verdict = opened(BLOB, leaf_list=bytes(listed))
    assert isinstance(verdict, Verdict)
    assert verdict.fault is Fault.DIGEST


@pytest.mark.parametrize("size", [0, 1, ENTRY_BYTES, 3 * ENTRY_BYTES - 1, 3 * ENTRY_BYTES + 1, 4 * ENTRY_BYTES])
def test_leaf_lists_of_another_length_are_refused(size: int) -> None:
    verdict = opened(BLOB, leaf_list=(BLOB.index.leaf_list * 2)[:size])
    assert isinstance(verdict, Verdict)
    assert verdict.fault is Fault.DIGEST


def test_a_commitment_to_bytes_that_are_no_header_is_a_breach_of_form() -> None:
    junk = b"junk"
    verdict = open_blob(sha256(b"gonka-trainer/commitment/1", junk), junk, b"", expected_of(BLOB.index.header), LAYOUT)
    assert isinstance(verdict, Verdict)
    assert verdict.fault is Fault.FORM


@given(st.integers(0, 2), st.binary(max_size=600))
def test_foreign_bytes_are_a_digest_fault(index: int, data: bytes) -> None:
    assert BLOB.index.check(index, data).fault is Fault.DIGEST


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_is_a_digest_fault(at: int, change: int) -> None:
    chunk = bytearray(BLOB.chunks[1])
    chunk[at % len(chunk)] ^= change
    assert BLOB.index.check(1, chunk).fault is Fault.DIGEST


def test_chunks_cannot_trade_places() -> None:
    blob = blob_of(flat(256, 128), np.ones(256, np.float32))
    assert blob.chunks[0] == blob.chunks[1]
    swapped = replace(blob.index, entries=blob.index.entries[::-1])
    assert swapped.check(0, blob.chunks[0]).fault is Fault.DIGEST


@pytest.mark.parametrize("index", [3, 100])
def test_there_is_no_chunk_beyond_the_last(index: int) -> None:
    with pytest.raises(IndexError):
        BLOB.index.check(index, b"")


def with_chunk(data: bytes) -> tuple[bytes, ...]:
    return (data, *BLOB.chunks[1:])


def patched(chunk: bytes, at: int, data: bytes) -> bytes:
    return chunk[:at] + data + chunk[at + len(data) :]


FAULTS = [
    ("-128", with_chunk(patched(BLOB.chunks[0], 20, b"\x80")), Fault.FORM),
    ("scale is NaN", with_chunk(patched(BLOB.chunks[0], 0, struct.pack("<f", math.nan))), Fault.FORM),
    ("scale is too large", with_chunk(patched(BLOB.chunks[0], 4, struct.pack("<f", 2.0**40))), Fault.VALUE),
    ("another value, the old sum", with_chunk(patched(BLOB.chunks[0], 30, b"\x7f")), Fault.NORM),
]


@pytest.mark.parametrize(("_", "chunks", "fault"), FAULTS)
def test_the_authors_faults_are_told_apart(_: str, chunks: tuple[bytes, ...], fault: Fault) -> None:
    index = forged(BLOB, chunks)
    assert index.header_verdict.good
    assert index.check(0, chunks[0]).fault is fault
    assert index.check(1, chunks[1]).good
    assert index.check(0, BLOB.chunks[0]).fault is Fault.DIGEST


@pytest.mark.parametrize("lie", [1.0 + 2**-52, 0.5, 2.0, 0.0])
def test_a_claimed_norm_is_exact(lie: float) -> None:
    sums = [entry.sum_squares for entry in BLOB.index.entries]
    sums[1] *= lie
    assert forged(BLOB, BLOB.chunks, tuple(sums)).check(1, BLOB.chunks[1]).fault is Fault.NORM


@pytest.mark.parametrize("total", [math.nan, math.inf, -1.0, -0.0])
def test_sums_that_cannot_be_are_a_breach_before_any_chunk(total: float) -> None:
    sums = (total, *(entry.sum_squares for entry in BLOB.index.entries[1:]))
    index = forged(BLOB, BLOB.chunks, sums)
    assert index.header_verdict.fault is Fault.FORM
    assert index.check(1, BLOB.chunks[1]) == index.header_verdict


BREACHES = [
    ({"round": 4}, Fault.HEADER),
    ({"tokens": 2**64 - 1}, Fault.HEADER),
    ({"payload_bytes": 2**63}, Fault.HEADER),
    ({"codec": "gzip"}, Fault.HEADER),
    ({"layout_root": sha256(b"2^63 elements")}, Fault.HEADER),
]


@pytest.mark.parametrize(("fields", "fault"), BREACHES)
def test_a_breach_of_the_header_leaves_an_index_of_weight_0(fields: dict[str, object], fault: Fault) -> None:
    index = forged(BLOB, BLOB.chunks, **fields)
    assert index.header_verdict.fault is fault
    assert index.check(0, BLOB.chunks[0]) == index.header_verdict
    assert index.check(0, b"").fault is Fault.DIGEST


def test_chunks_of_a_wrong_length_are_a_breach_of_form() -> None:
    index = forged(BLOB, with_chunk(BLOB.chunks[0] + b"\0"))
    assert index.header_verdict.fault is Fault.FORM


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_chunks_than_the_layout_has_leave_nothing_to_fetch(count: int) -> None:
    sums = tuple(entry.sum_squares for entry in BLOB.index.entries[:count])
    fewer = replace(BLOB, index=replace(BLOB.index, entries=BLOB.index.entries[:count]))
    opened = forged_or_verdict(fewer, BLOB.chunks[:count], sums)
    assert isinstance(opened, Verdict)
    assert opened.fault is Fault.HEADER


def test_an_absurd_number_of_leaves_is_refused_before_the_list_is_read() -> None:
    opened = forged_or_verdict(BLOB, BLOB.chunks, leaf_count=2**32 - 1)
    assert isinstance(opened, Verdict)
    assert opened.fault is Fault.HEADER


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=20), st.data())
def test_a_root_knows_its_leaves_and_their_order(leaves: list[bytes], data: st.DataObject) -> None:
    digests = [Digest(leaf) for leaf in leaves]
    root = merkle_root(digests)
    assert merkle_root([*digests, digests[-1]]) != root
    assert merkle_root(digests[:-1]) != root
    at = data.draw(st.integers(0, len(leaves) - 1))
    other = Digest(sha256(digests[at]))
    assert merkle_root([*digests[:at], other, *digests[at + 1 :]]) != root
