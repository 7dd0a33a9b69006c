"""One daemon for one data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from gonka_trainer.errors import StorageError
from gonka_trainer.storage.files import storage_error


class DirectoryLock:
    """Holds a directory's `lock` file while entered; the system lets go of it when the process dies."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take the lock, making the directory if need be; StorageError when another process has it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise storage_error(error, self._path) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StorageError(
                f"{self._path.parent}: in use by another daemon (process {owner or 'unknown'})",
                "stop that one first, or give this one a data directory of its own",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the lock."""
        os.close(self._descriptor)
        self._descriptor = -1
