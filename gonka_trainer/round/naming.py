"""Names derived from the manifest and the chain: run id, topic, registry topic (docs/protocol.md 1), byte for byte.

    run id          SHA-256("gonka-trainer/run/1" || u32 length || chain id || manifest hash, 32 raw bytes)
    topic           the first 20 bytes of SHA-256("gonka-trainer/topic/1" || run id)
    registry topic  topic(SHA-256("gonka-trainer/registry/1" || u32 length || chain id))

The tags stand bare (no length, no terminator); lengths are big-endian; the chain id is its UTF-8 text. A topic is an
account address to which nobody has a key; its bech32 text depends on the chain's prefix, its bytes do not.
"""

from __future__ import annotations

from typing import Final

from gonka_trainer.types import ADDRESS_BYTES, DIGEST_BYTES, Address, Digest, lp, sha256

_RUN_TAG: Final = b"gonka-trainer/run/1"
_TOPIC_TAG: Final = b"gonka-trainer/topic/1"
_REGISTRY_TAG: Final = b"gonka-trainer/registry/1"


def run_id(chain_id: str, manifest_hash: Digest) -> Digest:
    """Return the id of the manifest's run on that chain; ValueError unless the hash has 32 bytes."""
    if len(manifest_hash) != DIGEST_BYTES:
        raise ValueError(f"manifest hash of {len(manifest_hash)} bytes, {DIGEST_BYTES} wanted")
    return sha256(_RUN_TAG, lp(chain_id.encode()), manifest_hash)


def topic(run: Digest) -> Address:
    """Return the address to which the run's records are sent on the memo carrier; `run` is the run id, 32 bytes."""
    return Address(sha256(_TOPIC_TAG, run)[:ADDRESS_BYTES])


def registry_topic(chain_id: str) -> Address:
    """Return the address to which announcements of runs are sent on the memo carrier."""
    return topic(sha256(_REGISTRY_TAG, lp(chain_id.encode())))
