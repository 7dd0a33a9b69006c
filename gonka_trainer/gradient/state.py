"""The state from which a round starts, its root and its index: parameters, momentum and the counters.

    state root = SHA-256("gonka-trainer/state/1" || layout root || parameters root || momentum root ||
                         tokens u64 || outer steps u32)                                       big-endian

It names no run, since the manifest pins the first state's root and the run's id is of the manifest's hash; what binds
a state to its run is the record that posts it, and the header of every blob that starts from it.

Both vectors are cut as the layout says, raw little-endian float32. Each has a Merkle root of its own over state leaves
(`digest`), so that a trace's state hashes, which are of parameters alone, compare with it. Chunk i of the index is
chunk i of the parameters for i < chunk_count, then come the momentum's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient import digest
from gonka_trainer.gradient.arrays import (
    F32,
    LITTLE_F32,
    Buffer,
    as_bytes,
    as_little,
    check_vector,
    first_not_finite,
    size_bytes,
)
from gonka_trainer.gradient.layout import Layout, layout_root
from gonka_trainer.gradient.parallel import in_order
from gonka_trainer.types import DIGEST_BYTES, GOOD, Digest, Fault, Verdict, sha256, u32, u64
from gonka_trainer.wire import Reader

STATE_HEADER_BYTES: Final = 3 * DIGEST_BYTES + 8 + 4

_TAG: Final = b"gonka-trainer/state/1"


@dataclass(frozen=True, slots=True)
class StateHeader:
    """What a state root covers. `tokens`: of all blobs applied so far; `outer_steps`: how many steps were applied."""

    layout_root: Digest
    parameters_root: Digest
    momentum_root: Digest
    tokens: int
    outer_steps: int


@dataclass(frozen=True)
class StateIndex:
    """What is known of a state without its chunks; the same interface as a blob's index."""

    header: StateHeader
    leaves: tuple[Digest, ...]
    layout: Layout

    @cached_property
    def preamble(self) -> bytes:
        """The encoded header."""
        return encode_state_header(self.header)

    @cached_property
    def leaf_list(self) -> bytes:
        """The leaves, 32 bytes each: the parameters', then the momentum's."""
        return b"".join(self.leaves)

    @property
    def root(self) -> Digest:
        """The state root, as it is on chain."""
        return state_root(self.preamble)

    @property
    def count(self) -> int:
        """Number of chunks, of both vectors together."""
        return 2 * self.layout.chunk_count

    @property
    def total_bytes(self) -> int:
        """Length of all chunks together."""
        return 8 * self.layout.total_elements

    def chunk_bytes(self, index: int) -> int:
        """Return the length of a chunk."""
        return 4 * self.layout.chunk_elements_of(self._place(index)[1])

    def offset(self, index: int) -> int:
        """Return where a chunk begins in the chunks put one after the other."""
        vector, chunk = self._place(index)
        return 4 * (vector * self.layout.total_elements + chunk * self.layout.chunk_elements)

    def check(self, index: int, data: Buffer) -> Verdict:
        """Return GOOD, DIGEST for bytes that are not the state's, or VALUE for a state that is not finite."""
        _, chunk = self._place(index)
        elements = self.layout.chunk_elements_of(chunk)
        if size_bytes(data) != 4 * elements:
            return Verdict(Fault.DIGEST, f"chunk {index} has {size_bytes(data)} bytes, not {4 * elements}")
        if digest.state_leaf(chunk, elements, data) != self.leaves[index]:
            return Verdict(Fault.DIGEST, f"chunk {index} does not match its leaf")
        bad = first_not_finite(as_bytes(data).view(LITTLE_F32))
        return GOOD if bad < 0 else Verdict(Fault.VALUE, f"chunk {index}: element {bad} is not finite")

    def _place(self, index: int) -> tuple[int, int]:
        if not 0 <= index < self.count:
            raise IndexError(f"chunk {index} of {self.count}")
        return divmod(index, self.layout.chunk_count)


def encode_state_header(header: StateHeader) -> bytes:
    """Return the header's fixed binary form, in the order of its fields."""
    roots = (header.layout_root, header.parameters_root, header.momentum_root)
    return b"".join((*roots, u64(header.tokens), u32(header.outer_steps)))


def decode_state_header(data: bytes) -> StateHeader:
    """Read a state header strictly; DecodeError for anything else than its exact length."""
    reader = Reader(data)
    layout, parameters, momentum = (Digest(reader.raw(DIGEST_BYTES)) for _ in range(3))
    header = StateHeader(layout, parameters, momentum, tokens=reader.integer(8), outer_steps=reader.integer(4))
    reader.end()
    return header


def state_root(preamble: bytes) -> Digest:
    """Return the root of an encoded state header."""
    return sha256(_TAG, preamble)


def vector_leaves(layout: Layout, vector: F32, threads: int | None = None) -> tuple[Digest, ...]:
    """Return the state leaves of float32[total_elements]. ValueError naming the first element that is not finite."""
    check_vector("the vector", vector, layout.total_elements)

    def leaf(index: int) -> Digest:
        start, stop = layout.chunk_range(index)
        chunk = vector[start:stop]
        bad = first_not_finite(chunk)
        if bad >= 0:
            raise ValueError(f"element {start + bad} is {chunk[bad]}: a state is finite")
        return digest.state_leaf(index, stop - start, as_little(chunk))

    return tuple(in_order(leaf, layout.chunk_count, threads))


def vector_root(layout: Layout, vector: F32, threads: int | None = None) -> Digest:
    """Return the Merkle root of one vector, as it stands in state headers and traces."""
    return digest.merkle_root(vector_leaves(layout, vector, threads))


def index_state(
    layout: Layout,
    parameters: F32,
    momentum: F32,
    tokens: int,
    outer_steps: int,
    threads: int | None = None,
) -> StateIndex:
    """Hash a state of this host. ValueError when an element is not finite."""
    first = vector_leaves(layout, parameters, threads)
    second = vector_leaves(layout, momentum, threads)
    roots = digest.merkle_root(first), digest.merkle_root(second)
    return StateIndex(StateHeader(layout_root(layout), *roots, tokens, outer_steps), first + second, layout)


def open_state(root: Digest, preamble: bytes, leaf_list: bytes, layout: Layout) -> StateIndex | Verdict:
    """Check a donor's header and leaf list against a final state root.

    DIGEST when they are not the root's (another donor may have them); FORM or HEADER when the root itself is of
    something else than a state of this layout.
    """
    if state_root(preamble) != root:
        return Verdict(Fault.DIGEST, "the header does not hash to the state root")
    try:
        header = decode_state_header(preamble)
    except DecodeError as error:
        return Verdict(Fault.FORM, f"the state header cannot be read: {error}")
    if header.layout_root != layout_root(layout):
        return Verdict(Fault.HEADER, "the state is of another layout")
    return _with_leaves(header, leaf_list, layout)


def _with_leaves(header: StateHeader, leaf_list: bytes, layout: Layout) -> StateIndex | Verdict:
    count = layout.chunk_count
    if len(leaf_list) != 2 * count * DIGEST_BYTES:
        return Verdict(Fault.DIGEST, f"the leaf list has {len(leaf_list)} bytes, not {2 * count * DIGEST_BYTES}")
    starts = range(0, len(leaf_list), DIGEST_BYTES)
    leaves = tuple(Digest(leaf_list[start : start + DIGEST_BYTES]) for start in starts)
    roots = digest.merkle_root(leaves[:count]), digest.merkle_root(leaves[count:])
    if roots != (header.parameters_root, header.momentum_root):
        return Verdict(Fault.DIGEST, "the leaf list does not give the header's roots")
    return StateIndex(header, leaves, layout)
