"""Blobs and states on disk, by what the records name them. Implements `ports.ObjectSource`.

    blobs/ROUND/COMMITMENT/    round with 8 digits, commitment in hex
    states/ROOT/               parameters' chunks, then momentum's: raw little-endian float32
    documents/DIGEST
    temporary/                 emptied at start

No name comes from a peer: only digests, as hex. Opening an index for a chunk of a state or blob that peers sent is the
fetcher's part; here only checked bytes arrive.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from gonka_trainer.errors import StorageError
from gonka_trainer.ports import ChunkIndex, StoredObject
from gonka_trainer.round.commands import Keep
from gonka_trainer.storage.documents import Documents
from gonka_trainer.storage.draft import Draft
from gonka_trainer.storage.files import allocate, storage_error, sync_directory
from gonka_trainer.storage.held import COMPLETE, PAYLOAD, Held, describe, load
from gonka_trainer.storage.index_file import index_of
from gonka_trainer.types import DIGEST_BYTES, Digest

BLOB: Final = "blob"
STATE: Final = "state"

_OURS: Final = re.compile(r"[0-9]{8,}|[0-9a-f]{64}")


class ObjectStore:
    """The objects below one folder, for one process. Methods may be called from any thread; they block on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._held: dict[Path, Held] = {}
        self._begun: set[Path] = set()
        self._lock = threading.RLock()
        self._documents = Documents(root / "documents")

    def __enter__(self) -> Self:
        """Make the folders and delete what a crash left half-written. StorageError when the disk refuses."""
        try:
            shutil.rmtree(self._temporary, ignore_errors=True)
            for folder in (self._root / "blobs", self._root / "states", self._root / "documents", self._temporary):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, self._root) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what was opened; no file stays open between calls."""
        self._held.clear()

    def blob(self, round_number: int, commitment: Digest) -> StoredObject | None:
        """Return a blob whose bytes, or a part of them, are here."""
        return self.held(BLOB, commitment, round_number)

    def state(self, root: Digest) -> StoredObject | None:
        """Return a complete state."""
        found = self._find(self._folder(STATE, root, 0))
        return found.stored if found is not None and found.complete else None

    def held(self, kind: str, key: bytes, round_number: int) -> StoredObject | None:
        """Return a blob or state of which at least the index is here."""
        found = self._find(self._folder(kind, key, round_number))
        return None if found is None else found.stored

    def complete(self, kind: str, key: bytes, round_number: int) -> bool:
        """Whether all of a blob or state is here."""
        found = self._find(self._folder(kind, key, round_number))
        return found is not None and found.complete

    def has(self, stored: StoredObject, chunk: int) -> bool:
        """Whether the chunk's checked bytes are on disk."""
        found = self._find(stored.payload.parent)
        return found is not None and found.has(chunk)

    def read(self, stored: StoredObject, chunk: int) -> bytes | None:
        """Return a chunk's bytes, or None when they are not here."""
        found = self._find(stored.payload.parent)
        return None if found is None else found.read(chunk)

    def document(self, digest: Digest) -> bytes | None:
        """Return a small document by its digest."""
        return self._documents.get(digest)

    def put_document(self, digest: Digest, data: bytes) -> None:
        """Keep a small document under the digest that its readers ask for (with whatever tag it was made)."""
        self._documents.put(digest, data)

    def remove_document(self, digest: Digest) -> None:
        """Forget a small document, if it is here."""
        self._documents.remove(digest)

    def begin(self, kind: str, key: bytes, round_number: int, index: ChunkIndex) -> Held:
        """Return the object to fill chunk by chunk: a new one, or the part that is here from before.

        StorageError when the disk has no room for all of it. `index` must have been checked against `key`.
        """
        folder = self._folder(kind, key, round_number)
        with self._lock:
            found = self._find(folder)
            if found is not None and found.is_of(index):
                self._begun.add(folder)
                return found
            self._discard(folder)
            self._create(folder, index)
            self._begun.add(folder)
            return self._must_find(folder)

    def draft(self, size_bytes: int) -> Draft:
        """Return a context in which this host's own blob or state is written and then published."""
        return Draft(self._temporary / secrets.token_hex(8), size_bytes, self._publish)

    def prune(self, keep: Keep) -> tuple[Path, ...]:
        """Delete the states and the rounds' blobs that `keep` does not list, and return their folders.

        A state that this process has begun to fetch stays until it is complete. Memory maps and streams of what is
        deleted go on; new reads find nothing.
        """
        roots = {bytes(root).hex() for root in keep.roots}
        with self._lock:
            states = [path for path in _folders(self._root / "states") if path.name not in roots]
            states = [path for path in states if not self._is_being_fetched(path)]
            blobs = [path for path in _folders(self._root / "blobs") if _round_of(path) < keep.blobs_from]
            for path in (*states, *blobs):
                self._discard(path)
        return (*states, *blobs)

    def _is_being_fetched(self, folder: Path) -> bool:
        found = self._held.get(folder)
        return folder in self._begun and found is not None and not found.complete

    def _find(self, folder: Path) -> Held | None:
        with self._lock:
            found = self._held.get(folder) or load(folder)
            if found is not None:
                self._held[folder] = found
            return found

    def _must_find(self, folder: Path) -> Held:
        found = self._find(folder)
        if found is None:
            raise StorageError(f"{folder}: gone right after it was made", "let nothing else write to this directory")
        return found

    def _create(self, folder: Path, index: ChunkIndex) -> None:
        kept = index_of(index)
        temporary = self._temporary / secrets.token_hex(8)
        try:
            temporary.mkdir()
            allocate(temporary / PAYLOAD, kept.payload_bytes)
            describe(temporary, kept, complete=False)
            self._move(temporary, folder)
        except OSError as error:
            raise storage_error(error, folder, kept.payload_bytes) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _publish(self, temporary: Path, kind: str, key: bytes, round_number: int) -> StoredObject:
        folder = self._folder(kind, key, round_number)
        with self._lock:
            if not (folder / COMPLETE).exists():
                self._discard(folder)
                try:
                    self._move(temporary, folder)
                except OSError as error:
                    raise storage_error(error, folder) from error
            return self._must_find(folder).stored

    def _move(self, temporary: Path, folder: Path) -> None:
        folder.parent.mkdir(exist_ok=True)
        sync_directory(temporary)
        temporary.rename(folder)
        sync_directory(folder.parent)
        sync_directory(folder.parent.parent)

    def _discard(self, folder: Path) -> None:
        """Take the folder out of sight by one rename, then delete it: a crash leaves nothing half-deleted in place."""
        for known in [path for path in self._held if path == folder or folder in path.parents]:
            del self._held[known]
        temporary = self._temporary / secrets.token_hex(8)
        try:
            folder.rename(temporary)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, folder) from error
        shutil.rmtree(temporary, ignore_errors=True)

    def _folder(self, kind: str, key: bytes, round_number: int) -> Path:
        if len(key) != DIGEST_BYTES or kind not in {BLOB, STATE}:
            raise ValueError(f"no object is called {kind} {key.hex()}")
        if kind == STATE:
            return self._root / "states" / key.hex()
        return self._root / "blobs" / f"{round_number:08d}" / key.hex()

    @property
    def _temporary(self) -> Path:
        return self._root / "temporary"


def payload_map(stored: StoredObject) -> npt.NDArray[np.uint8]:
    """Return the payload of a complete object as a read-only memory map, uint8[size]."""
    return np.memmap(stored.payload, dtype=np.uint8, mode="r")


def state_vectors(stored: StoredObject) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return (parameters, momentum) of a complete state as read-only memory maps, float32[elements] each."""
    both = np.memmap(stored.payload, dtype="<f4", mode="r")
    return both[: both.size // 2], both[both.size // 2 :]


def _folders(folder: Path) -> Iterator[Path]:
    """Yield this store's folders; what else somebody put there is not ours to delete."""
    return (path for path in sorted(folder.iterdir()) if path.is_dir() and _OURS.fullmatch(path.name))


def _round_of(folder: Path) -> int:
    return int(folder.name)
