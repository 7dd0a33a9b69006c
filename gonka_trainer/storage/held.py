"""One blob or state on disk: a folder with `index`, `payload` and a byte for every chunk that is there and checked.

The bytes are in `chunks` while some are missing; when none is, that file is renamed to `complete`. A byte also says
whether the chunk kept the codec's rules when it came, so that a fetch that goes on later still knows.

A chunk's byte is written after the payload has been synced, so a chunk that counts is on disk, whenever the power
goes; a byte that is lost costs fetching that chunk again. (The other way, to sync nothing and to hash again at start
what the bytes name, would make a restart read the whole payload before it can serve or go on.)
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from gonka_trainer.errors import StorageError
from gonka_trainer.ports import ChunkIndex, StoredObject
from gonka_trainer.storage.files import storage_error, sync_directory, write_all_at, write_atomic
from gonka_trainer.storage.index_file import Index, encode_index, read_index

PAYLOAD: Final = "payload"
COMPLETE: Final = "complete"

_INDEX: Final = "index"
_CHUNKS: Final = "chunks"
_HERE: Final = 1
_BAD_FORM: Final = 2


class Held:
    """An object on disk, whole or in part. Its methods may be called from any thread; they block on the disk."""

    def __init__(self, folder: Path, index: Index, present: bytearray, complete: bool) -> None:
        self._folder = folder
        self._index = index
        self._present = present
        self._lock = threading.Lock()
        self.complete = complete

    @property
    def stored(self) -> StoredObject:
        """The object as ports know it."""
        return StoredObject(self._index.preamble, self._index.leaf_list, self._folder / PAYLOAD)

    @property
    def folder(self) -> Path:
        """Where it stands."""
        return self._folder

    def is_of(self, index: ChunkIndex) -> bool:
        """Whether this is the object that the checked index describes."""
        return (self._index.preamble, self._index.leaf_list) == (index.preamble, index.leaf_list)

    def has(self, chunk: int) -> bool:
        """Whether the chunk's checked bytes are on disk."""
        return 0 <= chunk < self._index.count and (self.complete or self._present[chunk] != 0)

    def missing(self) -> tuple[int, ...]:
        """Return the chunks that are not here, in order."""
        return tuple(i for i in range(self._index.count) if not self.has(i))

    def read(self, chunk: int) -> bytes | None:
        """Return a chunk's bytes, or None when it is not here (or the object was deleted meanwhile)."""
        if not self.has(chunk):
            return None
        offset, length = self._index.span(chunk)
        try:
            with (self._folder / PAYLOAD).open("rb") as file:
                data = os.pread(file.fileno(), length, offset)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self._folder / PAYLOAD) from error
        return data if len(data) == length else None

    @property
    def bad_form(self) -> bool:
        """Whether a chunk that is here matches its digest and breaks a rule."""
        return _BAD_FORM in self._present

    def write(self, chunk: int, data: bytes, good: bool = True) -> None:
        """Put a chunk whose digest is right on disk; from then on it is here. Doing it twice changes nothing.

        `good`: it keeps the codec's rules too.
        ValueError for bytes of another length; StorageError when the disk refuses.
        """
        offset, length = self._index.span(chunk)
        if len(data) != length:
            raise ValueError(f"chunk {chunk} has {length} bytes, not {len(data)}")
        if self.has(chunk):
            return
        self._put(PAYLOAD, data, offset, sync=True)
        mark = _HERE if good else _BAD_FORM
        # The mark of a bad form is synced: forgotten, it would make this host apply what others do not.
        self._put(_CHUNKS, bytes([mark]), chunk, sync=not good)
        self._present[chunk] = mark

    def finish(self) -> StoredObject:
        """Mark the object as complete and return it; ValueError when chunks are missing."""
        with self._lock:
            if self.missing():
                raise ValueError(f"{len(self.missing())} chunks are missing")
            if not self.complete:
                self._mark_complete()
        return self.stored

    def _mark_complete(self) -> None:
        try:
            (self._folder / _CHUNKS).rename(self._folder / COMPLETE)
            sync_directory(self._folder)
        except OSError as error:
            raise storage_error(error, self._folder) from error
        self.complete = True

    def _put(self, name: str, data: bytes, offset: int, *, sync: bool) -> None:
        path = self._folder / name
        try:
            with path.open("r+b", buffering=0) as file:
                write_all_at(file.fileno(), data, offset)
                if sync:
                    os.fdatasync(file.fileno())
        except OSError as error:
            raise storage_error(error, path, len(data)) from error


def describe(folder: Path, index: Index, *, complete: bool) -> None:
    """Write `index` and the chunks' bytes into a folder that has its payload already. StorageError: disk refuses."""
    write_atomic(folder / _INDEX, encode_index(index))
    marks = bytes([_HERE if complete else 0]) * index.count
    write_atomic(folder / (COMPLETE if complete else _CHUNKS), marks)


def load(folder: Path) -> Held | None:
    """Return what stands in the folder, or None when there is no object; StorageError when it is damaged."""
    try:
        index = read_index(folder / _INDEX)
        complete = (folder / COMPLETE).exists()
        present = bytearray((folder / (COMPLETE if complete else _CHUNKS)).read_bytes())
        size_bytes = (folder / PAYLOAD).stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(error, folder) from error
    if len(present) != index.count or size_bytes != index.payload_bytes:
        raise StorageError(f"{folder}: payload and index do not fit", f"delete {folder}: it is fetched again")
    return Held(folder, index, present, complete)
