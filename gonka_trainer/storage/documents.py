"""Small documents by the digest that the records name them with: the manifest, environments, rosters."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gonka_trainer.errors import StorageError
from gonka_trainer.storage.files import storage_error, write_atomic
from gonka_trainer.types import DIGEST_BYTES, Digest

MAX_DOCUMENT_BYTES: Final = 1 << 20


class Documents:
    """Files of at most 1 MiB in one folder, named by digests in hex."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: Digest) -> bytes | None:
        """Return the document, or None; StorageError when it cannot be read."""
        path = self._path(digest)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path) from error

    def put(self, digest: Digest, data: bytes) -> None:
        """Keep the document; StorageError when the disk refuses or it has more than 1 MiB."""
        if len(data) > MAX_DOCUMENT_BYTES:
            raise StorageError(f"a document of {len(data):,} bytes, at most {MAX_DOCUMENT_BYTES:,}", "make it smaller")
        write_atomic(self._path(digest), data)

    def remove(self, digest: Digest) -> None:
        """Forget the document, if it is here; StorageError when the disk refuses."""
        path = self._path(digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, path) from error

    def _path(self, digest: Digest) -> Path:
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"{len(digest)} bytes are no digest")
        return self._folder / bytes(digest).hex()
