"""Array types, and the one check that every function does on a vector from outside."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = npt.NDArray[np.float32]
U8: TypeAlias = npt.NDArray[np.uint8]
U16: TypeAlias = npt.NDArray[np.uint16]
U32: TypeAlias = npt.NDArray[np.uint32]
I8: TypeAlias = npt.NDArray[np.int8]
Buffer: TypeAlias = bytes | bytearray | memoryview | U8
"""Bytes of a chunk or blob, wherever they lie (a memory map too)."""

LITTLE_F32 = np.dtype("<f4")
LITTLE_U16 = np.dtype("<u2")


def check_vector(name: str, vector: F32, elements: int) -> None:
    """Raise ValueError unless `vector` is a float32 vector of `elements` elements."""
    if vector.dtype != np.float32 or vector.ndim != 1 or vector.size != elements:
        raise ValueError(f"{name} is {vector.dtype}{list(vector.shape)}, expected float32[{elements}]")


def as_bytes(data: Buffer) -> U8:
    """Return a read view of the data as uint8; no copy. ValueError when it is not contiguous bytes."""
    return np.frombuffer(data, dtype=np.uint8)


def as_little(vector: F32) -> U8:
    """Return the little-endian bytes of a float32 vector; no copy where they lie in memory so, side by side."""
    return vector.astype(LITTLE_F32, order="C", copy=False).view(np.uint8)


def size_bytes(data: Buffer) -> int:
    """Return the length of the data."""
    return data.nbytes if isinstance(data, memoryview | np.ndarray) else len(data)


def first_not_finite(vector: F32) -> int:
    """Return the index of the first NaN or infinity, -1 when there is none."""
    finite = np.isfinite(vector)
    return -1 if finite.all() else int(np.argmin(finite))
