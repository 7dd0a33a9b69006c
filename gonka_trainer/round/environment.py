"""What a round reads from the chain besides records: epoch schedule and validation weights (docs/protocol.md 3)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import tags
from gonka_trainer.types import Address, Digest, Height, sha256, u32, u64

_SCHEDULE_BYTES: Final = 6 * 8
_MAX_WEIGHTS: Final = 1 << 20


@dataclass(frozen=True)
class EpochSchedule:
    """The latest epoch's proof-of-compute start and the chain's epoch parameters, in blocks.

    `epoch_length_blocks` 0 says that the chain has no epochs; `index` 0 that no proof of compute happened yet.
    """

    index: int
    poc_start: Height
    epoch_length_blocks: int
    poc_stage_blocks: int
    poc_validation_delay_blocks: int
    poc_validation_blocks: int


NO_EPOCHS: Final = EpochSchedule(0, Height(0), 0, 0, 0, 0)


@dataclass(frozen=True)
class Environment:
    """Schedule and weights, sorted by address; weights are positive."""

    schedule: EpochSchedule
    weights: tuple[tuple[Address, int], ...]

    @property
    def by_address(self) -> Mapping[Address, int]:
        """The weights as a mapping."""
        return dict(self.weights)


def encode_environment(environment: Environment) -> bytes:
    """Return the canonical bytes, the preimage of `environment_digest`."""
    s = environment.schedule
    numbers = (
        s.index,
        s.poc_start,
        s.epoch_length_blocks,
        s.poc_stage_blocks,
        s.poc_validation_delay_blocks,
        s.poc_validation_blocks,
    )
    weights = b"".join(address + u64(weight) for address, weight in environment.weights)
    return b"".join(map(u64, numbers)) + u32(len(environment.weights)) + weights


def environment_digest(environment: Environment) -> Digest:
    """Return SHA-256 over the tag and the canonical bytes."""
    return sha256(tags.ENVIRONMENT, encode_environment(environment))


def decode_environment(data: bytes) -> Environment:
    """Read canonical bytes; DecodeError for anything else (wrong size, weights unsorted or 0)."""
    if len(data) < _SCHEDULE_BYTES + 4:
        raise DecodeError(f"environment of {len(data)} bytes")
    numbers = [int.from_bytes(data[i : i + 8], "big") for i in range(0, _SCHEDULE_BYTES, 8)]
    count = int.from_bytes(data[_SCHEDULE_BYTES : _SCHEDULE_BYTES + 4], "big")
    rest = data[_SCHEDULE_BYTES + 4 :]
    if count > _MAX_WEIGHTS or len(rest) != 28 * count:
        raise DecodeError(f"environment says {count} weights and has {len(rest)} bytes of them")
    weights = tuple(
        (Address(rest[i : i + 20]), int.from_bytes(rest[i + 20 : i + 28], "big")) for i in range(0, len(rest), 28)
    )
    addresses = [address for address, _ in weights]
    if any(a >= b for a, b in itertools.pairwise(addresses)) or any(w == 0 for _, w in weights):
        raise DecodeError("weights are not sorted by address, or one is 0")
    schedule = EpochSchedule(numbers[0], Height(numbers[1]), *numbers[2:])
    return Environment(schedule, weights)


def is_canonical(environment: Environment) -> bool:
    """Whether it is what its own canonical bytes decode to: sorted, weights positive, every number fits."""
    try:
        return decode_environment(encode_environment(environment)) == environment
    except (OverflowError, DecodeError):
        return False
