"""Names for the plain values that every part shares. Nothing here imports anything of the project."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import Final, NewType

Digest = NewType("Digest", bytes)
"""32 bytes of SHA-256."""

Address = NewType("Address", bytes)
"""The 20 bytes of an account's address; bech32 text exists only at the edges. Compares and sorts by its bytes."""

Height = NewType("Height", int)
"""A block's height, from 1."""

DIGEST_BYTES: Final = 32
ADDRESS_BYTES: Final = 20
ZERO_DIGEST: Final = Digest(bytes(DIGEST_BYTES))


def sha256(*parts: bytes) -> Digest:
    """Return SHA-256 of the parts put together."""
    state = hashlib.sha256()
    for part in parts:
        state.update(part)
    return Digest(state.digest())


def lp(value: bytes) -> bytes:
    """Return the value behind its length (u32, big-endian), the form in which free-length bytes enter a preimage."""
    return len(value).to_bytes(4, "big") + value


def u16(value: int) -> bytes:
    """Return the integer as 2 big-endian bytes; OverflowError when it does not fit."""
    return value.to_bytes(2, "big")


def u32(value: int) -> bytes:
    """Return the integer as 4 big-endian bytes; OverflowError when it does not fit."""
    return value.to_bytes(4, "big")


def u64(value: int) -> bytes:
    """Return the integer as 8 big-endian bytes; OverflowError when it does not fit."""
    return value.to_bytes(8, "big")


class Role(enum.IntEnum):
    """What a join makes of its author (docs/protocol.md 1)."""

    MEMBER = 0
    VALIDATOR = 1
    OBSERVER = 2


class Fault(enum.StrEnum):
    """Why a peer's blob or message is not accepted."""

    COMMITMENT = "commitment"  # the header does not hash to the committed digest
    DIGEST = "digest"  # bytes do not match the committed root
    FORM = "form"  # not decodable: wrong size, spare bytes, scales not finite
    VALUE = "value"  # a decoded value is not finite or beyond the bound
    HEADER = "header"  # a header rule is broken: steps, tokens, base, run
    NORM = "norm"  # the claimed sum of squares is not that of the bytes
    UNREACHABLE = "unreachable"  # nobody who has it answered
    PROTOCOL = "protocol"  # the peer spoke out of turn or beyond a limit


@dataclass(frozen=True)
class Verdict:
    """The outcome of looking at something a peer sent: `fault` is None when it is good; `detail` is for logs."""

    fault: Fault | None = None
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return self.fault is None


GOOD: Final = Verdict()
