"""Writing files that must not be lost, and saying what is wrong when the disk refuses."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from gonka_trainer.errors import StorageError

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace the file by one with these bytes: after a crash there is the old or the new one, never a part.

    Raises StorageError when the disk refuses; the old file then stands and nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_synced(temporary, data, mode)
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error(error, path, len(data)) from error


def sync_directory(path: Path) -> None:
    """Put the directory's entries on disk, so that a rename in it outlives a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte at the descriptor's place; OSError when the disk refuses."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_all_at(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    """Write every byte at `offset`; OSError when the disk refuses."""
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, offset)
        view, offset = view[count:], offset + count


def allocate(path: Path, size_bytes: int) -> None:
    """Create the file with its whole size on disk, so that a full disk shows now; StorageError names the shortfall."""
    free_bytes = shutil.disk_usage(path.parent).free
    if free_bytes < size_bytes:
        raise full_error(path.parent, size_bytes)
    try:
        with path.open("xb") as file:
            if size_bytes:
                os.posix_fallocate(file.fileno(), 0, size_bytes)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise storage_error(error, path, size_bytes) from error


def storage_error(error: OSError, path: Path, needed_bytes: int = 0) -> StorageError:
    """Return the user's error for what the system said of `path`."""
    if error.errno in _FULL:
        return full_error(path.parent, needed_bytes)
    return StorageError(f"{path}: {error.strerror}", "check the data directory's owner, mode and disk")


def full_error(folder: Path, needed_bytes: int) -> StorageError:
    """Return the error for a directory whose disk has no room for `needed_bytes` more."""
    free_bytes = shutil.disk_usage(folder).free
    return StorageError(
        f"{folder}: the disk is full: {needed_bytes:,} bytes are needed, {free_bytes:,} are free",
        "free space on this disk, or move the data directory to a larger one and start again",
    )


def _write_synced(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
