"""Transactions that were signed and whose outcome is not known yet: kept on disk, so that a restart finds them."""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gonka_trainer.chain.transactions import tx_hash
from gonka_trainer.errors import StorageError
from gonka_trainer.types import Digest


@dataclass(frozen=True, slots=True)
class Pending:
    """A signed transaction: what it carries, and until when it can get into a block.

    It can be in blocks from `from_height` on; no longer in one later than `timeout_ns` (block time, nanoseconds; 0:
    none), nor in one above `timeout_height` (0: none). `fee` is what it offers, in the smallest unit.
    """

    digest: Digest
    transaction: bytes
    from_height: int
    timeout_ns: int
    timeout_height: int
    fee: int

    @property
    def tx_hash(self) -> str:
        """The transaction's hash as the chain writes it."""
        return tx_hash(self.transaction)


class SentLog(Protocol):
    """Remembers one pending transaction for each digest of records. What `put` took is there after a crash."""

    def get(self, digest: Digest) -> Pending | None:
        """Return the pending transaction that carries these records."""

    def put(self, pending: Pending) -> None:
        """Keep it, in place of a former one for the same records; durable when this returns."""

    def remove(self, digest: Digest) -> None:
        """Forget it: its outcome is known."""


class FileSentLog:
    """A folder with one small JSON file for each pending transaction. Raises StorageError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, digest: Digest) -> Path:
        return self._folder / f"{digest.hex()}.json"

    def get(self, digest: Digest) -> Pending | None:
        """Return the pending transaction of these records; StorageError when its file is damaged."""
        path = self._path(digest)
        try:
            raw = json.loads(path.read_bytes())
            transaction = base64.b64decode(raw["transaction"], validate=True)
            numbers = [int(raw[name]) for name in ("from_height", "timeout_ns", "timeout_height", "fee")]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}", "check the data directory") from error
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise StorageError(f"{path} is damaged", "remove it; at worst a record is sent twice") from error
        return Pending(digest, transaction, *numbers)

    def put(self, pending: Pending) -> None:
        """Write the file beside, flush it to disk, and put it in place."""
        document = {
            "tx_hash": pending.tx_hash,
            "transaction": base64.b64encode(pending.transaction).decode(),
            "from_height": pending.from_height,
            "timeout_ns": pending.timeout_ns,
            "timeout_height": pending.timeout_height,
            "fee": pending.fee,
        }
        path = self._path(pending.digest)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(path, json.dumps(document).encode())
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror}", "check the data directory") from error

    def _write(self, path: Path, data: bytes) -> None:
        beside = path.with_suffix(".tmp")
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        self._sync_folder()

    def _sync_folder(self) -> None:
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def remove(self, digest: Digest) -> None:
        """Remove the file. Not flushed: one that comes back after a crash is looked up and found on chain."""
        path = self._path(digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be removed: {error.strerror}", "check the data directory") from error
