"""The `index` file beside a payload: preamble, leaf list and the chunks' lengths, with a checksum over it all.

"gti1" || preamble length u32 || leaf list length u32 || count u32 || lengths u32 each || preamble || leaf list ||
SHA-256 of what stands before                                                             big-endian
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gonka_trainer.errors import DecodeError, StorageError
from gonka_trainer.ports import ChunkIndex
from gonka_trainer.types import DIGEST_BYTES, sha256, u32
from gonka_trainer.wire import Reader

_MAGIC: Final = b"gti1"


@dataclass(frozen=True)
class Index:
    """Preamble, leaf list, and where each chunk stands: `bounds` is int64[count + 1], from 0 to the payload's size."""

    preamble: bytes
    leaf_list: bytes
    bounds: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return len(self.bounds) - 1

    @property
    def payload_bytes(self) -> int:
        """The length of all chunks together."""
        return int(self.bounds[-1])

    def span(self, chunk: int) -> tuple[int, int]:
        """Return (offset, length) of a chunk; IndexError when there is none of that number."""
        if not 0 <= chunk < self.count:
            raise IndexError(f"chunk {chunk} of {self.count}")
        start, stop = int(self.bounds[chunk]), int(self.bounds[chunk + 1])
        return start, stop - start


def index_of(source: ChunkIndex) -> Index:
    """Return what to keep of a checked index; ValueError when its chunks do not stand one after the other."""
    lengths = np.array([source.chunk_bytes(i) for i in range(source.count)], dtype=np.int64)
    index = Index(source.preamble, source.leaf_list, _bounds(lengths))
    if any(source.offset(i) != index.bounds[i] for i in range(source.count)):
        raise ValueError("the chunks do not stand one after the other")
    return index


def encode_index(index: Index) -> bytes:
    """Return the file's bytes; OverflowError for a chunk of 4 GiB or more."""
    lengths = np.diff(index.bounds)
    if lengths.size and int(lengths.max()) >= 1 << 32:
        raise OverflowError("a chunk of 4 GiB or more")
    head = _MAGIC + u32(len(index.preamble)) + u32(len(index.leaf_list)) + u32(index.count)
    body = head + lengths.astype(">u4").tobytes() + index.preamble + index.leaf_list
    return body + sha256(body)


def read_index(path: Path) -> Index:
    """Read the file strictly; StorageError when it is damaged."""
    data = path.read_bytes()
    try:
        return _decode(data)
    except DecodeError as error:
        raise StorageError(f"{path}: damaged: {error}", f"delete {path.parent}: it is fetched again") from error


def _decode(data: bytes) -> Index:
    reader = Reader(data)
    if reader.raw(len(_MAGIC)) != _MAGIC:
        raise DecodeError("not an index")
    preamble_bytes, leaf_list_bytes, count = (reader.integer(4) for _ in range(3))
    lengths = np.frombuffer(reader.raw(4 * count), dtype=">u4").astype(np.int64)
    index = Index(reader.raw(preamble_bytes), reader.raw(leaf_list_bytes), _bounds(lengths))
    if sha256(data[:-DIGEST_BYTES]) != reader.raw(DIGEST_BYTES):
        raise DecodeError("the checksum differs")
    reader.end()
    return index


def _bounds(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
