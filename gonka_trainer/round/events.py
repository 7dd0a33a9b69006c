"""Facts that the core is told, in the past tense: none can be refused, all are journalled before they are acted on.

Blocks come in order, each once, none skipped. Everything else is this host's own: what it trained, holds, computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from gonka_trainer.round.environment import Environment
from gonka_trainer.round.records import PlacedRecord
from gonka_trainer.round.roster_bytes import RosterState
from gonka_trainer.types import Address, Digest, Height


@dataclass(frozen=True, slots=True)
class BlockSeen:
    """A whole block: its hash and all records of this run in it, in the order of transaction and message."""

    height: Height
    block_hash: Digest
    records: tuple[PlacedRecord, ...]


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The blocks seen so far reach the chain's tip; until then the core starts nothing new on chain."""

    height: Height


@dataclass(frozen=True, slots=True)
class EnvironmentRead:
    """The environment of a height, read from the chain or, for a digest that became final, from a peer."""

    height: Height
    environment: Environment


@dataclass(frozen=True, slots=True)
class UpdateReady:
    """This host's blob of a round is encoded and stored; `commitment` is journalled and will never be another one."""

    round: int
    commitment: Digest


@dataclass(frozen=True, slots=True)
class BlobHeld:
    """All bytes of a committed blob are here and match its commitment.

    `form_good` False: what matches the commitment breaks a header or form rule; then not all bytes need be here, the
    blob is not attested, and has weight 0 if it is included all the same.
    """

    round: int
    participant: Address
    form_good: bool


@dataclass(frozen=True, slots=True)
class PossessionProved:
    """The proof over the blobs of these participants is computed; an attestation may be written with it."""

    round: int
    participants: tuple[Address, ...]
    possession: bytes


@dataclass(frozen=True, slots=True)
class StateComputed:
    """This host applied the frozen set and the new state is stored.

    `attempt` counts from 0; 1 is the recomputation after another root became final. `tokens` is the run's total.
    """

    round: int
    root: Digest
    attempt: int
    tokens: int


@dataclass(frozen=True, slots=True)
class StateSynced:
    """The state of this root was fetched (or is the initial one), checked and stored."""

    root: Digest
    tokens: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """The operator's checkpoint: this host goes on from the end of a block without those before it.

    `roster` is what the roster digest of the round that opens next covers, `environment` the one that its R is drawn
    from, `final` that of the last final round (None before the first).
    """

    roster: RosterState
    environment: Environment
    final: Environment | None


Event = (
    BlockSeen
    | CaughtUp
    | EnvironmentRead
    | UpdateReady
    | BlobHeld
    | PossessionProved
    | StateComputed
    | StateSynced
    | Resumed
)
