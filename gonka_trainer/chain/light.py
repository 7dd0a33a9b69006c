"""Who signed a block, and whether that vouches for it: pure.

After CometBFT 0.38's light client (specification: light-client/verification, core/data_structures, core/encoding): a
header is believed when more than two thirds of the voting power of its own validators signed it, and its validators
are those that the header before named; or, across a gap, when more than a third of the power that a believed header
named signed it too.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gonka_trainer.chain.headers import (
    Header,
    block_id_message,
    bytes_field,
    digest,
    fixed_field,
    header_hash,
    merkle_root,
    number_field,
    time_message,
    time_ns,
    varint,
)
from gonka_trainer.errors import DecodeError
from gonka_trainer.types import Digest, Height, sha256

_KEY_FIELDS: Final = {"tendermint/PubKeyEd25519": 1, "tendermint/PubKeySecp256k1": 2}
_ED25519: Final = 1
_PRECOMMIT: Final = 2
_COMMITTED: Final = 2  # of BlockIDFlag: absent 1, commit 2, nil 3
_ADDRESS_BYTES: Final = 20
_KEPT_HEADERS: Final = 1024


@dataclass(frozen=True, slots=True)
class Validator:
    """A key (`kind` is its field in CometBFT's PublicKey) and its voting power."""

    kind: int
    key: bytes
    power: int

    @property
    def address(self) -> bytes:
        """The address, for an ed25519 key."""
        return sha256(self.key)[:_ADDRESS_BYTES]


@dataclass(frozen=True, slots=True)
class ValidatorSet:
    """The validators of a height, in the chain's order."""

    members: tuple[Validator, ...]

    @property
    def hash(self) -> Digest:
        """What the header of that height has as validators_hash."""
        return merkle_root([_simple(member) for member in self.members])

    @property
    def power(self) -> int:
        """The voting power of all."""
        return sum(member.power for member in self.members)

    def power_of(self, keys: Iterable[bytes]) -> int:
        """Return the voting power here of those who hold the keys."""
        held = frozenset(keys)
        return sum(member.power for member in self.members if member.key in held)


@dataclass(frozen=True, slots=True)
class Vote:
    """A validator's signature; the position in the commit is the position in the set."""

    time_ns: int
    signature: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    """Precommits over a block; None for a validator that was away or voted for nothing."""

    height: Height
    round: int
    block_hash: Digest
    block_id: bytes
    votes: tuple[Vote | None, ...]


@dataclass(frozen=True, slots=True)
class SignedHeader:
    """A header with the commit over it."""

    header: Header
    commit: Commit


def _simple(member: Validator) -> bytes:
    key = bytes_field(member.kind, member.key, always=True)
    return bytes_field(1, key) + number_field(2, member.power)


def parse_validators(rows: Sequence[Any]) -> ValidatorSet:
    """Read the rows of `validators`; DecodeError when they have not the form of CometBFT 0.38."""
    try:
        members = tuple(
            Validator(
                kind=_KEY_FIELDS[row["pub_key"]["type"]],
                key=base64.b64decode(row["pub_key"]["value"], validate=True),
                power=int(row["voting_power"]),
            )
            for row in rows
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, binascii.Error) as error:
        raise DecodeError(f"not validators of CometBFT 0.38: {type(error).__name__} {error}") from error
    if any(member.power <= 0 for member in members):
        raise DecodeError("a validator without voting power")
    return ValidatorSet(members)


def parse_commit(raw: Any) -> Commit:
    """Read a commit; DecodeError when it has not the form of CometBFT 0.38."""
    try:
        return Commit(
            height=Height(int(raw["height"])),
            round=_round(raw["round"]),
            block_hash=digest(raw["block_id"]["hash"]),
            block_id=block_id_message(raw["block_id"]),
            votes=tuple(_vote(signature) for signature in raw["signatures"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, binascii.Error) as error:
        raise DecodeError(f"not a commit of CometBFT 0.38: {type(error).__name__} {error}") from error


def _vote(raw: dict[str, Any]) -> Vote | None:
    if int(raw["block_id_flag"]) != _COMMITTED:
        return None
    moment = time_ns(raw["timestamp"])
    if moment < 0:
        raise ValueError("a vote from before 1970")
    return Vote(moment, base64.b64decode(raw["signature"] or "", validate=True))


def _round(number: Any) -> int:
    if not 0 <= int(number) < 1 << 31:
        raise ValueError("no number of a round")
    return int(number)


def vote_bytes(chain_id: str, commit: Commit, vote: Vote) -> bytes:
    """Return what the validator signed: a CanonicalVote behind its length."""
    message = (
        number_field(1, _PRECOMMIT)
        + fixed_field(2, commit.height)
        + fixed_field(3, commit.round)
        + bytes_field(4, commit.block_id)
        + bytes_field(5, time_message(vote.time_ns), always=True)
        + bytes_field(6, chain_id.encode())
    )
    return varint(len(message)) + message


def signers(signed: SignedHeader, validators: ValidatorSet) -> frozenset[bytes]:
    """Return the keys of validators who signed the header, with more than two thirds of the set's power.

    Stops counting once there are enough, as CometBFT does. DecodeError when the commit is of another block, the set is
    another than the header's, a signature is wrong, or too few signed.
    """
    header, commit = signed.header, signed.commit
    if commit.height != header.height or commit.block_hash != header_hash(header):
        raise DecodeError(f"commit of block {header.height} is over another block than its header")
    if validators.hash != header.validators_hash:
        raise DecodeError(f"validators of block {header.height} do not hash to its validators_hash")
    if len(commit.votes) != len(validators.members):
        raise DecodeError(f"commit of block {header.height} is of another number of validators")
    found, power, whole = set[bytes](), 0, validators.power
    for member, vote in zip(validators.members, commit.votes, strict=True):
        if 3 * power > 2 * whole:
            break
        if vote is None or member.kind != _ED25519:
            continue
        if not _is_signed(member, vote_bytes(header.chain_id, commit, vote), vote.signature):
            raise DecodeError(f"signature of validator {member.address.hex()} over block {header.height} is wrong")
        found.add(member.key)
        power += member.power
    if 3 * power <= 2 * whole:
        raise DecodeError(f"block {header.height} is signed by {power} of {whole} of its validators' power: too little")
    return frozenset(found)


def _is_signed(member: Validator, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(member.key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Believed:
    """What later headers are compared with of one that is believed."""

    height: Height
    block_hash: Digest
    previous_hash: Digest
    next_validators_hash: Digest


class LightChain:
    """The headers that are believed: the first one, and the newest thousand."""

    def __init__(self) -> None:
        self._first: Believed | None = None
        self._headers: OrderedDict[int, Believed] = OrderedDict()

    @property
    def first(self) -> Believed | None:
        """The header with which trust began."""
        return self._first

    def add(self, header: Header) -> None:
        """Believe a header from now on."""
        height = header.height
        entry = Believed(height, header_hash(header), header.previous_hash, header.next_validators_hash)
        self._first = self._first or entry
        self._headers[height] = entry
        if len(self._headers) > _KEPT_HEADERS:
            self._headers.popitem(last=False)

    def get(self, height: int) -> Believed | None:
        """Return the believed header of the height."""
        if self._first is not None and self._first.height == height:
            return self._first
        return self._headers.get(height)

    def below(self, height: int) -> Believed | None:
        """Return the nearest believed header below the height."""
        lower = [each for at, each in self._headers.items() if at < height]
        if self._first is not None and self._first.height < height:
            lower.append(self._first)
        return max(lower, key=lambda each: each.height, default=None)

    def is_linked(self, header: Header) -> bool:
        """Whether a believed neighbour vouches for the header by its hashes; DecodeError when one contradicts it."""
        height, block_hash = header.height, header_hash(header)
        same, before, after = self.get(height), self.get(height - 1), self.get(height + 1)
        if same is not None and same.block_hash != block_hash:
            raise DecodeError(f"block {height} is another than the one that was signed")
        if after is not None and after.previous_hash != block_hash:
            raise DecodeError(f"block {height} is not the one before block {height + 1}")
        if before is not None and header.previous_hash != before.block_hash:
            raise DecodeError(f"block {height} does not follow block {height - 1}")
        if before is not None and header.validators_hash != before.next_validators_hash:
            raise DecodeError(f"block {height} has other validators than block {height - 1} names")
        return any(each is not None for each in (same, before, after))
