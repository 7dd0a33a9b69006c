"""A delegate or revoke record signed where there is no network, and brought on chain later from elsewhere.

The file holds one ordered transaction: an unordered one would have to be in a block within ten minutes.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keyfiles import write_secret
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.refusals import Refusal, as_error
from gonka_trainer.chain.runlog import kv_key
from gonka_trainer.chain.sentlog import Pending
from gonka_trainer.chain.service import Account
from gonka_trainer.chain.transactions import Fee, Message, Ordering, Signer, build, kv_message, send_message, tx_hash
from gonka_trainer.chain.watcher import Included, Watcher
from gonka_trainer.errors import ChainError, ConfigError
from gonka_trainer.ports import NodeInfo
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.round.records import Delegate, Revoke, to_text
from gonka_trainer.types import sha256

FORMAT: Final = "gonka-trainer-transaction/1"
_MAX_BYTES: Final = 65536
_FIELDS: Final = {
    "format": str,
    "chain_id": str,
    "signer": str,
    "account_number": int,
    "sequence": int,
    "timeout_height": int,
    "fee": int,
    "says": str,
    "transaction": str,
}


@dataclass(frozen=True)
class Slip:
    """A signed transaction on file: `says` is what it does, for people; `timeout_height` 0 is no limit."""

    chain_id: str
    signer: str
    account_number: int
    sequence: int
    timeout_height: int
    fee: int
    says: str
    transaction: bytes


@dataclass(frozen=True)
class Terms:
    """What a machine without network cannot look up: who signs as what, what it costs, and (on kv) the run's task."""

    prefix: str
    account_number: int
    sequence: int
    timeout_height: int
    fee: Fee
    task_id: int = 0


def sign_record(key: AccountKey, run: Accepted, record: Delegate | Revoke, terms: Terms) -> Slip:
    """Return the signed transaction that carries the record over the run's carrier."""
    manifest, signer = run.manifest, encode_address(key.address, terms.prefix)
    if manifest.carrier == "kv" and not terms.task_id:
        raise ConfigError(
            "this run's carrier is kv, whose records name a task", "give --task ID (`task list` shows it)"
        )
    message, memo = _message(run, record, signer, terms)
    ordering = Ordering(terms.sequence, terms.timeout_height)
    whole = build([message], memo, terms.fee, ordering, Signer(key, manifest.chain_id, terms.account_number))
    verb = "lets" if isinstance(record, Delegate) else "no longer lets"
    named = encode_address(record.key, terms.prefix)
    says = f"{signer} {verb} {named} speak for it in run {manifest.name}, written at height {record.written}"
    numbers = terms.account_number, terms.sequence, terms.timeout_height, terms.fee.amount
    return Slip(manifest.chain_id, signer, *numbers, says, whole)


def _message(run: Accepted, record: Delegate | Revoke, signer: str, terms: Terms) -> tuple[Message, bytes]:
    if run.manifest.carrier == "kv":
        return kv_message(signer, terms.task_id, kv_key(record, signer), to_text(record)), b""
    recipient = encode_address(topic(run_id(run.manifest.chain_id, run.hash)), terms.prefix)
    return send_message(signer, recipient, 1, terms.fee.denom), to_text(record).encode()


def write_slip(path: Path, slip: Slip) -> None:
    """Write it to a new file; ConfigError when that exists."""
    values = {name: getattr(slip, name, FORMAT) for name in _FIELDS}
    values["transaction"] = base64.b64encode(slip.transaction).decode()
    write_secret(path, json.dumps(values, indent=1).encode() + b"\n")


def read_slip(path: Path) -> Slip:
    """Read such a file; ConfigError when it is none."""
    try:
        content = path.read_bytes()
        values = json.loads(content) if len(content) <= _MAX_BYTES else None
        if not isinstance(values, dict) or values.keys() != _FIELDS.keys() or values.pop("format") != FORMAT:
            raise ValueError("other fields")
        if any(type(value) is not _FIELDS[name] for name, value in values.items()):
            raise ValueError("other values")
        values["transaction"] = base64.b64decode(values["transaction"], validate=True)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", "name a file that `keys delegate --offline` wrote") from error
    except (ValueError, RecursionError, binascii.Error) as error:
        raise ConfigError(f"{path} holds no signed transaction", "name what `keys delegate --offline` wrote") from error
    return Slip(**values)


async def broadcast(client: ChainClient, slip: Slip, wait_blocks: int, poll_seconds: float = 0.5) -> Included:
    """Hand it to the node and wait until it is in a block; ChainError says why it is not, or failed there."""
    info = await client.info()
    if info.chain_id != slip.chain_id:
        raise ChainError(f"signed for chain {slip.chain_id}, the node is of {info.chain_id}", "use that chain's node")
    there = await client.tx.find_transaction(tx_hash(slip.transaction))
    if there is not None and there.code == 0:
        raise ChainError(f"it is in block {there.height} already, with success", "nothing is left to do")
    _check(slip, await client.tx.account(parse_address(slip.signer, client.prefix, "signer")), info)
    answer = await client.tx.broadcast(slip.transaction)
    if answer.code not in {0, 19}:  # 19: the node has these very bytes
        raise _refused(Refusal(answer.codespace, answer.code, answer.log), slip)
    found = await _in_block(client, slip, info.height, wait_blocks, poll_seconds)
    if found.result.code != 0:
        raise _refused(Refusal(found.result.codespace, found.result.code, found.result.log), slip)
    return found


def _check(slip: Slip, account: Account, info: NodeInfo) -> None:
    """Say before sending what CheckTx would only hint at."""
    again = f"sign again with --account-number {account.number} --sequence {account.sequence}"
    if slip.account_number != account.number:
        raise ChainError(f"{slip.signer} has account number {account.number}, signed was {slip.account_number}", again)
    if slip.sequence < account.sequence:
        what = f"sequence {slip.sequence} of {slip.signer} is used: another transaction of it went first, or this one"
        raise ChainError(what, f"look at the chain; {again} if this one did not")
    if slip.sequence > account.sequence:
        what = f"{slip.signer} is at sequence {account.sequence}, signed was {slip.sequence}"
        raise ChainError(what, f"send the transactions before it first, or {again}")
    if slip.timeout_height and info.height >= slip.timeout_height:
        raise ChainError(f"it was good until block {slip.timeout_height}, the chain is at {info.height}", again)


def _refused(refusal: Refusal, slip: Slip) -> ChainError:
    error = as_error(refusal, slip.signer)
    if refusal.codespace == "sdk" and refusal.code == 13:
        return ChainError(error.what, "sign again with a larger --fee (its gas is --gas)")
    if refusal.codespace == "sdk" and refusal.code == 11:
        return ChainError(error.what, "sign again with more --gas (one sequence higher if it got into a block)")
    if refusal.codespace == "sdk" and refusal.code == 4:
        return ChainError(error.what, "sign again with the right --account-number, and the manifest of this chain")
    return error


async def _in_block(client: ChainClient, slip: Slip, since: int, blocks: int, poll_seconds: float) -> Included:
    last = min(since + blocks, slip.timeout_height or since + blocks)
    digest = sha256(slip.transaction)
    pending = Pending(digest, slip.transaction, since + 1, 0, last, slip.fee)
    found = await Watcher(client, poll_seconds).outcome(pending)
    if found is None:
        raise ChainError(f"it was taken, and is in no block up to {last}", "broadcast the file again")
    return found
