"""What the protocol's core needs of a run's manifest, and who this host is."""

from __future__ import annotations

from dataclasses import dataclass

from gonka_trainer.types import Address, Digest, Height


@dataclass(frozen=True)
class RoundParams:
    """The rules of one run, the same on every host. Windows are in blocks.

    `equal_members` lists the participants of weight 1 each; None takes weights from the chain's environment.
    Records below `log_height` do not count. `rounds` or `tokens` says when the run ends (0: no such limit).
    """

    run_id: Digest
    initial_root: Digest
    log_height: Height
    start_height: Height
    equal_members: tuple[Address, ...] | None
    min_weight: int
    train_blocks: int
    margin_blocks: int
    commit_blocks: int
    attest_blocks: int
    extensions: int
    state_blocks: int
    absent_rounds: int = 3
    exclusion_rounds: int = 3
    challenge_blocks: int = 10
    roster_limit: int = 1024
    rounds: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Local:
    """Which participant this host speaks for, and with which key; `participant` is None for an observer."""

    participant: Address | None
    key: Address | None
    wants_membership: bool = True
