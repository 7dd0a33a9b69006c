"""The possession proof of an attestation (docs/protocol.md 3): only who has the bytes can compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from gonka_trainer.types import Address, Digest, lp, sha256

POSSESSION_BYTES: Final = 16
_DRAW_TAG: Final = b"gonka-trainer/possession-draw/1"
_TAG: Final = b"gonka-trainer/possession/1"


def drawn_chunk(close_hash: Digest, commitment: Digest, count: int) -> int:
    """Return which chunk of a blob of `count` chunks the block hash at the close asks for."""
    return int.from_bytes(sha256(_DRAW_TAG, close_hash, commitment)[:8], "big") % count


def possession(
    participant: Address,
    close_hash: Digest,
    blobs: Sequence[tuple[Digest, int, Callable[[int], bytes]]],
) -> bytes:
    """Return 16 bytes of SHA-256 over attester, block hash and one drawn chunk of each blob.

    `blobs` are (commitment, chunk count, reader of a chunk's bytes) in the order of the attested bits.
    """
    parts = [lp(read(drawn_chunk(close_hash, commitment, count))) for commitment, count, read in blobs if count]
    return sha256(_TAG, participant, close_hash, *parts)[:POSSESSION_BYTES]
