"""A run computed again by one process: from the manifest, the included sets and the blobs alone.

Nothing of the project's own arithmetic is used: decoding, weighting, the outer step, Merkle trees and roots come from
the plain implementation in tests/unit/gradient/plain.py, the header is taken apart here.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.gradient import plain


@dataclass
class Header:
    """What the reference needs of a blob's header."""

    base_root: bytes
    codec: str
    payload_root: bytes
    tokens: int


def read_header(preamble: bytes) -> Header:
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return preamble[at - count : at]

    def text() -> str:
        return take(struct.unpack(">I", take(4))[0]).decode()

    text()  # chain id
    take(32 + 4 + 20)  # run id, round, participant
    text()  # node
    base_root = take(32)
    take(32 + 32 + 32)  # manifest, assignment, layout
    codec = text()
    take(2)
    payload_root = take(32)
    take(4 + 8 + 32)  # leaf count, bytes, trace
    tokens = struct.unpack(">Q", take(8))[0]
    return Header(base_root, codec, payload_root, tokens)


def read_blob(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Return (preamble, leaf list, payload) of a stored blob."""
    data = (folder / "index").read_bytes()
    preamble_bytes, leaf_bytes, count = struct.unpack(">III", data[4:16])
    start = 16 + 4 * count
    preamble = data[start : start + preamble_bytes]
    return (
        preamble,
        data[start + preamble_bytes : start + preamble_bytes + leaf_bytes],
        (folder / "payload").read_bytes(),
    )


class Reference:
    """The state, from the manifest's first one on."""

    def __init__(self, manifest: Path, blobs: Path) -> None:
        self._document = json.loads(manifest.read_bytes())
        entries = [dict(zip(("name", "shape", "init"), entry, strict=True)) for entry in self._document["parameters"]]
        self.layout: dict[str, Any] = {"chunk_elements": self._document["chunk_elements"], "entries": entries}
        self._blobs = blobs
        self.parameters = plain.initial(self.layout, bytes.fromhex(self._document["init_seed"]))
        self.momentum = [0.0] * len(self.parameters)
        self.tokens = self.steps = 0

    def root(self) -> str:
        """The state's root, hex."""
        vectors = [plain.packed(self.parameters), plain.packed(self.momentum)]
        preamble = plain.state_preamble(self.layout, vectors, self.tokens, self.steps)
        return plain.h(b"gonka-trainer/state/1", preamble).hex()

    def apply(self, summary: dict[str, Any], bad: frozenset[str] = frozenset()) -> None:
        """Apply a final round, as a host reported it; `bad` names included participants whose blob has weight 0."""
        weights = {seat["participant"]: seat["weight"] for seat in summary["roster"]}
        hosts = [self._host(summary, who, weights[who], who not in bad) for who in summary["included"]]
        if not any(host["good"] and host["tokens"] for host in hosts):
            return
        factors = plain.coefficients(hosts)
        gradients = [(f, host["gradient"]) for f, host in zip(factors, hosts, strict=True)]
        rate, momentum = (plain.r(self._document["outer"][name]) for name in ("learning_rate", "momentum"))
        self.parameters, self.momentum = plain.outer_step(self.parameters, self.momentum, gradients, rate, momentum)
        self.tokens += sum(host["tokens"] for host in hosts if host["good"])
        self.steps += 1

    def _host(self, summary: dict[str, Any], who: str, weight: int, good: bool) -> dict[str, Any]:
        commitment = summary["commitments"][who]["commitment"]
        preamble, leaves, payload = read_blob(self._blobs / f"{summary['round']:08d}" / commitment)
        header = read_header(preamble)
        assert plain.h(b"gonka-trainer/commitment/1", preamble).hex() == commitment
        assert header.base_root.hex() == summary["base_root"] == self.root()
        assert plain.payload_root(leaves) == header.payload_root
        gradient, total, start = [], 0.0, 0
        for i in range(len(leaves) // 44):
            squares, length = struct.unpack(">dI", leaves[44 * i + 32 : 44 * i + 44])
            size = self.layout["chunk_elements"]
            elements = min(size, len(self.parameters) - i * size)
            data = payload[start : start + length]
            assert plain.chunk_leaf(i, elements, squares, data) == leaves[44 * i : 44 * i + 32]
            gradient += plain.decode(header.codec, data, elements)
            total, start = total + squares, start + length
        tokens = header.tokens if good else 0
        return {"good": good, "tokens": tokens, "weight": weight, "norm": math.sqrt(total), "gradient": gradient}
