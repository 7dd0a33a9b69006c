"""The JSON object of a control request, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MISSING = object()


class BadRequestError(ValueError):
    """A request that cannot be done; the text says why."""


class Body:
    """A JSON object of which every key must be asked for."""

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)

    def _take(self, key: str, default: Any) -> Any:
        value = self._items.pop(key, default)
        if value is MISSING:
            raise BadRequestError(f"{key} is missing")
        return value

    def has(self, key: str) -> bool:
        """Return whether a key is there that nobody has asked for yet."""
        return key in self._items

    def switch(self, key: str) -> bool:
        """Return true or false."""
        value = self._take(key, MISSING)
        if not isinstance(value, bool):
            raise BadRequestError(f"{key} must be true or false, not {value!r}")
        return value

    def whole(self, key: str, least: int, most: int, default: Any = MISSING) -> int:
        """Return a whole number within limits."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadRequestError(f"{key} must be a whole number from {least} to {most}, not {value!r}")
        return value

    def seconds(self, key: str, least: float, most: float, default: Any = MISSING) -> float:
        """Return a number of seconds within limits."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise BadRequestError(f"{key} must be a number from {least} to {most}, not {value!r}")
        return float(value)

    def text(self, key: str, default: Any = MISSING) -> str:
        """Return a text."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise BadRequestError(f"{key} must be text, not {value!r}")
        return value

    def text_or_none(self, key: str) -> str | None:
        """Return a text that is not empty, or None for null."""
        if self._items.get(key, MISSING) is None:
            del self._items[key]
            return None
        value = self.text(key)
        if not value:
            raise BadRequestError(f"{key} must not be empty")
        return value

    def end(self) -> None:
        """Raise BadRequestError where a key is left that means nothing."""
        if self._items:
            raise BadRequestError(f"unknown: {', '.join(sorted(self._items))}")
