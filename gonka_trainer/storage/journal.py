"""The journal: every event that the core was told, on disk before it is acted on. Replaying it gives the state.

    file    "gonka-trainer journal 1\\n" || run id 32 || frames
    frame   marker 4 || length u32 || check 8 || payload         one frame for each append, synced before it returns
    check   first 8 bytes of SHA-256(offset of the frame u64 || payload)
    payload (length u32 || event)+                               big-endian; events as in `event_codec`

An append is one frame, and the next is written only after it is on disk: so what a crash can tear is the last frame
alone, whatever order its sectors came in. A broken frame with a whole one after it is therefore damage, not a crash,
and the journal is refused rather than cut: what it lost may have been said on chain.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gonka_trainer.errors import DecodeError, StorageError
from gonka_trainer.round.events import Event
from gonka_trainer.storage.event_codec import decode_event, encode_event
from gonka_trainer.storage.files import storage_error, sync_directory, write_all, write_atomic
from gonka_trainer.storage.lock import DirectoryLock
from gonka_trainer.types import DIGEST_BYTES, Digest, lp, sha256, u32, u64
from gonka_trainer.wire import Reader

MAX_PAYLOAD_BYTES: Final = 64 << 20

_MAGIC: Final = b"gonka-trainer journal 1\n"
_MARKER: Final = b"\xf7\x0a\x9e\xd1"
_CHECK_BYTES: Final = 8
_FRAME_BYTES: Final = len(_MARKER) + 4 + _CHECK_BYTES
_START: Final = len(_MAGIC) + DIGEST_BYTES


class Journal:
    """The journal of one run. While entered it holds the lock of the file's directory. Not for several threads.

    `warning` says after entering what a crash had torn and was cut off; None when nothing was.
    """

    def __init__(self, path: Path, run_id: Digest) -> None:
        self._path = path
        self._run_id = run_id
        self._stack = ExitStack()
        self._descriptor = -1
        self._size_bytes = 0
        self.warning: str | None = None

    def __enter__(self) -> Self:
        """Open or create the file and cut off a torn last frame.

        StorageError: in use by another daemon, of another run, damaged in the middle, or not readable.
        """
        with ExitStack() as stack:
            stack.enter_context(DirectoryLock(self._path.parent))
            self.warning = self._prepare()
            self._descriptor = self._open()
            stack.callback(os.close, self._descriptor)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file and let go of the directory."""
        self._descriptor = -1
        self._stack.close()

    def append(self, event: Event) -> None:
        """Put the event on disk; it is there, synced, when this returns. StorageError: it is not."""
        self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> None:
        """Put the events on disk, all or none, with one sync. StorageError: none of them is there."""
        if self._descriptor < 0:
            raise StorageError(f"{self._path}: not open for appending", "restart the daemon: it replays the journal")
        if not events:
            return
        payload = b"".join(lp(encode_event(event)) for event in events)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise ValueError(f"{len(payload)} bytes in one append, at most {MAX_PAYLOAD_BYTES}")
        frame = _frame(self._size_bytes, payload)
        self._write(frame)
        self._size_bytes += len(frame)

    def replay(self) -> Iterator[Event]:
        """Yield all events of the file as of now, in order. StorageError for a frame that this version cannot read."""
        return read_events(self._path)

    def _prepare(self) -> str | None:
        try:
            if not self._path.exists() or self._path.stat().st_size < _START:
                return self._create()
            end, size_bytes = _measure(self._path, self._run_id)
            self._size_bytes = end
            return self._cut(end, size_bytes) if end < size_bytes else None
        except OSError as error:
            raise storage_error(error, self._path) from error

    def _create(self) -> str | None:
        header = _MAGIC + self._run_id
        found = self._path.read_bytes() if self._path.exists() else b""
        if not header.startswith(found):
            raise StorageError(f"{self._path}: not a journal of this run", "give the run a data directory of its own")
        write_atomic(self._path, header, 0o600)
        self._size_bytes = _START
        return f"{self._path}: begun anew, its creation was cut short" if found else None

    def _cut(self, end: int, size_bytes: int) -> str:
        with self._path.open("r+b") as file:
            file.truncate(end)
            os.fsync(file.fileno())
        return f"{self._path}: the last append was torn by a crash; {size_bytes - end} bytes cut off at byte {end}"

    def _open(self) -> int:
        try:
            sync_directory(self._path.parent)
            return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(error, self._path) from error

    def _write(self, frame: bytes) -> None:
        try:
            write_all(self._descriptor, frame)
        except OSError as error:
            self._take_back()
            raise storage_error(error, self._path, len(frame)) from error
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            # After a failed sync nobody knows what is on disk: only a restart, which reads it again, does.
            self._descriptor = -1
            raise storage_error(error, self._path, len(frame)) from error

    def _take_back(self) -> None:
        """Remove a part of a frame: nothing was promised yet, so a later append can succeed once there is room."""
        try:
            os.ftruncate(self._descriptor, self._size_bytes)
        except OSError:
            self._descriptor = -1


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a journal file without locking or changing it; a torn last frame is left out.

    StorageError for damage, and for an event that this version does not know.
    """
    if not path.is_file() or path.stat().st_size < _START:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        offset = _START
        while (end := _frame_end(data, offset)) is not None:
            yield from _decode(path, offset, data[offset + _FRAME_BYTES : end])
            offset = end
        _refuse_damage(path, data, offset)


def _frame(offset: int, payload: bytes) -> bytes:
    return _MARKER + u32(len(payload)) + sha256(u64(offset), payload)[:_CHECK_BYTES] + payload


def _frame_end(data: mmap.mmap, offset: int) -> int | None:
    """Return where the whole frame at `offset` ends, or None when there is none."""
    start = offset + _FRAME_BYTES
    if data[offset : offset + len(_MARKER)] != _MARKER or start > len(data):
        return None
    length = int.from_bytes(data[offset + 4 : offset + 8], "big")
    if not 0 < length <= min(MAX_PAYLOAD_BYTES, len(data) - start):
        return None
    payload = data[start : start + length]
    return start + length if data[offset + 8 : start] == sha256(u64(offset), payload)[:_CHECK_BYTES] else None


def _measure(path: Path, run_id: Digest) -> tuple[int, int]:
    """Return where the whole frames end and the file's size; StorageError for damage or another run's file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(_MAGIC)] != _MAGIC:
            raise StorageError(f"{path}: not a journal of this version", "move it away, or use the version it is of")
        if data[len(_MAGIC) : _START] != run_id:
            raise StorageError(f"{path}: the journal of another run", "give each run a data directory of its own")
        offset = _START
        while (end := _frame_end(data, offset)) is not None:
            offset = end
        _refuse_damage(path, data, offset)
        return offset, len(data)


def _refuse_damage(path: Path, data: mmap.mmap, offset: int) -> None:
    """Raise StorageError when a whole frame stands beyond the broken one at `offset`."""
    place = data.find(_MARKER, offset + 1)
    while place >= 0:
        if _frame_end(data, place) is not None:
            raise _damaged(path, offset, f"the next whole entry is at byte {place}")
        place = data.find(_MARKER, place + 1)


def _decode(path: Path, offset: int, payload: bytes) -> Iterator[Event]:
    reader, at = Reader(payload), 0
    while at < len(payload):
        try:
            part = reader.raw(reader.integer(4))
            event = decode_event(part)
        except DecodeError as error:
            raise _damaged(path, offset, str(error)) from error
        at += 4 + len(part)
        yield event


def _damaged(path: Path, offset: int, detail: str) -> StorageError:
    return StorageError(
        f"{path}: damaged at byte {offset}: {detail}",
        "restore the file from a copy, or move the data directory away and join again with a new key: what the lost "
        "part said on chain must not be contradicted",
    )
