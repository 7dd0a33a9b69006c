"""Leaves, Merkle roots and the leaf list.

    chunk leaf   SHA-256(0x00 || index u32 || elements u32 || sum of squares f64 || bytes)    big-endian
    state leaf   SHA-256(0x00 || index u32 || elements u32 || bytes)
    node         SHA-256(0x01 || left || right); the last node of an odd level is promoted as it is
    list entry   chunk leaf 32 || sum of squares f64 8 || byte length u32 4
    entry node   SHA-256(0x02 || list entry)

A blob's payload root is the Merkle root over the *entry nodes*: so the root vouches for every sum and length in the
list before any chunk is there, and nobody who relays a list can alter one. A state's list holds its leaves alone.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient.arrays import Buffer, as_bytes
from gonka_trainer.types import DIGEST_BYTES, Digest, sha256

EMPTY_ROOT: Final = sha256()
"""Root of no leaves: SHA-256 of no bytes, which no leaf or node can be."""

ENTRY_BYTES: Final = DIGEST_BYTES + 8 + 4

_CHUNK: Final = struct.Struct(">BIId")
_STATE: Final = struct.Struct(">BII")
_ENTRY: Final = struct.Struct(">32sdI")


@dataclass(frozen=True, slots=True)
class LeafEntry:
    """What the leaf list says of one chunk: its leaf, the sum of squares of its decoded values, its length."""

    digest: Digest
    sum_squares: float
    length_bytes: int


def chunk_leaf(index: int, elements: int, sum_squares: float, data: Buffer) -> Digest:
    """Return the leaf of a blob's chunk."""
    return _leaf(_CHUNK.pack(0, index, elements, sum_squares), data)


def state_leaf(index: int, elements: int, data: Buffer) -> Digest:
    """Return the leaf of a chunk of parameters or of momentum; `index` counts from 0 in each of the two."""
    return _leaf(_STATE.pack(0, index, elements), data)


def merkle_root(leaves: Sequence[Digest]) -> Digest:
    """Return the root over the leaves, in order; EMPTY_ROOT for none, the leaf itself for one."""
    level = list(leaves) or [EMPTY_ROOT]
    while len(level) > 1:
        pairs = [sha256(b"\x01", level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def encode_entry(entry: LeafEntry) -> bytes:
    """Return the 44 bytes of a list entry."""
    return _ENTRY.pack(entry.digest, entry.sum_squares, entry.length_bytes)


def encode_leaf_list(entries: Iterable[LeafEntry]) -> bytes:
    """Return the list's wire form: its entries, one after the other."""
    return b"".join(map(encode_entry, entries))


def decode_leaf_list(data: bytes) -> tuple[LeafEntry, ...]:
    """Return the entries; DecodeError when the length is no multiple of 44. Sums and lengths are not judged here."""
    if len(data) % ENTRY_BYTES:
        raise DecodeError(f"a leaf list of {len(data)} bytes is not made of entries of {ENTRY_BYTES}")
    return tuple(LeafEntry(Digest(digest), total, size) for digest, total, size in _ENTRY.iter_unpack(data))


def payload_root(leaf_list: bytes) -> Digest:
    """Return the root that a header commits: over the entry nodes of the list's wire form."""
    starts = range(0, len(leaf_list), ENTRY_BYTES)
    return merkle_root([sha256(b"\x02", leaf_list[start : start + ENTRY_BYTES]) for start in starts])


def _leaf(prefix: bytes, data: Buffer) -> Digest:
    state = hashlib.sha256(prefix)
    state.update(as_bytes(data).data)
    return Digest(state.digest())
