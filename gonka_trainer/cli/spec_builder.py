"""Making a run manifest from what the researcher says and what follows from the model and the data."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from gonka_trainer.errors import ConfigError
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.gradient.layout import Entry, Layout
from gonka_trainer.gradient.state import index_state
from gonka_trainer.manifest import (
    DataSpec,
    EndSpec,
    InnerSpec,
    Manifest,
    MembershipSpec,
    ModelSpec,
    OuterSpec,
    WindowSpec,
)
from gonka_trainer.manifest.document import FORMAT
from gonka_trainer.manifest.strict import build

_REMEDY: Final = "`gonka-trainer spec new --help` lists what can be set"
_DESCRIBE_SECONDS: Final = 300

DEFAULT_INNER: Final[dict[str, Any]] = {
    "optimizer": "adamw",
    "learning_rate": 4e-4,
    "beta1": 0.9,
    "beta2": 0.95,
    "epsilon": 1e-8,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
    "warmup_steps": 1000,
    "total_steps": 88000,
    "final_ratio": 0.1,
    "steps": 1000,
    "batch_sequences": 32,
    "sequence_tokens": 1024,
    "seed": 1,
}
DEFAULT_OUTER: Final[dict[str, Any]] = {"learning_rate": 0.7, "momentum": 0.9, "rule": "clipped_mean"}
DEFAULT_WINDOWS: Final[dict[str, Any]] = {
    "train_blocks": 600,
    "margin_blocks": 10,
    "commit_blocks": 60,
    "attest_blocks": 120,
    "extensions": 3,
    "state_blocks": 180,
    "absent_rounds": 3,
    "exclusion_rounds": 3,
    "challenge_blocks": 60,
}
DEFAULT_END: Final[dict[str, Any]] = {"rounds": 88, "tokens": 0}


@dataclass(frozen=True)
class Request:
    """What the researcher wants. Dictionaries hold only what differs from the defaults above.

    `participants` are bech32 addresses of weight 1 each; empty takes weights from the chain, with `min_weight` given.
    `min_weight` 0 means two thirds of the participants, rounded up.
    """

    name: str
    chain_id: str
    carrier: str
    log_height: int
    start_height: int
    model: dict[str, Any]
    data: Path
    participants: tuple[str, ...] = ()
    min_weight: int = 0
    validation_bytes: int = 0
    chunk_elements: int = 512 * 1024
    codec: str = "int8"
    init_seed: str = ""
    inner: dict[str, Any] = field(default_factory=dict)
    outer: dict[str, Any] = field(default_factory=dict)
    windows: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)


def make_manifest(request: Request) -> Manifest:
    """Return the manifest: runs the worker once to list the parameters, and computes the initial state's root."""
    entries = describe_model(request.model)
    layout = Layout(entries, request.chunk_elements)
    seed = request.init_seed or secrets.token_hex(32)
    listed = len(request.participants)
    return Manifest(
        format=FORMAT,
        name=request.name,
        chain_id=request.chain_id,
        carrier=request.carrier,
        log_height=request.log_height,
        start_height=request.start_height,
        model=ModelSpec(request.model),
        tokenizer="bytes",
        parameters=tuple((e.name, e.shape, e.init) for e in entries),
        chunk_elements=request.chunk_elements,
        init_seed=seed,
        state_root=initial_root(layout, seed).hex(),
        data=describe_data(request.data, request.validation_bytes),
        inner=build(InnerSpec, DEFAULT_INNER | request.inner, "inner", _REMEDY),
        codec=request.codec,
        codec_version=1,
        outer=build(OuterSpec, DEFAULT_OUTER | request.outer, "outer", _REMEDY),
        windows=build(WindowSpec, DEFAULT_WINDOWS | request.windows, "windows", _REMEDY),
        membership=MembershipSpec(
            "equal" if listed else "chain", request.participants, request.min_weight or -(-2 * listed // 3) or 1
        ),
        end=build(EndSpec, DEFAULT_END | request.end, "end", _REMEDY),
    )


def initial_root(layout: Layout, seed: str) -> bytes:
    """Return the root of the state before round 0."""
    parameters = initial_parameters(layout, bytes.fromhex(seed))
    return index_state(layout, parameters, np.zeros_like(parameters), tokens=0, outer_steps=0).root


def describe_data(path: Path, validation_bytes: int) -> DataSpec:
    """Pin a corpus file; its last twentieth (at most 1 MiB) is held out when `validation_bytes` is 0."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "give --data FILE, a text file") from error
    return DataSpec("text", digest, size, validation_bytes or min(size // 20, 1 << 20))


def describe_model(config: dict[str, Any]) -> tuple[Entry, ...]:
    """Ask the worker, in a process of its own, which parameters the model has and how they start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        command = [sys.executable, "-m", "gonka_trainer.worker", "describe", "--config", str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_DESCRIBE_SECONDS, check=False, env=dict(os.environ)
        )
    if done.returncode != 0:
        raise ConfigError(f"the model cannot be built:\n{done.stderr[-2000:]}", "correct the model's configuration")
    return tuple(_entry(json.loads(line)) for line in done.stdout.splitlines() if line.strip())


def _entry(line: Any) -> Entry:
    name, shape, init = line if isinstance(line, list) else (line["name"], line["shape"], line["init"])
    return Entry(name, tuple(shape), init)
