"""A blob: header (preamble), leaf list, chunks. Writing one, and checking a stranger's piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import digest
from gonka_trainer.gradient.arrays import F32, Buffer, as_little, check_vector, size_bytes
from gonka_trainer.gradient.codec import BoundError, Codec, codec
from gonka_trainer.gradient.digest import ENTRY_BYTES, LeafEntry
from gonka_trainer.gradient.feedback import Feedback, compensated, left_over, root_of
from gonka_trainer.gradient.header import (
    Expected,
    Header,
    check_header,
    commitment_of,
    decode_header,
    encode_header,
)
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.parallel import in_order
from gonka_trainer.types import GOOD, ZERO_DIGEST, Digest, Fault, Verdict


@dataclass(frozen=True)
class BlobIndex:
    """What is known of a blob without its chunks: authentic, since header and list have been checked against C.

    `header_verdict` says whether header and list keep the rules; if not, the blob has weight 0 for everybody should it
    be included all the same, and its author is at fault, not the one who sent it.
    """

    header: Header
    entries: tuple[LeafEntry, ...]
    layout: Layout
    header_verdict: Verdict = GOOD

    @cached_property
    def preamble(self) -> bytes:
        """The encoded header, whose digest is the commitment."""
        return encode_header(self.header)

    @cached_property
    def leaf_list(self) -> bytes:
        """The leaf list's wire form."""
        return digest.encode_leaf_list(self.entries)

    @property
    def commitment(self) -> Digest:
        """C, as it is on chain."""
        return commitment_of(self.preamble)

    @property
    def count(self) -> int:
        """Number of chunks."""
        return len(self.entries)

    @property
    def total_bytes(self) -> int:
        """Length of all chunks together."""
        return self._offsets[-1]

    def chunk_bytes(self, index: int) -> int:
        """Return the length of a chunk."""
        return self.entries[index].length_bytes

    def offset(self, index: int) -> int:
        """Return where a chunk begins in the chunks put one after the other."""
        return self._offsets[index]

    @cached_property
    def sum_squares(self) -> float:
        """The sum of squares of all decoded values: the list's sums, added left to right in float64."""
        total = 0.0
        for entry in self.entries:
            total += entry.sum_squares
        return total

    def check(self, index: int, data: Buffer) -> Verdict:
        """Return GOOD, or what is wrong with the bytes of a chunk; never raises for bytes.

        DIGEST first (the sender's fault), before anything is decoded; then the author's: HEADER or FORM by
        `header_verdict`, FORM, VALUE, NORM. IndexError when there is no such chunk.
        """
        entry = self.entries[index]
        elements = self.layout.chunk_elements_of(index) if index < self.layout.chunk_count else 0
        if size_bytes(data) != entry.length_bytes:
            return Verdict(Fault.DIGEST, f"chunk {index} has {size_bytes(data)} bytes, not {entry.length_bytes}")
        if digest.chunk_leaf(index, elements, entry.sum_squares, data) != entry.digest:
            return Verdict(Fault.DIGEST, f"chunk {index} does not match its leaf")
        if not self.header_verdict.good:
            return self.header_verdict
        return _check_values(codec(self.header.codec, self.header.codec_version), index, elements, entry, data)

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        offsets = [0]
        for entry in self.entries:
            offsets.append(offsets[-1] + entry.length_bytes)
        return tuple(offsets)


def leaf_list_bytes(layout: Layout) -> int:
    """Return the length of every good blob's leaf list: what a reader needs to allow for."""
    return layout.chunk_count * ENTRY_BYTES


def open_blob(
    committed: Digest, preamble: bytes, leaf_list: bytes, expected: Expected, layout: Layout
) -> BlobIndex | Verdict:
    """Check a stranger's header and leaf list against the commitment.

    Returns COMMITMENT when the preamble is not that of C, DIGEST when the list is not that of the header: the sender's
    faults, so another may have the true bytes. FORM when C is of bytes that are no header, HEADER when it has another
    number of leaves than the layout has chunks: the author's fault, and there is nothing to fetch. Else the index, even
    if rules are broken (`BlobIndex.header_verdict`).
    """
    if commitment_of(preamble) != committed:
        return Verdict(Fault.COMMITMENT, "the header does not hash to the commitment")
    try:
        header = decode_header(preamble)
    except DecodeError as error:
        return Verdict(Fault.FORM, f"the committed header cannot be read: {error}")
    if header.leaf_count != layout.chunk_count:
        return Verdict(Fault.HEADER, f"{header.leaf_count} leaves, the layout has {layout.chunk_count} chunks")
    if len(leaf_list) != header.leaf_count * ENTRY_BYTES or digest.payload_root(leaf_list) != header.payload_root:
        return Verdict(Fault.DIGEST, "the leaf list does not give the header's payload root")
    entries = digest.decode_leaf_list(leaf_list)
    return BlobIndex(header, entries, layout, _judge(header, entries, expected, layout))


def encode_blob(
    base: F32,
    local: F32,
    layout: Layout,
    encoder: Codec,
    header: Header,
    sink: Callable[[bytes], object],
    threads: int | None = None,
    feedback: Feedback | None = None,
) -> BlobIndex:
    """Encode the pseudo-gradient `base - local`, chunk by chunk and in order, and return the finished blob's index.

    `base` and `local` are float32[total_elements], memory maps too. `sink` takes each chunk's bytes from this thread;
    a few chunks are in memory. With `feedback` its residual is added first, and the new one goes to its sink, chunk by
    chunk, also from this thread. Payload root, leaf count and length of `header` are filled in here, with feedback the
    root of the new residual too. Raises ValueError for values that cannot be encoded, naming the element of the flat
    vector.
    """
    check_vector("base", base, layout.total_elements)
    check_vector("local", local, layout.total_elements)
    if feedback is not None and feedback.residual is not None:
        check_vector("the residual", feedback.residual, layout.total_elements)

    def encode(index: int) -> _Encoded:
        return _encode_chunk(base, local, layout, encoder, index, feedback)

    entries, leaves, something_left = [], [], False
    for made in in_order(encode, layout.chunk_count, threads):
        sink(made.data)
        entries.append(made.entry)
        if feedback is not None:
            feedback.sink(made.residual)
            leaves.append(made.leaf)
            something_left = something_left or bool(made.residual.any())
    if feedback is not None:
        header = replace(header, feedback_root=root_of(tuple(leaves), something_left))
    return BlobIndex(_finished(header, entries), tuple(entries), layout)


def pseudo_gradient(base: F32, local: F32, layout: Layout, index: int) -> F32:
    """Return chunk `index` of `base - local`, one rounding an element."""
    start, stop = layout.chunk_range(index)
    return np.subtract(base[start:stop], local[start:stop])


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A chunk's bytes and list entry; the new residual of its elements and that one's leaf (empty without feedback)."""

    data: bytes
    entry: LeafEntry
    residual: F32
    leaf: Digest


def _encode_chunk(
    base: F32, local: F32, layout: Layout, encoder: Codec, index: int, feedback: Feedback | None
) -> _Encoded:
    values = pseudo_gradient(base, local, layout, index)
    start, stop = layout.chunk_range(index)
    if feedback is not None and feedback.residual is not None:
        values = compensated(values, feedback.residual[start:stop])
    try:
        data, total = encoder.encode(values)
    except ValueError as error:
        raise ValueError(f"chunk {index} (from element {start}): {error}") from error
    entry = LeafEntry(digest.chunk_leaf(index, values.size, total, data), total, len(data))
    if feedback is None:
        return _Encoded(data, entry, np.empty(0, np.float32), ZERO_DIGEST)
    residual = left_over(values, encoder.decode(data, values.size))
    return _Encoded(data, entry, residual, digest.state_leaf(index, values.size, as_little(residual)))


def _finished(header: Header, entries: list[LeafEntry]) -> Header:
    root = digest.payload_root(digest.encode_leaf_list(entries))
    length_bytes = sum(entry.length_bytes for entry in entries)
    return replace(header, payload_root=root, leaf_count=len(entries), payload_bytes=length_bytes)


def _judge(header: Header, entries: tuple[LeafEntry, ...], expected: Expected, layout: Layout) -> Verdict:
    verdict = check_header(header, expected)
    return verdict if not verdict.good else _check_list(header, entries, layout)


def _check_list(header: Header, entries: tuple[LeafEntry, ...], layout: Layout) -> Verdict:
    if header.leaf_count != layout.chunk_count:
        return Verdict(Fault.HEADER, f"{header.leaf_count} leaves, the layout has {layout.chunk_count} chunks")
    encoder = codec(header.codec, header.codec_version)
    total_bytes = 0
    for index, entry in enumerate(entries):
        expected_bytes = encoder.encoded_bytes(layout.chunk_elements_of(index))
        if entry.length_bytes != expected_bytes:
            return Verdict(Fault.FORM, f"chunk {index} has {entry.length_bytes} bytes, not {expected_bytes}")
        if not math.isfinite(entry.sum_squares) or math.copysign(1.0, entry.sum_squares) < 0:
            return Verdict(Fault.FORM, f"chunk {index} claims {entry.sum_squares} as its sum of squares")
        total_bytes += expected_bytes
    if header.payload_bytes != total_bytes:
        return Verdict(Fault.HEADER, f"{header.payload_bytes} payload bytes, the codec makes {total_bytes}")
    return GOOD


def _check_values(decoder: Codec, index: int, elements: int, entry: LeafEntry, data: Buffer) -> Verdict:
    try:
        total = decoder.sum_squares(data, elements)
    except BoundError as error:
        return Verdict(Fault.VALUE, f"chunk {index}: {error}")
    except DecodeError as error:
        return Verdict(Fault.FORM, f"chunk {index}: {error}")
    if total != entry.sum_squares:
        return Verdict(
            Fault.NORM, f"chunk {index} has {total!r} as its sum of squares, claimed is {entry.sum_squares!r}"
        )
    return GOOD
