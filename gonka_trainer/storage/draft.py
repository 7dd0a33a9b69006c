"""Writing an object of this host's own: into a folder of its own first, then to its name by one rename."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from gonka_trainer.ports import ChunkIndex, StoredObject
from gonka_trainer.storage.files import allocate, storage_error, write_all_at
from gonka_trainer.storage.held import PAYLOAD, describe
from gonka_trainer.storage.index_file import index_of


class Draft:
    """A payload being written, of a size known before, under no name yet. Leaving it unpublished deletes it.

    Write it front to back with `append`, or through a memory map of `payload`.
    """

    def __init__(self, folder: Path, size_bytes: int, publish: Callable[[Path, str, bytes, int], StoredObject]) -> None:
        self._folder = folder
        self._size_bytes = size_bytes
        self._publish = publish
        self._at = 0

    def __enter__(self) -> Self:
        """Make the folder and the payload in its whole size; StorageError when the disk has no room."""
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            try:
                self._folder.mkdir()
            except OSError as error:
                raise storage_error(error, self._folder) from error
            allocate(self.payload, self._size_bytes)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete what has not been published."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def payload(self) -> Path:
        """The payload's file: raw bytes, to be written in place."""
        return self._folder / PAYLOAD

    def append(self, data: bytes | memoryview) -> None:
        """Write the next bytes; ValueError beyond the size, StorageError when the disk refuses."""
        if self._at + len(data) > self._size_bytes:
            raise ValueError(f"payload of {self._size_bytes} bytes, {self._at + len(data)} written")
        try:
            with self.payload.open("r+b", buffering=0) as file:
                write_all_at(file.fileno(), data, self._at)
        except OSError as error:
            raise storage_error(error, self.payload, len(data)) from error
        self._at += len(data)

    def publish(self, kind: str, key: bytes, round_number: int, index: ChunkIndex) -> StoredObject:
        """Sync everything and give the object its name: afterwards it is there, complete, whatever happens.

        Memory maps of the payload must be flushed or dropped before. If the name is taken, the object there stands.
        ValueError when the index is not of this payload's size.
        """
        kept = index_of(index)
        if kept.payload_bytes != self._size_bytes:
            raise ValueError(f"index of {kept.payload_bytes} bytes, payload of {self._size_bytes}")
        self._sync_payload()
        describe(self._folder, kept, complete=True)
        return self._publish(self._folder, kind, key, round_number)

    def _sync_payload(self) -> None:
        try:
            with self.payload.open("r+b") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(error, self.payload) from error
