"""What the demo trains: a small Llama on bytes, with settings that learn in a few minutes on two cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from gonka_trainer.cli.spec_builder import Request
from gonka_trainer.ports import NodeInfo

HOSTS: Final = 3
ROUNDS: Final = 6
INNER_STEPS: Final = 30
MODEL: Final[dict[str, Any]] = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 160,
    "intermediate_size": 448,
    "num_hidden_layers": 4,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "max_position_embeddings": 128,
    "initializer_range": 0.02,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
}
INNER: Final[dict[str, Any]] = {
    "learning_rate": 8e-3,
    "warmup_steps": 20,
    "final_ratio": 0.1,
    "batch_sequences": 4,
    "sequence_tokens": 128,
}
# Over so few rounds the large first step is still felt in the last one through momentum: 0.3 does better than 0.9.
OUTER: Final[dict[str, Any]] = {"learning_rate": 0.8, "momentum": 0.3}
_SCHEDULE_ROUNDS: Final = 20  # as for a longer run: the learning rate is still high in the last round
WINDOWS: Final[dict[str, Any]] = {
    "train_blocks": 60,
    "margin_blocks": 1,
    "commit_blocks": 20,
    "attest_blocks": 10,
    "extensions": 2,
    "state_blocks": 20,
}
_FIRST_OPENING_BLOCKS: Final = 25


def request(node: NodeInfo, data: Path, participants: tuple[str, ...], rounds: int) -> Request:
    """Return what the demo's manifest asks for."""
    return Request(
        name="demo",
        chain_id=node.chain_id,
        carrier="kv" if node.training_module else "memo",
        log_height=node.height,
        start_height=node.height + _FIRST_OPENING_BLOCKS,
        model=MODEL,
        data=data,
        participants=participants,
        chunk_elements=64 * 1024,
        inner=INNER | {"steps": INNER_STEPS, "total_steps": max(rounds, _SCHEDULE_ROUNDS) * INNER_STEPS},
        outer=OUTER,
        windows=WINDOWS,
        end={"rounds": rounds},
    )
