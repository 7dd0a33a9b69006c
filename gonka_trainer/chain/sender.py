"""Getting a transaction into a block, once, through crashes, restarts and refusals.

A transaction is written to the sent log before it is handed to the node. Whether it got into a block is read from the
blocks themselves, by position, until one comes that is later than its timeout: then it never can be, and the same
records go into a new transaction. Times are the chain's: this machine's clock plays no part.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.refusals import Cure, Refusal, as_error, cure, from_text, spent
from gonka_trainer.chain.sentlog import Pending, SentLog
from gonka_trainer.chain.sequences import Sequences, Style
from gonka_trainer.chain.service import Account
from gonka_trainer.chain.transactions import (
    Fee,
    Message,
    Ordering,
    Signer,
    build,
    build_to_simulate,
    exec_message,
    gas_limit,
)
from gonka_trainer.chain.transport import NodeAnswerError
from gonka_trainer.chain.watcher import Included, Watcher
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import NodeInfo, Receipt
from gonka_trainer.types import Address, Digest

_LOG = logging.getLogger(__name__)

_GAS_GUESS: Final = 200_000  # a message, for the fee that the simulation carries
_GAS_STEP: Final = 1.5
_MAX_GAS: Final = (1 << 63) - 1  # what a transaction can say: the node may answer anything
_MAX_TRIES: Final = 4
_MAX_RESEQUENCES: Final = 20
_LATER_POLLS: Final = 20
_USED_BLOCKS: Final = 2  # a timestamp can be in use by our own bytes that are in no block yet
_TIDY_NS: Final = 60 * 1_000_000_000  # of block time


@dataclass(frozen=True, slots=True)
class SendSettings:
    """How transactions are paid for and ordered.

    `gas_price` is in `denom` for a unit of gas, 0 for fees without coins where the chain takes them; `fee_cap` is the
    most that one transaction may cost; `granter` (bech32 text, "" for none) pays by a fee allowance. Unordered
    transactions time out `timeout_seconds` after the latest block's time (the chain allows ten minutes), ordered ones
    `timeout_blocks` after the latest block.
    """

    denom: str = "ngonka"
    gas_price: Decimal = Decimal(0)
    gas_factor: float = 1.4
    fee_cap: int = 100_000_000
    granter: str = ""
    ordered: bool = False
    timeout_seconds: int = 60
    timeout_blocks: int = 20
    poll_seconds: float = 0.5


@dataclass(frozen=True, slots=True)
class _Load:
    """What is to be delivered: the messages as they are signed, and how many an author wrote."""

    digest: Digest
    messages: tuple[Message, ...]
    memo: bytes
    count: int


@dataclass(frozen=True, slots=True)
class _Effort:
    """What was learnt from tries that failed."""

    gas_factor: float
    failures: int = 0
    resequences: int = 0


class Sender:
    """Sends transactions of one key. Several processes may share the key when transactions are unordered.

    With `acts_for` the messages are that account's, which has granted them to the key (x/authz): each transaction is
    one MsgExec around them. Who writes messages names `author_text` as their creator.
    """

    def __init__(
        self,
        chain: ChainClient,
        key: AccountKey,
        log: SentLog,
        settings: SendSettings,
        jitter: Callable[[int], int] = secrets.randbelow,
        acts_for: Address | None = None,
    ) -> None:
        self.address = key.address
        self.text = encode_address(key.address, chain.prefix)
        self.author = key.address if acts_for is None else acts_for
        self.author_text = encode_address(self.author, chain.prefix)
        self.settings = settings
        self._chain = chain
        self._key = key
        self._log = log
        self._tidied_ns = 0
        self._watcher = Watcher(chain, settings.poll_seconds)
        style = Style(settings.ordered, settings.timeout_seconds, settings.timeout_blocks)
        self._sequences = Sequences(style, self._account, jitter)

    @property
    def by_grant(self) -> bool:
        """Whether the messages are another account's, which has granted them to the key."""
        return self.author != self.address

    async def deliver(self, digest: Digest, messages: Sequence[Message], memo: bytes = b"") -> tuple[Receipt, bytes]:
        """Bring the messages into a block with code 0; return the receipt and the result's data.

        `digest` names the contents: after a restart the same digest finds what was sent before. Runs until it succeeds
        or is cancelled; ChainError when sending again cannot help. A cancelled one stays in the sent log. The data is
        read by `transactions.responses`, whether the messages were in a MsgExec or not. The receipt's fee is that of
        all tries that got into a block.
        """
        signed = [exec_message(self.text, messages)] if self.by_grant else messages
        load = _Load(digest, tuple(signed), memo, len(messages))
        effort, paid = _Effort(self.settings.gas_factor), 0
        while True:
            outcome, pending = await self._attempt(load, effort)
            paid += pending.fee if isinstance(outcome, Included) and pending is not None else 0
            if isinstance(outcome, Included) and outcome.result.code == 0 and pending is not None:
                self._log.remove(digest)
                receipt = Receipt(pending.tx_hash, outcome.height, paid, outcome.result.gas_used)
                return receipt, outcome.result.data
            if outcome is None:
                self._log.remove(digest)
                _LOG.warning("a transaction of %s got into no block before its timeout; sending again", self.text)
                continue
            refusal = self._settle(digest, outcome, pending)
            effort = await self._learn(refusal, effort, 0 if pending is None else gas_limit(pending.transaction))

    def _settle(self, digest: Digest, outcome: Included | Refusal, pending: Pending | None) -> Refusal:
        """Return why it failed. One whose bytes may still succeed in a later block stays in the sent log."""
        if isinstance(outcome, Refusal):
            self._log.remove(digest)
            return outcome
        refusal = Refusal(outcome.result.codespace, outcome.result.code, outcome.result.log)
        if pending is None or spent(refusal):
            self._log.remove(digest)
        else:
            self._log.put(replace(pending, from_height=outcome.height + 1))
        _LOG.info("a transaction of %s failed in block %d", self.text, outcome.height)
        return refusal

    async def _attempt(self, load: _Load, effort: _Effort) -> tuple[Included | Refusal | None, Pending | None]:
        """Send once, or see through what was sent before: in a block, refused, or (None) too late for any block."""
        former = self._log.get(load.digest)
        if former is not None:
            await self._watcher.broadcast_again(former)
            return await self._watcher.outcome(former), former
        async with self._sequences.lock:
            try:
                pending, ordering = await self._watcher.patiently(lambda: self._prepare(load, effort))
            except NodeAnswerError as error:
                return self._refused(from_text(error.details)), None
            self._log.put(pending)
            refusal = await self._broadcast(pending)
            if refusal is not None:
                return self._refused(refusal), pending
            self._sequences.accepted(ordering)
        return await self._watcher.outcome(pending), pending

    def _refused(self, refusal: Refusal) -> Refusal:
        if cure(refusal) is Cure.RESEQUENCE:
            self._sequences.mismatched(refusal)
        return refusal

    # -- building ---------------------------------------------------------------------------------------------------

    async def _prepare(self, load: _Load, effort: _Effort) -> tuple[Pending, Ordering]:
        info = await self._chain.checked_info()
        if info.syncing:
            raise ChainUnavailableError(f"the chain node is syncing, at height {info.height}", "wait until it is done")
        self._tidy(info)
        ordering = await self._sequences.next(info)
        signer = Signer(self._key, info.chain_id, await self._sequences.number())
        guess = self._fee(_GAS_GUESS * load.count)
        gas = await self._chain.tx.simulate(build_to_simulate(load.messages, load.memo, guess, ordering, signer))
        fee = self._fee(min(math.ceil(gas * effort.gas_factor), _MAX_GAS))
        if fee.amount > self.settings.fee_cap:
            raise ChainError(
                f"a transaction would cost {fee.amount} {fee.denom}, more than chain.fee_cap = {self.settings.fee_cap}",
                "raise chain.fee_cap, or lower chain.gas_price or chain.gas_factor",
            )
        raw = build(load.messages, load.memo, fee, ordering, signer)
        until = (ordering.timeout_ns, ordering.timeout_height)
        return Pending(load.digest, raw, info.height + 1, *until, fee.amount), ordering

    def _tidy(self, info: NodeInfo) -> None:
        """Now and then, clear what earlier processes left behind."""
        if info.time_ns >= self._tidied_ns + _TIDY_NS:
            self._tidied_ns = info.time_ns
            self._log.expire(info.time_ns, info.height)

    def _fee(self, gas: int) -> Fee:
        amount = math.ceil(gas * self.settings.gas_price)
        return Fee(gas, amount, self.settings.denom, self.settings.granter)

    async def _account(self) -> Account:
        return await self._chain.tx.account(self.address)

    # -- handing over -----------------------------------------------------------------------------------------------

    async def _broadcast(self, pending: Pending) -> Refusal | None:
        """Hand a new transaction over; a refusal by CheckTx means that it is in no mempool and no block."""
        try:
            answer = await self._chain.tx.broadcast(pending.transaction)
        except ChainUnavailableError as error:  # it may have arrived all the same
            _LOG.warning("handing over a transaction: %s", error.what)
            await self._watcher.broadcast_again(pending)
            return None
        refusal = Refusal(answer.codespace, answer.code, answer.log)
        return None if refusal.code == 0 or await self._is_there(pending, refusal) else refusal

    async def _is_there(self, pending: Pending, refusal: Refusal) -> bool:
        """Whether the refused transaction is at the node already: these bytes, not just their timestamp or sequence."""
        match cure(refusal):
            case Cure.PENDING:
                return True
            case Cure.USED:
                return await self._watcher.is_there(pending, _USED_BLOCKS)
            case Cure.RESEQUENCE:
                return await self._watcher.is_there(pending, 0)
        return False

    # -- learning ---------------------------------------------------------------------------------------------------

    async def _learn(self, refusal: Refusal, effort: _Effort, gas: int) -> _Effort:
        """Return what to do better; ChainError when nothing can be. `gas` is the limit that the refused one had."""
        way, error = cure(refusal), as_error(refusal, self.text, gas)
        if way is Cure.NONE or effort.failures >= _MAX_TRIES or effort.resequences >= _MAX_RESEQUENCES:
            raise error
        _LOG.warning("%s (%s)", error.what, way.value)
        if way is Cure.RESEQUENCE:
            return replace(effort, resequences=effort.resequences + 1)
        if way is Cure.LATER:
            await asyncio.sleep(self.settings.poll_seconds * _LATER_POLLS)
            return effort
        self._sequences.forget()
        if way is Cure.MORE_GAS:
            return replace(effort, gas_factor=effort.gas_factor * _GAS_STEP, failures=effort.failures + 1)
        await asyncio.sleep(self.settings.poll_seconds * 2**effort.failures)
        return replace(effort, failures=effort.failures + 1)
