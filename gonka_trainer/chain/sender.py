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
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.refusals import Cure, Refusal, as_error, cure, expected_sequence, from_text
from gonka_trainer.chain.sentlog import Pending, SentLog
from gonka_trainer.chain.transactions import Fee, Message, Ordering, Signer, build
from gonka_trainer.chain.transport import NodeAnswerError
from gonka_trainer.chain.watcher import Included, Watcher
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import NodeInfo, Receipt
from gonka_trainer.types import Digest

_LOG = logging.getLogger(__name__)

_NANOSECONDS: Final = 1_000_000_000
_JITTER_NS: Final = _NANOSECONDS  # two processes with one key must not choose the same timestamp
_GAS_GUESS: Final = 200_000  # a message, for the fee that the simulation carries
_GAS_STEP: Final = 1.5
_MAX_TRIES: Final = 4
_MAX_RESEQUENCES: Final = 20
_MAX_PAUSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class SendSettings:
    """How transactions are paid for and ordered.

    `gas_price` is in `denom` for a unit of gas; `fee_cap` is the most that one transaction may cost; `granter` (bech32
    text, "" for none) pays by a fee allowance. Unordered transactions time out `timeout_seconds` after the latest
    block's time (the chain allows ten minutes), ordered ones `timeout_blocks` after the latest block.
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
class _Effort:
    """What was learnt from tries that failed."""

    gas_factor: float
    failures: int = 0
    resequences: int = 0


@dataclass(slots=True)
class _Sequence:
    """The next sequence of ordered transactions, ahead of what is committed while some are pending."""

    next: int = 0
    used: int = 0
    forced: int | None = None
    number: int | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sender:
    """Sends transactions of one key. Several processes may share the key when transactions are unordered."""

    def __init__(
        self,
        chain: ChainClient,
        key: AccountKey,
        log: SentLog,
        settings: SendSettings,
        jitter: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self.address = key.address
        self.text = encode_address(key.address, chain.prefix)
        self.settings = settings
        self._chain = chain
        self._key = key
        self._log = log
        self._jitter = jitter
        self._watcher = Watcher(chain, settings.poll_seconds)
        self._sequence = _Sequence()

    async def deliver(self, digest: Digest, messages: Sequence[Message], memo: bytes = b"") -> tuple[Receipt, bytes]:
        """Bring the messages into a block with code 0; return the receipt and the result's data.

        `digest` names the contents: after a restart the same digest finds what was sent before. Runs until it succeeds
        or is cancelled; ChainError when sending again cannot help. A cancelled one stays in the sent log.
        """
        effort = _Effort(self.settings.gas_factor)
        while True:
            outcome, pending = await self._attempt(digest, messages, memo, effort)
            if isinstance(outcome, Included):
                if outcome.result.code == 0 and pending is not None:
                    self._log.remove(digest)
                    receipt = Receipt(pending.tx_hash, outcome.height, pending.fee, outcome.result.gas_used)
                    return receipt, outcome.result.data
                outcome = Refusal(outcome.result.codespace, outcome.result.code, outcome.result.log)
            self._log.remove(digest)
            if outcome is None:
                _LOG.warning("a transaction of %s got into no block before its timeout; sending again", self.text)
                continue
            effort = await self._learn(outcome, effort)

    async def _attempt(
        self, digest: Digest, messages: Sequence[Message], memo: bytes, effort: _Effort
    ) -> tuple[Included | Refusal | None, Pending | None]:
        """Send once, or see through what was sent before: in a block, refused, or (None) too late for any block."""
        pending = self._log.get(digest)
        if pending is not None:
            await self._watcher.broadcast_again(pending)
            return await self._watcher.outcome(pending), pending
        async with self._sequence.lock:
            try:
                pending = await self._watcher.patiently(lambda: self._prepare(digest, messages, memo, effort))
            except NodeAnswerError as error:
                return from_text(error.details), None
            self._log.put(pending)
            refusal = await self._broadcast(pending)
        if refusal is not None:
            return refusal, pending
        return await self._watcher.outcome(pending), pending

    # -- building ---------------------------------------------------------------------------------------------------

    async def _prepare(self, digest: Digest, messages: Sequence[Message], memo: bytes, effort: _Effort) -> Pending:
        info = await self._chain.info()
        if info.syncing:
            raise ChainUnavailableError(f"the chain node is syncing, at height {info.height}", "wait until it is done")
        ordering = await self._ordering(info)
        signer = Signer(self._key, info.chain_id, await self._account_number())
        guess = self._fee(_GAS_GUESS * len(messages))
        gas = await self._chain.tx.simulate(build(messages, memo, guess, ordering, signer))
        fee = self._fee(math.ceil(gas * effort.gas_factor))
        if fee.amount > self.settings.fee_cap:
            raise ChainError(
                f"a transaction would cost {fee.amount} {fee.denom}, more than chain.fee_cap = {self.settings.fee_cap}",
                "raise chain.fee_cap, or lower chain.gas_price or chain.gas_factor",
            )
        transaction = build(messages, memo, fee, ordering, signer)
        return Pending(digest, transaction, info.height + 1, ordering.timeout_ns, ordering.timeout_height, fee.amount)

    def _fee(self, gas: int) -> Fee:
        amount = math.ceil(gas * self.settings.gas_price)
        return Fee(gas, amount, self.settings.denom, self.settings.granter)

    async def _account_number(self) -> int:
        if self._sequence.number is None:
            self._sequence.number = (await self._chain.tx.account(self.address)).number
        return self._sequence.number

    async def _ordering(self, info: NodeInfo) -> Ordering:
        if not self.settings.ordered:
            ahead = self.settings.timeout_seconds * _NANOSECONDS + self._jitter(_JITTER_NS)
            return Ordering(timeout_ns=info.time_ns + ahead)
        account = await self._chain.tx.account(self.address)
        self._sequence.number = account.number
        wanted = max(account.sequence, self._sequence.next)
        self._sequence.used = wanted if self._sequence.forced is None else self._sequence.forced
        return Ordering(sequence=self._sequence.used, timeout_height=info.height + self.settings.timeout_blocks)

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
        if refusal.code == 0 or await self._is_there(pending, refusal):
            self._sequence.next, self._sequence.forced = self._sequence.used + 1, None
            return None
        return refusal

    async def _is_there(self, pending: Pending, refusal: Refusal) -> bool:
        """Whether the refused transaction is at the node already: these bytes, not just their timestamp or sequence."""
        if cure(refusal) is Cure.PENDING:
            return True
        if cure(refusal) not in {Cure.USED, Cure.RESEQUENCE}:
            return False
        return await self._watcher.patiently(lambda: self._chain.tx.find_transaction(pending.tx_hash)) is not None

    # -- learning ---------------------------------------------------------------------------------------------------

    async def _learn(self, refusal: Refusal, effort: _Effort) -> _Effort:
        """Return what to do better; ChainError when nothing can be."""
        way, error = cure(refusal), as_error(refusal, self.text)
        if way is Cure.NONE or effort.failures >= _MAX_TRIES or effort.resequences >= _MAX_RESEQUENCES:
            raise error
        _LOG.warning("%s (%s)", error.what, way.value)
        if way is Cure.RESEQUENCE:
            self._sequence.next, self._sequence.forced = 0, expected_sequence(refusal)
            return replace(effort, resequences=effort.resequences + 1)
        if way is Cure.LATER:
            await asyncio.sleep(_MAX_PAUSE_SECONDS)
            return effort
        self._sequence.number = None
        if way is Cure.MORE_GAS:
            return replace(effort, gas_factor=effort.gas_factor * _GAS_STEP, failures=effort.failures + 1)
        await asyncio.sleep(self.settings.poll_seconds * 2**effort.failures)
        return replace(effort, failures=effort.failures + 1)
