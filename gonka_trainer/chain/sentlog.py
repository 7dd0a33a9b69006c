"""Transactions that were signed and whose outcome is not known yet: kept on disk, so that a restart finds them."""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

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

    def expire(self, time_ns: int, height: int) -> None:
        """Forget those that nobody asked for again and that timed out long before a block of this time and height."""


_LONG_AGO_NS: Final = 600 * 1_000_000_000
_LONG_AGO_BLOCKS: Final = 200
_FRAGMENT_SECONDS: Final = 3600.0  # a file half written for so long is of a process that died


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

    def expire(self, time_ns: int, height: int) -> None:
        """Remove the files of what timed out 10 minutes of block time, or 200 blocks, before.

        Records of that age are in a block that their author has read, or were given up: who still wants one asks for
        it in time. So the folder has no more files than transactions are begun within that span.
        """
        for path in self._folder.glob("*.json"):
            try:
                pending = self.get(Digest(bytes.fromhex(path.stem)))
            except (ValueError, StorageError):
                continue  # not ours to judge: whoever asks for it is told
            if pending is not None and _timed_out_long_ago(pending, time_ns, height):
                self.remove(pending.digest)
        self._remove_fragments()

    def _remove_fragments(self) -> None:
        for path in self._folder.glob("*.tmp"):
            try:
                if time.time() - path.stat().st_mtime > _FRAGMENT_SECONDS:
                    path.unlink(missing_ok=True)
            except OSError:
                continue  # of another process, which has just finished it

    def remove(self, digest: Digest) -> None:
        """Remove the file. Not flushed: one that comes back after a crash is looked up and found on chain."""
        path = self._path(digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be removed: {error.strerror}", "check the data directory") from error


def _timed_out_long_ago(pending: Pending, time_ns: int, height: int) -> bool:
    by_time = 0 < pending.timeout_ns < time_ns - _LONG_AGO_NS
    return by_time or 0 < pending.timeout_height < height - _LONG_AGO_BLOCKS
