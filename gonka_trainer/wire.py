"""A strict reader of fixed binary forms."""

from __future__ import annotations

from gonka_trainer.errors import DecodeError


class Reader:
    """Reads big-endian integers, raw and length-prefixed bytes; raises DecodeError at the end or beyond a bound."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def raw(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        part = self._data[self._at : self._at + size]
        if len(part) != size:
            raise DecodeError(f"{size} bytes expected at {self._at}, {len(part)} left")
        self._at += size
        return part

    def integer(self, size: int) -> int:
        """Return the next `size` bytes as an unsigned integer."""
        return int.from_bytes(self.raw(size), "big")

    def text(self, max_bytes: int) -> str:
        """Return a text of printable ASCII behind its u32 length, of at most `max_bytes`."""
        size = self.integer(4)
        if size > max_bytes:
            raise DecodeError(f"a text of {size} bytes, at most {max_bytes} allowed")
        part = self.raw(size)
        if any(not 0x20 <= byte < 0x7F for byte in part):
            raise DecodeError("a text has bytes beyond printable ASCII")
        return part.decode("ascii")

    def end(self) -> None:
        """Refuse spare bytes."""
        if self._at != len(self._data):
            raise DecodeError(f"{len(self._data) - self._at} spare bytes")
