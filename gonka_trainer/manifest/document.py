"""The manifest as a document: strict reading, canonical writing, and the hash that names the run.

The canonical form is JSON in UTF-8 with sorted keys, no white space between tokens, and numbers as Python's shortest
round-trip form; anything else is refused, so that one manifest has one hash.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from gonka_trainer.errors import ConfigError
from gonka_trainer.gradient.layout import Entry, Layout
from gonka_trainer.manifest.spec import (
    DataSpec,
    EndSpec,
    InnerSpec,
    MembershipSpec,
    ModelSpec,
    OuterSpec,
    WindowSpec,
)
from gonka_trainer.manifest.strict import build
from gonka_trainer.types import Digest, sha256

FORMAT: Final = "gonka-trainer/manifest/1"
MAX_MANIFEST_BYTES: Final = 1 << 20  # what the exchange carries as a document
_MAX_CHUNKS: Final = 1 << 20
_MAX_BLOCKS: Final = 10_000_000
_CODECS: Final = frozenset({"f32", "bf16", "int8", "int4"})  # not topk: a run does not carry error feedback yet
_TAG: Final = b"gonka-trainer/manifest-hash/1"
_REMEDY: Final = "`gonka-trainer spec new` writes a manifest; see docs/protocol.md for its fields"


@dataclass(frozen=True)
class Manifest:
    """A run. `parameters` lists name, shape and init of each trained tensor in the canonical order.

    `state_root` (hex) is the root of the state before round 0; `log_height` the first block whose records count.
    """

    format: str
    name: str
    chain_id: str
    carrier: str
    log_height: int
    start_height: int
    model: ModelSpec
    tokenizer: str
    parameters: tuple[tuple[str, tuple[int, ...], str], ...]
    chunk_elements: int
    init_seed: str
    state_root: str
    data: DataSpec
    inner: InnerSpec
    codec: str
    codec_version: int
    outer: OuterSpec
    windows: WindowSpec
    membership: MembershipSpec
    end: EndSpec

    @property
    def layout(self) -> Layout:
        """The canonical parameter order, cut into chunks."""
        return Layout(tuple(Entry(*entry) for entry in self.parameters), self.chunk_elements)


def render_manifest(manifest: Manifest) -> bytes:
    """Return the canonical bytes."""
    return _canonical(asdict(manifest))


def manifest_hash(document: bytes) -> Digest:
    """Return the hash that names the manifest with these canonical bytes."""
    return sha256(_TAG, document)


def load_manifest(path: Path) -> Manifest:
    """Read a manifest file; ConfigError naming file, key and value."""
    try:
        document = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "give the path of a run manifest") from error
    return parse_manifest(document, str(path))


def parse_manifest(document: bytes, where: str = "manifest") -> Manifest:
    """Read canonical bytes; ConfigError names `where`, the key and what is wrong."""
    if len(document) > MAX_MANIFEST_BYTES:
        raise ConfigError(f"{where}: {len(document)} bytes, at most {MAX_MANIFEST_BYTES}", _REMEDY)
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON: {error}", _REMEDY) from error
    manifest = build(Manifest, value, where, _REMEDY)
    _check_rules(manifest, where)
    try:
        layout, canonical = manifest.layout, render_manifest(manifest)
    except (
        ValueError,
        RecursionError,
    ) as error:  # a parameter that cannot be, a number that is not finite, text that is not Unicode
        raise ConfigError(f"{where}: {error}", _REMEDY) from error
    if layout.total_elements == 0 or document != canonical:
        what = "has no parameters" if layout.total_elements == 0 else "is not in canonical form"
        raise ConfigError(f"{where}: {what}", "have it written by `gonka-trainer spec new`")
    return manifest


def _canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def _check_rules(m: Manifest, where: str) -> None:
    rules: tuple[tuple[bool, str], ...] = (
        (m.format == FORMAT, f"format is {m.format!r:.60}, this program reads {FORMAT}"),
        (
            1 <= len(m.chain_id) <= 64 and m.chain_id.isascii() and m.chain_id.isprintable(),
            "chain_id must be 1..64 ASCII",
        ),
        (m.carrier in {"memo", "kv"}, f"carrier {m.carrier!r:.60} is neither memo nor kv"),
        (1 <= m.log_height < m.start_height < 1 << 62, "log_height must be at least 1 and below start_height"),
        (m.tokenizer == "bytes", f"tokenizer {m.tokenizer!r:.60} is unknown (bytes)"),
        (_vocabulary(m) >= 256, "model.config: vocab_size must be at least 256, for the tokens are bytes"),
        (0 < len(m.parameters) <= 1 << 16, "parameters: the list must have 1 to 65536 entries"),
        (
            all(_is_small(shape) for _, shape, _ in m.parameters),
            "parameters: a shape is too large",
        ),
        (_chunks(m) <= _MAX_CHUNKS, f"chunk_elements: more than {_MAX_CHUNKS} chunks"),
        (1 <= m.chunk_elements <= 512 * 1024, "chunk_elements must be 1..524288"),
        (_is_digest(m.init_seed), "init_seed is not 64 lower-case hex digits"),
        (_is_digest(m.state_root), "state_root is not 64 lower-case hex digits"),
        (m.data.kind == "text", f"data.kind {m.data.kind!r:.60} is unknown (text)"),
        (_is_digest(m.data.sha256), "data.sha256 is not 64 lower-case hex digits"),
        (m.codec in _CODECS and m.codec_version == 1, f"codec {m.codec!r:.60} {m.codec_version} is unknown"),
        (m.outer.rule == "clipped_mean", f"outer.rule {m.outer.rule!r:.60} is unknown (clipped_mean)"),
        (0 <= m.outer.momentum < 1, "outer.momentum must be in 0..1, 1 excluded"),
        (0 < m.outer.learning_rate <= 10, "outer.learning_rate must be positive and at most 10"),
        *_inner_rules(m),
        *_window_rules(m),
        *_membership_rules(m),
    )
    for holds, text in rules:
        if not holds:
            raise ConfigError(f"{where}: {text}", _REMEDY)


def _inner_rules(m: Manifest) -> tuple[tuple[bool, str], ...]:
    i = m.inner
    enough = i.sequence_tokens + 1
    return (
        (i.optimizer == "adamw", f"inner.optimizer {i.optimizer!r:.60} is unknown (adamw)"),
        (i.learning_rate > 0 and i.epsilon > 0, "inner.learning_rate and inner.epsilon must be positive"),
        (0 <= i.beta1 < 1 and 0 <= i.beta2 < 1, "inner.beta1 and inner.beta2 must be in 0..1, 1 excluded"),
        (i.clip_norm > 0 and i.weight_decay >= 0, "inner.clip_norm must be positive, inner.weight_decay not negative"),
        (1 <= i.steps <= 1_000_000, "inner.steps must be 1..1000000"),
        (1 <= i.batch_sequences <= 1 << 20, "inner.batch_sequences must be 1..1048576"),
        (1 <= i.sequence_tokens <= 1 << 24, "inner.sequence_tokens must be 1..16777216"),
        (0 <= i.warmup_steps <= i.total_steps, "inner.warmup_steps must be 0..total_steps"),
        (0 <= i.final_ratio <= 1, "inner.final_ratio must be 0..1"),
        (0 <= i.seed < 1 << 64, "inner.seed must be an unsigned 64-bit integer"),
        (enough <= m.data.validation_bytes, f"data.validation_bytes must be at least {enough}"),
        (m.data.validation_bytes + enough <= m.data.size_bytes, "data.size_bytes leaves nothing to train on"),
    )


def _window_rules(m: Manifest) -> tuple[tuple[bool, str], ...]:
    w = m.windows
    return (
        (min(w.train_blocks, w.commit_blocks, w.attest_blocks) >= 1, "windows: each must be at least one block"),
        (max(vars(w).values()) <= _MAX_BLOCKS, f"windows: none may be above {_MAX_BLOCKS}"),
        (w.state_blocks >= w.attest_blocks, "windows.state_blocks must not be below attest_blocks"),
        (0 <= w.extensions <= 100 and w.margin_blocks >= 0, "windows.extensions must be 0..100, margin_blocks not < 0"),
        (w.absent_rounds >= 2, "windows.absent_rounds must be at least 2"),
        (w.exclusion_rounds >= 1 and w.challenge_blocks >= 1, "windows: exclusion and challenge must be at least 1"),
    )


def _membership_rules(m: Manifest) -> tuple[tuple[bool, str], ...]:
    s, e = m.membership, m.end
    listed = bool(s.participants)
    return (
        (s.weights in {"equal", "chain"}, f"membership.weights {s.weights!r:.60} is neither equal nor chain"),
        ((s.weights == "equal") == listed, "membership.participants belongs to weights equal, and only to it"),
        (len(set(s.participants)) == len(s.participants), "membership.participants names somebody twice"),
        (1 <= s.min_weight < 1 << 62, "membership.min_weight must be at least 1"),
        (not listed or s.min_weight <= len(s.participants), "membership.min_weight is more than all participants"),
        (e.rounds < 1 << 32 and e.tokens < 1 << 63, "end.rounds and end.tokens are too large"),
        (e.rounds >= 0 and e.tokens >= 0 and e.rounds + e.tokens > 0, "end: rounds or tokens must be given"),
    )


def _vocabulary(m: Manifest) -> int:
    size = m.model.config.get("vocab_size", 256)
    return size if type(size) is int else 0


def _is_small(shape: tuple[int, ...]) -> bool:
    return len(shape) <= 8 and all(extent < 1 << 40 for extent in shape) and math.prod(map(abs, shape)) <= 1 << 40


def _chunks(m: Manifest) -> int:
    return sum(math.prod(map(abs, shape)) for _, shape, _ in m.parameters) // max(m.chunk_elements, 1)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and all(c in "0123456789abcdef" for c in text)
