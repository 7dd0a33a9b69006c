"""The canonical flat vector: which parameter lies where, and how the vector is cut into chunks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Final

from gonka_trainer.types import Digest, lp, sha256, u32, u64

MAX_CHUNK_ELEMENTS: Final = (1 << 20) - (1 << 12)  # a raw float32 chunk stays under gRPC's 4 MiB, framing included
MAX_ELEMENTS: Final = 1 << 48
DEFAULT_CHUNK_ELEMENTS: Final = 1 << 19

_TAG: Final = b"gonka-trainer/layout/1"
_INIT: Final = re.compile(r"zeros|ones|uniform:(?:0|[1-9][0-9]{0,2})(?:\.[0-9]{1,20})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """One named tensor: its shape and initial values, `zeros`, `ones` or `uniform:<decimal standard deviation>`.

    Raises ValueError when the init is none of these or an extent is negative.
    """

    name: str
    shape: tuple[int, ...]
    init: str

    def __post_init__(self) -> None:
        if not _INIT.fullmatch(self.init):
            raise ValueError(f"tensor {self.name!r}: unknown init {self.init!r}")
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"tensor {self.name!r}: negative extent in {self.shape}")

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar, 0 for a tensor with an empty extent."""
        return prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """Tensors in canonical order (the order given), flattened row by row, in chunks of `chunk_elements`.

    The last chunk holds what is left. Chunks do not respect tensor borders. Raises ValueError for repeated names and
    sizes beyond the limits.
    """

    entries: tuple[Entry, ...]
    chunk_elements: int

    def __post_init__(self) -> None:
        if not 1 <= self.chunk_elements <= MAX_CHUNK_ELEMENTS:
            raise ValueError(f"chunk_elements is {self.chunk_elements}, must be in 1..{MAX_CHUNK_ELEMENTS}")
        if len({entry.name for entry in self.entries}) != len(self.entries):
            raise ValueError("two tensors of the layout have the same name")
        if self.total_elements > MAX_ELEMENTS or self.chunk_count > 1 << 31:
            raise ValueError(f"the layout has {self.total_elements} elements in {self.chunk_count} chunks, too many")

    @cached_property
    def total_elements(self) -> int:
        """Length of the flat vector."""
        return sum(entry.elements for entry in self.entries)

    @property
    def chunk_count(self) -> int:
        """Number of chunks; 0 when there are no elements."""
        return -(-self.total_elements // self.chunk_elements)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Position of each tensor's first element in the flat vector, in the order of `entries`."""
        return tuple(accumulate((entry.elements for entry in self.entries), initial=0))[:-1]

    def chunk_elements_of(self, index: int) -> int:
        """Return the number of elements of chunk `index`; IndexError when there is no such chunk."""
        start, stop = self.chunk_range(index)
        return stop - start

    def chunk_range(self, index: int) -> tuple[int, int]:
        """Return the first element of chunk `index` and the one after its last; IndexError when there is none."""
        if not 0 <= index < self.chunk_count:
            raise IndexError(f"chunk {index} of {self.chunk_count}")
        start = index * self.chunk_elements
        return start, min(start + self.chunk_elements, self.total_elements)


def encode_layout(layout: Layout) -> bytes:
    """Return the layout's fixed binary form, the preimage of its root.

    `chunk_elements u32 || count u32 || entries`, an entry being `name || dimensions u32 || extents u64 || init`,
    big-endian, texts in UTF-8 behind a u32 length.
    """
    parts = [u32(layout.chunk_elements), u32(len(layout.entries))]
    for entry in layout.entries:
        parts += [lp(entry.name.encode()), u32(len(entry.shape)), *map(u64, entry.shape), lp(entry.init.encode())]
    return b"".join(parts)


def layout_root(layout: Layout) -> Digest:
    """Return the digest that names the layout in headers and states."""
    return sha256(_TAG, encode_layout(layout))
