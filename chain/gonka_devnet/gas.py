"""Gas: the meter and the prices of the SDK's key-value stores (store/types/gas.go, KVGasConfig)."""

from __future__ import annotations

from collections.abc import Iterator

from gonka_devnet.errors import sdk_error
from gonka_devnet.module import Gas, Store

HAS, DELETE, READ_FLAT, READ_BYTE, WRITE_FLAT, WRITE_BYTE, NEXT_FLAT = 1000, 1000, 1000, 3, 2000, 30, 30
UNLIMITED = 2**64 - 1


class Meter:
    """Counts a transaction's gas up to its limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def consume(self, amount: int, why: str) -> None:
        """Count gas; raise AbciError sdk 11 when the limit is passed."""
        self.used += amount
        if self.used > self.limit:
            raise sdk_error(11, f"out of gas in location: {why}; gasWanted: {self.limit}, gasUsed: {self.used}")


class GasStore:
    """A store whose every access costs gas."""

    def __init__(self, below: Store, gas: Gas) -> None:
        self._below = below
        self._gas = gas

    def get(self, key: bytes) -> bytes | None:
        """Return the value, or None."""
        self._gas.consume(READ_FLAT, "ReadFlat")
        value = self._below.get(key)
        self._gas.consume(READ_BYTE * (len(key) + len(value or b"")), "ReadPerByte")
        return value

    def has(self, key: bytes) -> bool:
        """Return whether the key is there; cheaper than reading a long value."""
        self._gas.consume(HAS, "Has")
        return self._below.get(key) is not None

    def set(self, key: bytes, value: bytes) -> None:
        """Write the value."""
        self._gas.consume(WRITE_FLAT, "WriteFlat")
        self._gas.consume(WRITE_BYTE * (len(key) + len(value)), "WritePerByte")
        self._below.set(key, value)

    def delete(self, key: bytes) -> None:
        """Remove the key if it is there."""
        self._gas.consume(DELETE, "Delete")
        self._below.delete(key)

    def iterate(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that start with prefix, ascending, with their values; each step costs."""
        for key, value in self._below.iterate(prefix):
            self._gas.consume(NEXT_FLAT, "IterNextFlat")
            self._gas.consume(READ_BYTE * (len(key) + len(value)), "ValuePerByte")
            yield key, value
        self._gas.consume(NEXT_FLAT, "IterNextFlat")


def has(store: Store, key: bytes) -> bool:
    """Return whether the key is there, at the price of a look where the store asks one."""
    return store.has(key) if isinstance(store, GasStore) else store.get(key) is not None
