"""Whole blobs and contributions for tests, from layouts and vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gonka_trainer.gradient.aggregate import Contribution
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.blob import BlobIndex, encode_blob, open_blob
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.digest import LeafEntry, chunk_leaf, encode_leaf_list, payload_root
from gonka_trainer.gradient.header import Expected, Header
from gonka_trainer.gradient.layout import Entry, Layout, layout_root
from gonka_trainer.types import ZERO_DIGEST, Address, Verdict, sha256


def flat(elements: int, chunk_elements: int) -> Layout:
    return Layout((Entry("w", (elements,), "uniform:0.02"),), chunk_elements)


def address(host: int) -> Address:
    return Address(sha256(b"host", bytes([host]))[:20])


def header_of(layout: Layout, codec_name: str = "int8", host: int = 0, tokens: int = 100) -> Header:
    return Header(
        chain_id="test-chain",
        run_id=sha256(b"run"),
        round=3,
        participant=address(host),
        node="node",
        base_root=sha256(b"base"),
        manifest_hash=sha256(b"manifest"),
        assignment_root=sha256(b"assignment"),
        layout_root=layout_root(layout),
        codec=codec_name,
        codec_version=1,
        payload_root=ZERO_DIGEST,
        leaf_count=0,
        payload_bytes=0,
        trace_root=ZERO_DIGEST,
        tokens=tokens,
        inner_steps=10,
        feedback_root=ZERO_DIGEST,
        hardware="cpu",
        salt=bytes(32),
    )


def expected_of(header: Header) -> Expected:
    return Expected(
        header.chain_id,
        header.run_id,
        header.round,
        header.participant,
        header.base_root,
        header.manifest_hash,
        header.layout_root,
        header.codec,
        header.codec_version,
        max_inner_steps=20,
        tokens_per_step=1000,
    )


@dataclass(frozen=True)
class Blob:
    """A blob's index and its chunks."""

    index: BlobIndex
    chunks: tuple[bytes, ...]

    @property
    def payload(self) -> bytes:
        return b"".join(self.chunks)

    def contribution(self, weight: int = 1, good: bool = True) -> Contribution:
        return Contribution(self.index.header.participant, weight, self.index, self.payload, good)


def blob_of(layout: Layout, gradient: F32, codec_name: str = "int8", **header: Any) -> Blob:
    """Encode a given pseudo-gradient: 0 - (-gradient)."""
    chunks: list[bytes] = []
    zero = np.zeros_like(gradient)
    index = encode_blob(
        zero, -gradient, layout, codec(codec_name, 1), header_of(layout, codec_name, **header), chunks.append
    )
    return Blob(index, tuple(chunks))


def forged(blob: Blob, chunks: tuple[bytes, ...], sums: tuple[float, ...] | None = None, **fields: Any) -> BlobIndex:
    """Return the opened index of a blob whose author committed to these chunks, sums and header fields."""
    result = forged_or_verdict(blob, chunks, sums, **fields)
    assert isinstance(result, BlobIndex)
    return result


def forged_or_verdict(
    blob: Blob, chunks: tuple[bytes, ...], sums: tuple[float, ...] | None = None, **fields: Any
) -> BlobIndex | Verdict:
    """Return what opening such a blob gives."""
    layout = blob.index.layout
    sums = sums or tuple(entry.sum_squares for entry in blob.index.entries)
    entries = tuple(
        LeafEntry(chunk_leaf(i, layout.chunk_elements_of(i), total, chunk), total, len(chunk))
        for i, (total, chunk) in enumerate(zip(sums, chunks, strict=True))
    )
    listed = encode_leaf_list(entries)
    made = {"payload_root": payload_root(listed), "leaf_count": len(entries), "payload_bytes": sum(map(len, chunks))}
    header = replace(blob.index.header, **{**made, **fields})
    opened = BlobIndex(header, entries, layout)
    return open_blob(opened.commitment, opened.preamble, listed, expected_of(blob.index.header), layout)


def gradient(elements: int, seed: int, scale: float = 1.0) -> F32:
    return (np.random.default_rng(seed).standard_normal(elements) * scale).astype(np.float32)
