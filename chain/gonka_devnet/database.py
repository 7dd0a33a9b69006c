"""The chain on disk: state by height, and blocks, in one SQLite file; one transaction for each block."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gonka_devnet.store import after_prefix

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (key BLOB, height INTEGER, value BLOB, PRIMARY KEY (key, height)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blocks (
    height INTEGER PRIMARY KEY, block_id BLOB NOT NULL, block BLOB NOT NULL, results BLOB NOT NULL,
    commit_time_ns INTEGER NOT NULL, commit_signature BLOB NOT NULL
);
"""


@dataclass(frozen=True)
class StoredBlock:
    """A block as it lies on disk: `block_id`, `block` and `results` are messages' bytes, the rest is its own commit."""

    height: int
    block_id: bytes
    block: bytes
    results: bytes
    commit_time_ns: int
    commit_signature: bytes


class Database:
    """One writer (the block loop) and readers of older heights, on connections of their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            self._local.connection = connection
            self._all.append(connection)
        return connection

    def open(self) -> None:
        """Make the tables that are missing."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection().executescript(SCHEMA)

    def close(self) -> None:
        """Close every thread's connection; nobody may use them any more."""
        for connection in self._all:
            connection.close()
        self._all = []

    def meta(self, name: str) -> bytes | None:
        """Return a named value, or None."""
        row = self._connection().execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def height(self) -> int:
        """Return the newest block's height, 0 before the first."""
        row = self._connection().execute("SELECT max(height) FROM blocks").fetchone()
        return int(row[0] or 0)

    def block(self, height: int) -> StoredBlock | None:
        """Return a block, or None."""
        row = self._connection().execute("SELECT * FROM blocks WHERE height = ?", (height,)).fetchone()
        return None if row is None else StoredBlock(*row)

    def latest(self) -> dict[bytes, bytes]:
        """Return the newest state."""
        rows = self._connection().execute("SELECT key, value FROM state ORDER BY key, height")
        found: dict[bytes, bytes] = {}
        for key, value in rows:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return found

    def write_genesis(self, meta: Mapping[str, bytes], state: Mapping[bytes, bytes | None]) -> None:
        """Write what the chain starts from, all or nothing."""
        with self._transaction() as connection:
            connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            connection.executemany("INSERT INTO state VALUES (?, 0, ?)", state.items())

    def write_block(self, block: StoredBlock, changes: Mapping[bytes, bytes | None]) -> None:
        """Write a block with what it changed, all or nothing."""
        rows = [(key, block.height, value) for key, value in changes.items()]
        with self._transaction() as connection:
            connection.executemany("INSERT INTO state VALUES (?, ?, ?)", rows)
            values = (block.height, block.block_id, block.block, block.results)
            times = (block.commit_time_ns, block.commit_signature)
            connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", values + times)

    def _transaction(self) -> Transaction:
        return Transaction(self._connection())

    def get_at(self, key: bytes, height: int) -> bytes | None:
        """Return a key's value as it was after a block."""
        query = "SELECT value FROM state WHERE key = ? AND height <= ? ORDER BY height DESC LIMIT 1"
        row = self._connection().execute(query, (key, height)).fetchone()
        return None if row is None or row[0] is None else bytes(row[0])

    def iterate_at(self, prefix: bytes, height: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys under a prefix as they were after a block."""
        end = after_prefix(prefix)
        bound, values = ("AND key < ?", (prefix, end, height)) if end is not None else ("", (prefix, height))
        where = f"key >= ? {bound} AND height <= ?"
        query = f"SELECT key, value, max(height) FROM state WHERE {where} GROUP BY key ORDER BY key"
        for key, value, _ in self._connection().execute(query, values).fetchall():
            if value is not None:
                yield bytes(key), bytes(value)


class Transaction:
    """A SQLite transaction: committed at the end, rolled back on any error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


class Past:
    """The state after an older block, read from disk; it cannot be written."""

    def __init__(self, database: Database, height: int) -> None:
        self._database = database
        self._height = height

    def get(self, key: bytes) -> bytes | None:
        """Return the value, or None."""
        return self._database.get_at(key, self._height)

    def set(self, key: bytes, value: bytes) -> None:
        """Refuse."""
        raise TypeError("the past cannot be written")

    def delete(self, key: bytes) -> None:
        """Refuse."""
        raise TypeError("the past cannot be written")

    def iterate(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that start with prefix, ascending, with their values."""
        return self._database.iterate_at(prefix, self._height)
