"""The transaction index, by hash and by event; written some time after the block (CometBFT's kv indexer).

It keeps one entry for each hash, the latest, though events of an earlier inclusion go on leading to it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.database import Transaction
from gonka_devnet.errors import raw_bytes, show
from gonka_devnet.query_language import Condition, matches

SCHEMA = """
CREATE TABLE IF NOT EXISTS done (one INTEGER PRIMARY KEY CHECK (one = 1), height INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS txs (
    hash BLOB PRIMARY KEY, height INTEGER NOT NULL, position INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attributes (
    tag BLOB, value BLOB, event INTEGER, height INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (tag, value, event)
) WITHOUT ROWID;
"""
HEIGHT, HASH = "tx.height", "tx.hash"
ENTRIES = "SELECT value, event, a.height, txs.height, txs.position FROM attributes a JOIN txs ON txs.hash = a.hash"
Place = tuple[int, int]
Row = tuple[bytes, bytes, int, int, bytes]


def _rows(height: int, position: int, digest: bytes, events: Sequence[wire.Event]) -> list[Row]:
    """Return the index entries of one transaction; an event's number is its own in the whole chain."""
    first = height << 36 | position << 18
    rows: list[Row] = [(HEIGHT.encode(), str(height).encode(), first, height, digest)]
    for number, event in enumerate(events, start=1):
        for attribute in event.attributes:
            rows.append((event.type + b"." + attribute.key, attribute.value, first + number, height, digest))
    return rows


class Index:
    """The index on disk: one connection writes, another reads; each is used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None

    def open(self) -> None:
        """Make the tables that are missing."""
        self._writer, self._reader = self._connect(), self._connect()
        self._writer.executescript(SCHEMA)
        self._writer.execute("INSERT OR IGNORE INTO done VALUES (1, 0)")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    def close(self) -> None:
        """Close the file."""
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()

    def _read(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._reader is None:
            raise RuntimeError("the index is not open")
        return self._reader.execute(query, values)

    def height(self) -> int:
        """Return the newest height that is in the index."""
        return int(self._read("SELECT height FROM done").fetchone()[0])

    def write(self, height: int, txs: Sequence[bytes], results: Sequence[wire.ExecTxResult]) -> None:
        """Write a block's transactions, all or nothing."""
        if self._writer is None:
            raise RuntimeError("the index is not open")
        rows, entries = [], []
        for position, (raw, result) in enumerate(zip(txs, results, strict=True)):
            digest = hashlib.sha256(raw).digest()
            entries.append((digest, height, position))
            rows += _rows(height, position, digest, result.events)
        with Transaction(self._writer) as connection:
            connection.executemany("INSERT OR REPLACE INTO txs VALUES (?, ?, ?)", entries)
            connection.executemany("INSERT OR REPLACE INTO attributes VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("UPDATE done SET height = ?", (height,))

    def find(self, digest: bytes) -> Place | None:
        """Return height and position of a transaction, or None."""
        row = self._read("SELECT height, position FROM txs WHERE hash = ?", (digest,)).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))

    def search(self, conditions: Sequence[Condition]) -> list[Place]:
        """Return height and position of all that match, in block order.

        All conditions but those on tx.height must hold within one event; tx.hash decides alone.
        """
        for condition in conditions:
            if condition.tag == HASH and isinstance(condition.operand, str):
                found = self.find(_digest(condition.operand))
                return [found] if found else []
        of_height = [condition for condition in conditions if condition.tag == HEIGHT]
        others = [condition for condition in conditions if condition.tag != HEIGHT]
        matched = [self._match(condition, of_height) for condition in others or of_height[:1]]
        events = set.intersection(*(set(places) for places in matched))
        return sorted({matched[0][event] for event in events})

    def _match(self, condition: Condition, of_height: Sequence[Condition]) -> dict[int, Place]:
        """Return each event that fulfils one condition, within the heights, with its transaction's place."""
        where: list[str] = ["tag = ?"]
        values: list[object] = [raw_bytes(condition.tag)]
        if condition.op == "=" and isinstance(condition.operand, str):
            where.append("value = ?")
            values.append(raw_bytes(condition.operand))
        for limit in of_height:
            if isinstance(limit.operand, Fraction):
                where.append(f"a.height {limit.op} ?")
                values.append(float(limit.operand))
        rows = self._read(f"{ENTRIES} WHERE {' AND '.join(where)}", values)
        found = {}
        for value, event, height, *place in rows:
            if all(matches(str(height), limit) for limit in of_height) and matches(show(value), condition):
                found[int(event)] = (int(place[0]), int(place[1]))
        return found


def _digest(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
