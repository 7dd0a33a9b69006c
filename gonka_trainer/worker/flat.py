"""Flat parameter files: raw little-endian float32 in the layout's order, nothing else in the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gonka_trainer.errors import StorageError
from gonka_trainer.gradient.layout import Layout

F32 = npt.NDArray[np.float32]


def read_flat(path: Path, layout: Layout) -> F32:
    """Map the parameters read-only, shape (total_elements,); StorageError when the file is missing or of another size.

    It holds them alone, or is a state's payload: the parameters, then the outer momentum.
    """
    try:
        size_bytes, wanted_bytes = path.stat().st_size, 4 * layout.total_elements
        if size_bytes not in {wanted_bytes, 2 * wanted_bytes}:
            raise StorageError(f"{path}: {size_bytes} bytes, the layout has {wanted_bytes}")
        return np.memmap(path, dtype="<f4", mode="r", shape=(layout.total_elements,))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


def write_flat(path: Path, parts: Iterable[F32]) -> None:
    """Write the tensors one after the other; the file is complete and on disk, or it is not there (StorageError)."""
    with replacing(path) as aside, aside.open("wb") as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype="<f4").data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to, then fsync and rename it over `path`; on any error `path` is as it was.

    An OSError, also of the body, becomes a StorageError.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield aside
        _sync(aside)
        aside.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}", "is the disk full?") from error
    finally:
        aside.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
