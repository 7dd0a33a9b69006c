"""A run that is small enough for tests: text, manifest and first parameters, all from constants."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.jobs import Train
from gonka_trainer.manifest import (
    DataSpec,
    EndSpec,
    InnerSpec,
    Manifest,
    MembershipSpec,
    ModelSpec,
    OuterSpec,
    WindowSpec,
    render_manifest,
)

PARTICIPANT = "11" * 20
VALIDATION_BYTES = 4096
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 32,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
}
INNER = InnerSpec("adamw", 0.01, 0.9, 0.95, 1e-8, 0.1, 1.0, 4, 40, 0.1, 1_000_000, 4, 32, 7)
TOY_PARAMETERS: tuple[tuple[str, tuple[int, ...], str], ...] = (("a", (40, 25), "uniform:0.02"), ("b", (24,), "ones"))
Parameters = tuple[tuple[str, tuple[int, ...], str], ...]


@dataclass(frozen=True)
class TinyRun:
    """Paths of a run's files, and the manifest in them."""

    folder: Path
    manifest: Manifest

    @property
    def manifest_path(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def data(self) -> Path:
        return self.folder / "corpus.txt"

    @property
    def base(self) -> Path:
        return self.folder / "base.f32"

    def job(self, **changes: Any) -> Train:
        """Round 0 of ten steps from the first parameters."""
        output, resume = str(self.folder / "out.f32"), str(self.folder / "resume")
        job = Train(0, PARTICIPANT, str(self.base), output, 10, 0, resume, "44" * 32)
        return replace(job, **changes)


def text(size_bytes: int = 40_000) -> bytes:
    """Return words drawn from a short list by a counter's hash."""
    words = b"the round ends when more than half of the roster holds it and a host that was late reads on".split()
    draws = (words[hashlib.sha256(i.to_bytes(4, "big")).digest()[0] % len(words)] for i in range(size_bytes))
    return b" ".join(draws)[:size_bytes]


def make_run(folder: Path, parameters: Parameters = TOY_PARAMETERS, inner: InnerSpec = INNER) -> TinyRun:
    """Write corpus, manifest and base parameters into the folder."""
    corpus = text()
    data = DataSpec("text", hashlib.sha256(corpus).hexdigest(), len(corpus), VALIDATION_BYTES)
    manifest = Manifest(
        format="gonka-trainer/manifest/1",
        name="tiny",
        chain_id="test-1",
        carrier="memo",
        log_height=1,
        start_height=2,
        model=ModelSpec(CONFIG),
        tokenizer="bytes",
        parameters=parameters,
        chunk_elements=4096,
        init_seed="22" * 32,
        state_root="33" * 32,
        data=data,
        inner=inner,
        codec="f32",
        codec_version=1,
        outer=OuterSpec(0.7, 0.5, "clipped_mean"),
        windows=WindowSpec(10, 0, 5, 5, 1, 5, 3, 3, 3),
        membership=MembershipSpec("chain", (), 1),
        end=EndSpec(1, 0),
    )
    run = TinyRun(folder, manifest)
    run.data.write_bytes(corpus)
    run.manifest_path.write_bytes(render_manifest(manifest))
    first = initial_parameters(manifest.layout, bytes.fromhex(manifest.init_seed), 1)
    run.base.write_bytes(np.asarray(first, "<f4").tobytes())
    return run
