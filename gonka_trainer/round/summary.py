"""What became of a round, for logs, reports and the audit. Decides nothing."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gonka_trainer.types import Address, Digest, Height


class Phase(enum.StrEnum):
    """Where a run stands."""

    WAITING = "waiting"  # no round is open: round 0 is not due, or an opening waits for its environment
    TRAIN = "train"  # commits count; T is ahead
    COMMIT = "commit"  # T has passed, commits still count
    ATTEST = "attest"
    STATE = "state"
    ENDED = "ended"  # the run is over


class Outcome(enum.StrEnum):
    """How a round ended on chain."""

    FINAL = "final"
    VOID = "void"


class VoidReason(enum.StrEnum):
    """Why a round was void."""

    FLOOR = "the roster's weight is below min_weight"
    COMMIT = "no more than half of the weight committed"
    ATTEST = "the included authors hold no more than half of the weight"
    STATE = "no state root was posted by more than half of the weight"


@dataclass(frozen=True, slots=True)
class Seat:
    """A participant in the roster: its weight and whether it has a voice."""

    participant: Address
    weight: int
    voice: bool


@dataclass(frozen=True, slots=True)
class Posted:
    """A state record that counted: who, the three digests, at which height."""

    participant: Address
    root: Digest
    environment: Digest
    roster: Digest
    height: Height


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """A round that ended. Heights are None where the round never got there; sequences are sorted by participant.

    A round that was void at its close has `closed` of that block. `reason` is a `VoidReason`, empty for a final round;
    `root` is the final root, None for a void round.
    """

    round: int
    opened: Height
    deadline: Height
    base_root: Digest
    roster: tuple[Seat, ...]
    commitments: tuple[tuple[Address, Digest, Height], ...]
    closed: Height | None
    attestations: tuple[tuple[Address, tuple[Address, ...]], ...]
    frozen: Height | None
    included: tuple[Address, ...]
    posts: tuple[Posted, ...]
    ended: Height
    outcome: Outcome
    root: Digest | None
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth a line in the log: a record that is nothing, and why; a drop; an exclusion.

    `contradicts`: no honest host writes such a record.
    """

    height: Height
    author: Address | None
    text: str
    contradicts: bool = False
