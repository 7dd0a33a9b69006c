"""CometBFT's Merkle root: SHA-256, leaves tagged 0, inner nodes 1, split at the largest power of two (RFC 6962)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def _leaf(item: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + item).digest()


def root(items: Sequence[bytes]) -> bytes:
    """Return the root over the items in their order; SHA-256 of nothing when there are none."""
    if not items:
        return hashlib.sha256(b"").digest()
    level = [_leaf(item) for item in items]
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\x01" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + ([level[-1]] if len(level) % 2 else [])
    return level[0]
