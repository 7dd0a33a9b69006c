"""What the core wants done now: `step` returns the whole set each time, a command stands until it is done or moot.

That makes every command safe to repeat: a driver starts what is new in the set, stops what has gone from it, and after
a restart starts whatever the replayed journal's last set holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from gonka_trainer.round.records import Record
from gonka_trainer.types import Address, Digest, Height


@dataclass(frozen=True, slots=True)
class ReadEnvironment:
    """Answer with `EnvironmentRead` for this height. An opening that needs it waits, and the blocks after it with it.

    `digest`: what it must hash to, if that is final already; peers that posted it have the preimage where the chain no
    longer does.
    """

    height: Height
    digest: Digest | None


@dataclass(frozen=True, slots=True)
class SendJoin:
    """Send a join for this host's participant, written above `after`; wanted until a join of ours counts."""

    after: Height


@dataclass(frozen=True, slots=True)
class Train:
    """Train the round from the state `base_root`, and answer with `UpdateReady`.

    `deadline` is T. `finish` True: stop training now, commit what there is. `roster` is sorted by address.
    """

    round: int
    base_root: Digest
    roster: tuple[Address, ...]
    deadline: Height
    finish: bool


@dataclass(frozen=True, slots=True)
class Publish:
    """Have this record on chain at or before `until`; wanted until it is seen in a block, or moot."""

    record: Record
    until: Height


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get the blob of `participant` from it or any of `holders` (who attested it), check it, answer with `BlobHeld`."""

    round: int
    participant: Address
    commitment: Digest
    base_root: Digest
    holders: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Serve:
    """The commit window of the round is closed: serve its blobs to those who may have them."""

    round: int
    commitments: tuple[tuple[Address, Digest], ...]


@dataclass(frozen=True, slots=True)
class ProvePossession:
    """Compute the possession proof over these held blobs and answer with `PossessionProved`."""

    round: int
    close_hash: Digest
    participants: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """Compute the new state from the blobs of `included` (participant, commitment, roster weight) over `base_root`.

    Answer with `StateComputed` of this `attempt`.
    """

    round: int
    base_root: Digest
    included: tuple[tuple[Address, Digest, int], ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class Sync:
    """Get the state of this root from any of `holders` (who posted it) and answer with `StateSynced`."""

    root: Digest
    holders: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """What must stay on disk: these state roots, and blobs of rounds from `blobs_from` on; the rest may go."""

    roots: tuple[Digest, ...]
    blobs_from: int


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop, loudly, with this evidence: this host's root differs from the final one after recomputing."""

    round: int
    computed: Digest
    final: Digest


Command = ReadEnvironment | SendJoin | Train | Publish | Fetch | Serve | ProvePossession | Apply | Sync | Keep | Halt
