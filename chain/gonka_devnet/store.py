"""Views of the chain's state: the latest in memory, layers of unwritten changes above it."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping

from gonka_devnet.module import Store


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the first key past all that start with prefix; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


class Latest:
    """The committed state of the newest block, keys in order; changed only by `apply`."""

    def __init__(self, items: Mapping[bytes, bytes]) -> None:
        self._values = dict(items)
        self._keys = sorted(self._values)

    def get(self, key: bytes) -> bytes | None:
        """Return the value, or None."""
        return self._values.get(key)

    def set(self, key: bytes, value: bytes) -> None:
        """Refuse: writes go into a Layer."""
        raise TypeError("committed state is changed by apply alone")

    def delete(self, key: bytes) -> None:
        """Refuse: writes go into a Layer."""
        raise TypeError("committed state is changed by apply alone")

    def iterate(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that start with prefix, ascending, with their values."""
        place = bisect.bisect_left(self._keys, prefix)
        while place < len(self._keys) and self._keys[place].startswith(prefix):
            key = self._keys[place]
            yield key, self._values[key]
            place += 1

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Write a block's changes; None removes."""
        added = []
        for key, value in changes.items():
            if value is None:
                if self._values.pop(key, None) is not None:
                    del self._keys[bisect.bisect_left(self._keys, key)]
            else:
                if key not in self._values:
                    added.append(key)
                self._values[key] = value
        if added:
            self._keys = sorted(self._keys + added)


class Layer:
    """Unwritten changes above another store; `commit` writes them into it."""

    def __init__(self, below: Store) -> None:
        self._below = below
        self.changes: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the value, or None."""
        if key in self.changes:
            return self.changes[key]
        return self._below.get(key)

    def set(self, key: bytes, value: bytes) -> None:
        """Write the value."""
        self.changes[key] = value

    def delete(self, key: bytes) -> None:
        """Remove the key if it is there."""
        self.changes[key] = None

    def iterate(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that start with prefix, ascending, with their values; changes made meanwhile may be missed."""
        own = sorted(key for key in self.changes if key.startswith(prefix))
        place = 0
        for key, value in self._below.iterate(prefix):
            while place < len(own) and own[place] < key:
                yield from self._own(own[place])
                place += 1
            if place < len(own) and own[place] == key:
                continue
            if key not in self.changes:
                yield key, value
        for key in own[place:]:
            yield from self._own(key)

    def _own(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        value = self.changes[key]
        if value is not None:
            yield key, value

    def commit(self) -> None:
        """Write all changes into the store below."""
        for key, value in self.changes.items():
            if value is None:
                self._below.delete(key)
            else:
                self._below.set(key, value)
        self.changes = {}
