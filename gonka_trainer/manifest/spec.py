"""The sections of a run manifest. Every field is required: a manifest says everything, nothing is implied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelSpec:
    """A `transformers` configuration (with `model_type`), as its `config.json` would hold it."""

    config: dict[str, Any]


@dataclass(frozen=True)
class DataSpec:
    """One text file, pinned by its SHA-256 (hex); its last `validation_bytes` are held out."""

    kind: str
    sha256: str
    size_bytes: int
    validation_bytes: int


@dataclass(frozen=True)
class InnerSpec:
    """The inner loop: AdamW with warm-up and cosine decay, indexed by the global inner step.

    `steps` is H, inner steps a round at most; `final_ratio` the learning rate's end over its peak; `seed` the run's
    seed for data order.
    """

    optimizer: str
    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float
    clip_norm: float
    warmup_steps: int
    total_steps: int
    final_ratio: float
    steps: int
    batch_sequences: int
    sequence_tokens: int
    seed: int

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one inner step trains on."""
        return self.batch_sequences * self.sequence_tokens


@dataclass(frozen=True)
class OuterSpec:
    """The outer optimizer (Nesterov momentum) and the aggregation rule."""

    learning_rate: float
    momentum: float
    rule: str


@dataclass(frozen=True)
class WindowSpec:
    """Windows of a round in blocks (docs/protocol.md 3); `extensions` of the attest window at most."""

    train_blocks: int
    margin_blocks: int
    commit_blocks: int
    attest_blocks: int
    extensions: int
    state_blocks: int
    absent_rounds: int
    exclusion_rounds: int
    challenge_blocks: int


@dataclass(frozen=True)
class MembershipSpec:
    """Who may be in a roster: `weights` "equal" with the list of participants (bech32), or "chain" without one."""

    weights: str
    participants: tuple[str, ...]
    min_weight: int


@dataclass(frozen=True)
class EndSpec:
    """When the run ends: after `rounds` rounds or `tokens` tokens (0: no such limit; one of them is given)."""

    rounds: int
    tokens: int
