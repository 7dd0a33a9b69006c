"""Finding out what became of a transaction: from the blocks themselves, by position, never from an index."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from gonka_trainer.chain.blocks import GasTxResult
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sentlog import Pending
from gonka_trainer.chain.transport import GoneError, NodeAnswerError, NotYetError
from gonka_trainer.errors import ChainUnavailableError
from gonka_trainer.ports import Block
from gonka_trainer.types import Height

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

_REBROADCAST_BLOCKS: Final = 3
_MAX_PAUSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Included:
    """A transaction that is in a block, with its result (code 0 or not)."""

    height: Height
    result: GasTxResult


class Watcher:
    """Waits for blocks of one node, patiently: while it does not answer, and while they are not there yet."""

    def __init__(self, chain: ChainClient, poll_seconds: float) -> None:
        self._chain = chain
        self._poll_seconds = poll_seconds

    async def patiently(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Ask until the node answers."""
        pause, warned = self._poll_seconds, False
        while True:
            try:
                return await ask()
            except NotYetError:
                pause = self._poll_seconds
            except ChainUnavailableError as error:
                if not warned:
                    _LOG.warning("waiting for the chain node: %s", error.what)
                warned, pause = True, min(pause * 2, _MAX_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def broadcast_again(self, pending: Pending) -> None:
        """Hand the same bytes over again, in case that the node lost them. Whatever it answers, the blocks decide."""
        try:
            answer = await self.patiently(lambda: self._chain.tx.broadcast(pending.transaction))
        except NodeAnswerError as error:
            _LOG.info("handing a transaction over again: %s", error.what)
        else:
            _LOG.debug("handing %s over again: %s %d", pending.tx_hash, answer.codespace, answer.code)

    async def outcome(self, pending: Pending) -> Included | None:
        """Read blocks until one holds the transaction, or (None) until one shows that none ever will."""
        height, waited = Height(pending.from_height), 0
        while True:
            block = await self._block(height, pending)
            if block is None:
                return await self._by_hash(pending)
            if pending.transaction in block.transactions:
                return Included(height, _result(block, pending))
            if _too_late(block, pending):
                return None
            height, waited = Height(height + 1), waited + 1
            if waited % _REBROADCAST_BLOCKS == 0:
                await self.broadcast_again(pending)

    async def is_there(self, pending: Pending, blocks: int) -> bool:
        """Whether a block up to the tip, or one of so many after it, holds it, or the index knows it."""
        tip = (await self.patiently(self._chain.checked_info)).height
        for height in range(pending.from_height, tip + blocks + 1):
            block = await self._block(Height(height), pending)
            if block is not None and pending.transaction in block.transactions:
                return True
        return await self._by_hash(pending) is not None

    async def _block(self, height: Height, pending: Pending) -> Block | None:
        """Return the block, when it is there; None when the node no longer has it."""
        try:
            return await self.patiently(lambda: self._chain.block(height))
        except GoneError as error:
            _LOG.warning("looking for %s: %s", pending.tx_hash, error.what)
            return None

    async def _by_hash(self, pending: Pending) -> Included | None:
        found = await self.patiently(lambda: self._chain.tx.find_transaction(pending.tx_hash))
        if found is None:
            return None
        result = GasTxResult(found.code, found.codespace, found.log, b"", 0, found.gas_used)
        return Included(Height(found.height), result)


def _too_late(block: Block, pending: Pending) -> bool:
    by_time = pending.timeout_ns != 0 and block.time_ns > pending.timeout_ns
    return by_time or (pending.timeout_height != 0 and block.height >= pending.timeout_height)


def _result(block: Block, pending: Pending) -> GasTxResult:
    """Return its result; of several copies in one block, the one that succeeded, if any did."""
    placed = zip(block.transactions, block.results, strict=True)
    result = min((result for raw, result in placed if raw == pending.transaction), key=lambda found: found.code != 0)
    if isinstance(result, GasTxResult):
        return result
    return GasTxResult(result.code, result.codespace, result.log, result.data, 0, 0)
