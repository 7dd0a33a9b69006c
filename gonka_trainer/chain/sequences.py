"""How a key's next transaction is kept from being replayed: timestamps (unordered) or sequences (ordered)."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from gonka_trainer.chain.refusals import Refusal, expected_sequence
from gonka_trainer.chain.service import Account
from gonka_trainer.chain.transactions import Ordering
from gonka_trainer.ports import NodeInfo

_NANOSECONDS: Final = 1_000_000_000
_JITTER_NS: Final = _NANOSECONDS  # two processes with one key must not choose the same timestamp
_REMEMBERED: Final = 4096  # timestamps given out: more than one process sends within a second of block time


class AskAccount(Protocol):
    """Asks the chain for the account of the key."""

    async def __call__(self) -> Account:
        """Return number and sequence as of the last block."""


@dataclass(frozen=True, slots=True)
class Style:
    """`ordered`, and how far ahead a transaction times out: seconds of block time, or blocks when it is ordered."""

    ordered: bool
    timeout_seconds: int
    timeout_blocks: int


class Sequences:
    """Gives out orderings for one key. Hold `lock` from `next` until the node has answered the broadcast.

    Unordered timestamps are the latest block's time, plus the timeout, plus up to a second at random: this machine's
    clock plays no part, and other processes may share the key. Ordered sequences run ahead of what is committed while
    some are pending.
    """

    def __init__(self, style: Style, account: AskAccount, jitter: Callable[[int], int] = secrets.randbelow) -> None:
        self.lock = asyncio.Lock()
        self._style = style
        self._account = account
        self._jitter = jitter
        self._number: int | None = None
        self._next = 0
        self._forced: int | None = None
        self._given: deque[int] = deque(maxlen=_REMEMBERED)

    async def number(self) -> int:
        """Return the account's number; asked once, until `forget`."""
        if self._number is None:
            self._number = (await self._account()).number
        return self._number

    async def next(self, info: NodeInfo) -> Ordering:
        """Return the ordering of a transaction that is made now."""
        if not self._style.ordered:
            return Ordering(timeout_ns=self._timestamp(info.time_ns))
        account = await self._account()
        self._number = account.number
        sequence = max(account.sequence, self._next) if self._forced is None else self._forced
        return Ordering(sequence=sequence, timeout_height=info.height + self._style.timeout_blocks)

    def _timestamp(self, block_time_ns: int) -> int:
        moment = block_time_ns + self._style.timeout_seconds * _NANOSECONDS + self._jitter(_JITTER_NS)
        while moment in self._given:
            moment += 1
        self._given.append(moment)
        return moment

    def accepted(self, ordering: Ordering) -> None:
        """Count a transaction that the node has taken."""
        self._next, self._forced = ordering.sequence + 1, None

    def mismatched(self, refusal: Refusal) -> None:
        """Go on from the sequence that the node expects, or from the committed one when it does not say."""
        self._next, self._forced = 0, expected_sequence(refusal)

    def forget(self) -> None:
        """Ask for the account's number again."""
        self._number = None
