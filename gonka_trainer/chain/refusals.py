"""What a refused or failed transaction means, and whether sending again can help: pure.

Codes are those of Cosmos SDK 0.53 and of Gonka's modules. A simulation tells its error only by text.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from gonka_trainer.chain.transport import printable
from gonka_trainer.errors import ChainError


class Cure(enum.Enum):
    """What can be done about a refusal."""

    PENDING = "pending"  # the node has these very bytes: wait for a block
    USED = "timestamp used"  # by these bytes, which may be on chain, or by others: look it up, then take another
    RESEQUENCE = "resequence"  # build it again with the sequence that the node expects
    MORE_GAS = "more gas"  # build it again with a higher gas limit
    LATER = "later"  # the same can work later without anybody doing anything
    RETRY = "retry"  # not known: try a few times
    NONE = "none"  # a person must do something


@dataclass(frozen=True, slots=True)
class Refusal:
    """A transaction's error: of CheckTx, of its block, or of a simulation (code 0 where the text tells nothing)."""

    codespace: str
    code: int
    log: bytes


_CURES: Final[dict[tuple[str, int], tuple[Cure, str]]] = {
    ("sdk", 2): (
        Cure.NONE,
        "this chain has no such message: where the training module is missing, use a manifest with carrier = memo",
    ),
    ("sdk", 4): (Cure.RETRY, "check that the key file is this account's, and that chain.chain_id is right"),
    ("sdk", 5): (Cure.NONE, "send coins to the signing account (or to the fee granter)"),
    ("sdk", 8): (Cure.NONE, "the signing key is not the sender's: check the key file"),
    ("sdk", 9): (Cure.NONE, "the account is not on chain: send it some coins to open it"),
    ("sdk", 11): (Cure.MORE_GAS, "raise chain.gas_factor"),
    ("sdk", 12): (Cure.NONE, "the chain's memo limit is below 256 bytes (auth parameters): it cannot carry records"),
    ("sdk", 13): (Cure.NONE, "raise chain.gas_price to what the node requires"),
    ("sdk", 19): (Cure.PENDING, ""),
    ("sdk", 20): (Cure.LATER, "the node's mempool is full"),
    ("sdk", 30): (Cure.RETRY, ""),
    ("sdk", 32): (Cure.RESEQUENCE, ""),
    ("sdk", 37): (Cure.NONE, "this chain takes no unordered transactions: set chain.style = 'ordered'"),
    ("sdk", 38): (Cure.NONE, "the granter gives no fee allowance: have it grant one, or empty chain.fee_granter"),
    ("sdk", 42): (Cure.RETRY, "the node is far behind the chain"),
    ("feegrant", 2): (Cure.NONE, "the fee allowance is used up: have the granter renew it, or empty chain.fee_granter"),
    ("feegrant", 3): (
        Cure.NONE,
        "the fee allowance has expired: have the granter renew it, or empty chain.fee_granter",
    ),
    ("restrictions", 1108): (
        Cure.NONE,
        "this chain forbids sends between users now, so the memo carrier cannot be used: use carrier = kv, or wait",
    ),
    ("inference", 1120): (Cure.NONE, "the task is not on chain"),
    ("inference", 1139): (Cure.NONE, "the account is on no allow list for training: ask governance to add it"),
    ("authz", 2): (Cure.NONE, "the participant has granted nothing of the kind to this key"),
}
_ALREADY_USED: Final = b"already used timeout"
_BY_TEXT: Final = (
    (b"incorrect account sequence", "sdk", 32),
    (b"already used timeout", "sdk", 18),
    (b"restricted", "restrictions", 1108),
    (b"fee limit exceeded", "feegrant", 2),
    (b"fee allowance expired", "feegrant", 3),
    (b"does not allow to pay fees", "sdk", 38),
    (b"insufficient fee", "sdk", 13),
    (b"insufficient funds", "sdk", 5),
    (b"memo too large", "sdk", 12),
    (b"unknown address", "sdk", 9),
    (b"tx parse error", "sdk", 2),
    (b"invalid pubkey", "sdk", 8),
    (b"out of gas", "sdk", 11),
    (b"feature not supported", "sdk", 37),
    (b"allowed for this address", "inference", 1139),
    (b"authorization not found", "authz", 2),
)
_EXPECTED: Final = re.compile(rb"expected (\d{1,19}), got")


def from_text(details: str) -> Refusal:
    """Return the refusal that a simulation's error text tells of."""
    log = details.encode("utf-8", "surrogatepass")
    for phrase, codespace, code in _BY_TEXT:
        if phrase in log:
            return Refusal(codespace, code, log)
    return Refusal("", 0, log)


def cure(refusal: Refusal) -> Cure:
    """Return what can be done about it."""
    if (refusal.codespace, refusal.code) == ("sdk", 18):
        return Cure.USED if _ALREADY_USED in refusal.log else Cure.RETRY
    return _CURES.get((refusal.codespace, refusal.code), (Cure.RETRY, ""))[0]


def expected_sequence(refusal: Refusal) -> int | None:
    """Return the sequence that the node says it expects, if it says one."""
    found = _EXPECTED.search(refusal.log)
    return int(found.group(1)) if found else None


def as_error(refusal: Refusal, sender: str) -> ChainError:
    """Return the error for a person; `sender` is the signing account's address as text."""
    remedy = _CURES.get((refusal.codespace, refusal.code), (Cure.RETRY, ""))[1]
    said = printable(refusal.log) or "no text"
    name = f"{refusal.codespace} {refusal.code}" if refusal.code else "in simulation"
    return ChainError(f"the chain refuses a transaction of {sender} ({name}): {said}", remedy)
