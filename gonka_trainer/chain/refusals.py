"""What a refused or failed transaction means, and whether sending again can help: pure.

Codes are those of Cosmos SDK 0.53 and of Gonka's modules. A simulation tells its error only by text.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Final

from gonka_trainer.errors import ChainError
from gonka_trainer.text import printable


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


_RENEW: Final = "have the granter grant a new one, or empty chain.fee_granter to pay from the key's own account"
_CURES: Final[dict[tuple[str, int], tuple[Cure, str]]] = {
    ("sdk", 2): (
        Cure.NONE,
        "this chain has no such message: where the training module is missing, use a manifest with carrier = memo",
    ),
    ("sdk", 4): (
        Cure.RETRY,
        "check that the key file is this account's, and that chain.chain_id is right; a chain that was reset under the "
        "same name has other account numbers: restart",
    ),
    ("sdk", 5): (Cure.NONE, "send coins to the signing account (or to the fee granter)"),
    ("sdk", 8): (Cure.NONE, "the signing key is not the sender's: check the key file"),
    ("sdk", 9): (Cure.NONE, "the account is not on chain: send it some coins to open it"),
    ("sdk", 11): (Cure.MORE_GAS, "raise chain.gas_factor"),
    ("sdk", 12): (Cure.NONE, "the chain's memo limit is below 256 bytes (auth parameters): it cannot carry records"),
    ("sdk", 13): (Cure.NONE, "raise chain.gas_price to what the node requires"),
    ("sdk", 18): (Cure.RETRY, "chain.timeout_seconds may be longer than the chain allows (ten minutes)"),
    ("sdk", 19): (Cure.PENDING, "nothing to do: the node has the transaction, it is awaited"),
    ("sdk", 20): (Cure.LATER, "nothing to do: it is tried again; if it lasts, use a node with a larger mempool"),
    ("sdk", 21): (Cure.NONE, "send fewer records at once: the node takes no transaction of this size"),
    ("sdk", 30): (Cure.RETRY, "the node is far behind the chain, or chain.timeout_blocks is too small"),
    ("sdk", 32): (
        Cure.RESEQUENCE,
        "another process uses the key with ordered transactions: set chain.style = 'unordered', or use another key",
    ),
    ("sdk", 37): (Cure.NONE, "this chain takes no unordered transactions: set chain.style = 'ordered'"),
    ("sdk", 38): (Cure.NONE, f"the granter gives no fee allowance, or it has expired: {_RENEW}"),
    ("sdk", 42): (Cure.RETRY, "the node is far behind the chain, or chain.timeout_seconds is too small"),
    ("feegrant", 2): (Cure.NONE, f"the fee allowance is used up: {_RENEW}"),
    ("feegrant", 3): (Cure.NONE, f"the fee allowance has expired: {_RENEW}"),
    ("feegrant", 7): (
        Cure.NONE,
        f"the fee allowance is not for this kind of message (inside a MsgExec: not for MsgExec): {_RENEW}",
    ),
    ("restrictions", 1108): (
        Cure.NONE,
        "this chain forbids sends between users now, so the memo carrier cannot be used: use carrier = kv, or wait",
    ),
    ("inference", 1120): (Cure.NONE, "the task is not on chain: check chain.chain_id and the run's manifest"),
    ("inference", 1122): (
        Cure.NONE,
        "somebody else has assigned the task: `gonka-trainer task show ID` says to whom",
    ),
    ("inference", 1139): (
        Cure.NONE,
        "the author is on no allow list for training: ask governance to add it, or use a manifest with carrier = memo",
    ),
    ("authz", 2): (
        Cure.NONE,
        "the participant has not granted this message to the key, or not any more: see `gonka-trainer keys grants`",
    ),
    ("authz", 6): (
        Cure.NONE,
        "the participant's grant has expired: `gonka-trainer keys grants` shows how to renew it",
    ),
}
_UNKNOWN: Final = (Cure.RETRY, "this code is not known here: see the chain node's log")
_IN_MESSAGE: Final = b"failed to execute message"
_SPENT: Final = frozenset({("sdk", 11), ("sdk", 18), ("sdk", 30), ("sdk", 42)})
_REQUIRED: Final = re.compile(rb"required: (\d{1,30})[a-zA-Z]")
_PRICE_STEP: Final = Decimal("0.000001")
_SIMULATION_TAIL: Final = re.compile(rb"( \[[^\]\n]{1,200}\.go:\d+\])? with gas used: '\d+'$")
_RAW_ADDRESSES: Final = re.compile(rb"^.{1,200} does not allow to pay fees for .{1,200}?: (.*)$", re.DOTALL)
_ALREADY_USED: Final = b"already used timeout"
_BY_TEXT: Final = (
    (b"incorrect account sequence", "sdk", 32),
    (b"already used timeout", "sdk", 18),
    (b"restricted", "restrictions", 1108),
    (b"fee limit exceeded", "feegrant", 2),
    (b"fee allowance expired", "feegrant", 3),
    (b"message not allowed", "feegrant", 7),
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
    (b"training task already assigned", "inference", 1122),
    (b"training task not found", "inference", 1120),
    (b"task is not queued", "inference", 1122),  # the module's word for it when it is assigned a second time
    (b"authorization not found", "authz", 2),
    (b"authorization expired", "authz", 6),
)
_MAX_SEQUENCE: Final = (1 << 63) - 1  # no account gets so far: a node may say anything
_EXPECTED: Final = re.compile(rb"expected (\d{1,20}), got (\d{1,20})")


def from_text(details: str) -> Refusal:
    """Return the refusal that a simulation's error text tells of."""
    log = details.encode("utf-8", "surrogatepass")
    for phrase, codespace, code in _BY_TEXT:
        if phrase in log:
            return Refusal(codespace, code, log)
    return Refusal("", 0, log)


def cure(refusal: Refusal) -> Cure:
    """Return what can be done about it."""
    if (refusal.codespace, refusal.code) == ("sdk", 18) and _ALREADY_USED in refusal.log:
        return Cure.USED
    return _CURES.get((refusal.codespace, refusal.code), _UNKNOWN)[0]


def spent(refusal: Refusal) -> bool:
    """Whether a transaction that failed so in a block can never succeed in a later one by the same bytes.

    What fails in its messages has used up its timestamp or sequence. What fails in the checks before them (a fee grant
    was revoked, the balance is gone) has not: anybody may hand the same bytes over again until their timeout.
    """
    if refusal.log.startswith(_IN_MESSAGE) or (refusal.codespace, refusal.code) in _SPENT:
        return True
    found = _EXPECTED.search(refusal.log)
    return found is not None and int(found.group(2)) < int(found.group(1))


def expected_sequence(refusal: Refusal) -> int | None:
    """Return the sequence that the node says it expects, if it says one."""
    found = _EXPECTED.search(refusal.log)
    sequence = int(found.group(1)) if found else _MAX_SEQUENCE
    return sequence if sequence < _MAX_SEQUENCE else None


def as_error(refusal: Refusal, sender: str, gas_limit: int = 0) -> ChainError:
    """Return the error for a person; `sender` is the signing account's address as text.

    With the transaction's gas limit, the remedy of too low a fee names the price that would have been enough.
    """
    remedy = _CURES.get((refusal.codespace, refusal.code), _UNKNOWN)[1]
    required = _REQUIRED.search(refusal.log)
    if (refusal.codespace, refusal.code) == ("sdk", 13) and required and gas_limit:
        price = (Decimal(int(required.group(1))) / gas_limit).quantize(_PRICE_STEP, ROUND_UP).normalize()
        remedy = f"raise chain.gas_price to at least {price:f}"
    said = printable(_readable(refusal.log)) or "no text"
    name = f"{refusal.codespace} {refusal.code}" if refusal.code else "in simulation"
    return ChainError(f"the chain refuses a transaction of {sender} ({name}): {said}", remedy)


def _readable(log: bytes) -> bytes:
    """Return the log without source lines, and without the raw address bytes that a missing allowance's text has."""
    log = _SIMULATION_TAIL.sub(b"", log)
    return _RAW_ADDRESSES.sub(rb"the fee granter does not allow to pay fees for it: \1", log)
