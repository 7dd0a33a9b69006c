"""Writes the golden vectors of this folder, or with `--check` computes them again and compares.

Vectors are JSON. Bytes are hex; float32 vectors are hex of little-endian bytes; float64 are `float.hex` texts. Inputs
stand in the files, so that another implementation needs nothing from here. A change of any output is a change of the
protocol.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from gonka_trainer.gradient.aggregate import Contribution, coefficients
from gonka_trainer.gradient.arithmetic import prove_default_mode
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.blob import encode_blob
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.digest import LeafEntry, chunk_leaf, encode_leaf_list, merkle_root, payload_root, state_leaf
from gonka_trainer.gradient.feedback import Feedback
from gonka_trainer.gradient.header import Header, commitment, encode_header
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.gradient.layout import Entry, Layout, encode_layout, layout_root
from gonka_trainer.gradient.outer import OuterSettings, outer_step
from gonka_trainer.gradient.state import index_state
from gonka_trainer.types import ZERO_DIGEST, Address, sha256

HERE = Path(__file__).parent
SEED = b"golden"
CODECS = ("f32", "bf16", "int8", "int4", "topk")
LAYOUTS = {
    "plain": Layout((Entry("w", (2, 3), "uniform:0.02"), Entry("b", (3,), "zeros")), 4),
    "odd": Layout(
        (
            Entry("embed.weight", (13, 17), "uniform:0.02"),
            Entry("scale", (), "ones"),
            Entry("empty", (0, 5), "zeros"),
            Entry("norm.weight", (7,), "ones"),
            Entry("out.weight", (11, 31), "uniform:0.125"),
            Entry("out.bias", (1,), "zeros"),
        ),
        200,
    ),
    "none": Layout((), 512),
}


def pattern(count: int, salt: int, shift: int) -> F32:
    """Return float32 of signed 16-bit integers of a multiplicative hash, times 2**-shift; exact."""
    numbers = [((i + 1) * 2654435761 + salt * 40503) >> 7 & 0xFFFF for i in range(count)]
    return np.array([(number - 0x8000) * 2.0**-shift for number in numbers], np.float32)


def hexed(vector: F32) -> str:
    return vector.astype("<f4").tobytes().hex()


def special_values() -> dict[str, F32]:
    tiny = np.float32(2.0**-149)
    return {
        "empty": np.empty(0, np.float32),
        "one": np.array([-1.5], np.float32),
        "zeros, one of them negative": np.array([0.0, -0.0, 0.0], np.float32),
        "ties": np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5], np.float32),
        "subnormal scale": np.array([190, 95, -190, 1, 0], np.float32) * tiny,
        "ties of 8 bits": np.array([257, 259, -257, -259, 511, 0.5, 1.5, 7], np.float32),
        "subnormals of 8 bits": np.array([2.0**16, 2.0**15, -(2.0**15), 3 * 2.0**15, 5 * 2.0**20], np.float32) * tiny,
        "scale rounds to zero": np.array([1, -1, 0], np.float32) * tiny,
        "largest": np.array([2.0**40, -(2.0**40), 1.0], np.float32),
        "a large value in one block only": np.concatenate([pattern(128, 1, 18), np.array([2.0**30, 1], np.float32)]),
        "several blocks": pattern(391, 2, 20),
    }


def codec_vectors() -> list[dict[str, Any]]:
    return [_encoded(name, label, values) for name in CODECS for label, values in special_values().items()]


def _encoded(name: str, label: str, values: F32) -> dict[str, Any]:
    encoder = codec(name, 1)
    payload, total = encoder.encode(values)
    return {
        "label": label,
        "codec": name,
        "version": 1,
        "values": hexed(values),
        "payload": payload.hex(),
        "sum_squares": total.hex(),
        "decoded": hexed(encoder.decode(payload, values.size)),
        "index": 3,
        "leaf": chunk_leaf(3, values.size, total, payload).hex(),
    }


def tree_vectors() -> list[dict[str, Any]]:
    return [_tree(count) for count in (0, 1, 2, 3, 4, 5, 6, 7, 11)]


def _tree(count: int) -> dict[str, Any]:
    data = [bytes([i]) * (4 * i) for i in range(count)]
    entries = [LeafEntry(chunk_leaf(i, i, float(i), each), float(i), len(each)) for i, each in enumerate(data)]
    listed = encode_leaf_list(entries)
    return {
        "chunks": [each.hex() for each in data],
        "chunk_leaves": [entry.digest.hex() for entry in entries],
        "leaf_list": listed.hex(),
        "payload_root": payload_root(listed).hex(),
        "state_root_of_chunks": merkle_root([state_leaf(i, i, each) for i, each in enumerate(data)]).hex(),
    }


def layout_vectors() -> list[dict[str, Any]]:
    return [_layout(label, layout) for label, layout in LAYOUTS.items()]


def _layout(label: str, layout: Layout) -> dict[str, Any]:
    parameters = initial_parameters(layout, SEED)
    state = index_state(layout, parameters, np.zeros_like(parameters), 0, 0)
    return {
        "label": label,
        **asdict(layout),
        "form": encode_layout(layout).hex(),
        "root": layout_root(layout).hex(),
        "seed": SEED.hex(),
        "initial_parameters": hexed(parameters),
        "state_preamble": state.preamble.hex(),
        "state_leaf_list": state.leaf_list.hex(),
        "state_root": state.root.hex(),
    }


def sample_header(layout: Layout, codec_name: str, host: int) -> Header:
    """Return a header of host 0, 1, ... before its payload is known."""
    return Header(
        chain_id="gonka-golden",
        run_id=sha256(b"run"),
        round=host + 1,
        participant=Address(sha256(b"participant", bytes([host]))[:20]),
        node=f"node-{host}",
        base_root=sha256(b"base"),
        manifest_hash=sha256(b"manifest"),
        assignment_root=sha256(b"assignment"),
        layout_root=layout_root(layout),
        codec=codec_name,
        codec_version=1,
        payload_root=ZERO_DIGEST,
        leaf_count=0,
        payload_bytes=0,
        trace_root=sha256(b"trace"),
        tokens=(7000, 4096, 0, 12345)[host],
        inner_steps=20,
        feedback_root=ZERO_DIGEST,
        hardware="cpu x86_64",
        salt=sha256(b"salt", bytes([host])),
    )


def header_vectors() -> list[dict[str, Any]]:
    first = sample_header(LAYOUTS["odd"], "int8", 0)
    largest = replace(
        first,
        chain_id="c" * 64,
        node="",
        round=2**32 - 1,
        codec_version=65535,
        leaf_count=2**32 - 1,
        payload_bytes=2**64 - 1,
        tokens=2**64 - 1,
        inner_steps=2**32 - 1,
        hardware="h" * 128,
    )
    return [_header(header) for header in (first, largest)]


def _header(header: Header) -> dict[str, Any]:
    fields = {name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(header).items()}
    return {"fields": fields, "preamble": encode_header(header).hex(), "commitment": commitment(header).hex()}


def round_vectors() -> list[dict[str, Any]]:
    return [_rounds(name) for name in CODECS]


def _rounds(codec_name: str) -> dict[str, Any]:
    """Three rounds of four hosts: one without tokens, one not good in the last round, one of far too large a norm."""
    layout = LAYOUTS["odd"]
    parameters = initial_parameters(layout, SEED)
    momentum = np.zeros_like(parameters)
    settings = OuterSettings(np.float32(0.7), np.float32(0.9))
    rounds = []
    for number in range(3):
        made = [_contribute(layout, codec_name, parameters, host, number) for host in range(4)]
        blobs = [contribution for contribution, _ in made]
        factors = coefficients(blobs)
        encoder = codec(codec_name, 1)
        outer_step(parameters, momentum, parameters, momentum, blobs, factors, settings, layout, encoder)
        state = index_state(layout, parameters, momentum, 1000 * (number + 1), number + 1)
        rounds.append(
            {
                "hosts": [_host(contribution, local) for contribution, local in made],
                "coefficients": hexed(np.array(factors, np.float32)),
                "parameters": hexed(parameters),
                "momentum": hexed(momentum),
                "state_preamble": state.preamble.hex(),
                "state_root": state.root.hex(),
            }
        )
    return {
        "codec": codec_name,
        "layout": "odd",
        "initial_parameters": hexed(initial_parameters(layout, SEED)),
        "learning_rate": hexed(np.array([0.7], np.float32)),
        "momentum": hexed(np.array([0.9], np.float32)),
        "rounds": rounds,
    }


def _contribute(layout: Layout, name: str, base: F32, host: int, number: int) -> tuple[Contribution, F32]:
    local = base + pattern(base.size, 16 * number + host, 25 - 4 * (host == 1))
    chunks: list[bytes] = []
    index = encode_blob(base, local, layout, codec(name, 1), sample_header(layout, name, host), chunks.append)
    good = not (host == 3 and number == 2)
    return Contribution(index.header.participant, 10 + host, index, b"".join(chunks), good), local


def _host(contribution: Contribution, local: F32) -> dict[str, Any]:
    return {
        "participant": contribution.participant.hex(),
        "weight": contribution.weight,
        "good": contribution.good,
        "tokens": contribution.index.header.tokens,
        "local": hexed(local),
        "payload": bytes(contribution.payload).hex(),
        "sum_squares": contribution.index.sum_squares.hex(),
        "payload_root": contribution.index.header.payload_root.hex(),
        "commitment": contribution.index.commitment.hex(),
    }


def feedback_vectors() -> list[dict[str, Any]]:
    return [_fed_back(name) for name in ("f32", "int4", "topk")]


def _fed_back(codec_name: str) -> dict[str, Any]:
    """Three rounds of one host from the same base; the first has no residual."""
    layout = LAYOUTS["odd"]
    base = initial_parameters(layout, SEED)
    residual: F32 | None = None
    rounds = []
    for number in range(3):
        local = base + pattern(base.size, 40 + number, 25)
        chunks: list[bytes] = []
        left: list[F32] = []
        header = sample_header(layout, codec_name, 0)
        index = encode_blob(
            base, local, layout, codec(codec_name, 1), header, chunks.append, feedback=Feedback(residual, left.append)
        )
        residual = np.concatenate(left)
        rounds.append(
            {
                "local": hexed(local),
                "payload": b"".join(chunks).hex(),
                "residual": hexed(residual),
                "feedback_root": index.header.feedback_root.hex(),
                "payload_root": index.header.payload_root.hex(),
            }
        )
    return {"codec": codec_name, "layout": "odd", "base": hexed(base), "rounds": rounds}


FILES = {
    "codec.json": codec_vectors,
    "tree.json": tree_vectors,
    "layout.json": layout_vectors,
    "header.json": header_vectors,
    "round.json": round_vectors,
    "feedback.json": feedback_vectors,
}


def main() -> int:
    """Write all files, or compare and return 1 when one differs."""
    prove_default_mode(2)
    different = []
    for name, make in FILES.items():
        text = json.dumps(make(), indent=1) + "\n"
        if "--check" not in sys.argv:
            (HERE / name).write_text(text)
        elif (HERE / name).read_text() != text:
            different.append(name)
    print("differs: " + ", ".join(different) if different else "same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
