"""Foreign text for logs and messages."""

from __future__ import annotations


def printable(text: str | bytes, limit: int = 400) -> str:
    """Return foreign text on one line, without control characters, cut at the limit (in characters)."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    shown = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return shown if len(shown) <= limit else shown[:limit] + "..."
