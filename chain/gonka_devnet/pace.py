"""When the next block is made: in time, at once when asked for, or not at all."""

from __future__ import annotations

import asyncio
import time
from enum import Enum

from gonka_devnet.faults import Faults

LULL, MOST_GATHERING = 0.1, 0.5
LONGEST_PAUSE_SECONDS = 1.0


class Turn(Enum):
    """What came of waiting for a block's turn: it is due, one was asked for, or something else changed."""

    DUE = "due"
    ASKED = "asked"
    NOT_YET = "not yet"


class Pace:
    """Waits for each block's turn. All calls come from one event loop."""

    def __init__(self, block_seconds: float, faults: Faults) -> None:
        self.block_seconds = block_seconds
        self.stopped = False
        self.asked = 0
        self._faults = faults
        self._woken = asyncio.Event()
        self._arrived = 0.0

    def stop(self) -> None:
        """End all waiting."""
        self.stopped = True
        self._woken.set()

    def wake(self) -> None:
        """Look anew at what is switched on."""
        self._woken.set()

    def ask(self, count: int) -> None:
        """Want blocks at once."""
        self.asked += count
        self._woken.set()

    def arrived(self) -> None:
        """Note that a transaction came."""
        self._arrived = time.monotonic()

    async def turn(self, due: float) -> Turn:
        """Wait until a block may be made or something changed; `due` is in seconds of the monotonic clock."""
        if self._faults.away:
            await self._pause(time.monotonic() + LONGEST_PAUSE_SECONDS)
        elif self.asked:
            self.asked -= 1
            return Turn.ASKED
        elif not self._faults.making:
            await self._pause(time.monotonic() + LONGEST_PAUSE_SECONDS)
        elif time.monotonic() < due:
            await self._pause(due)
        else:
            return await self._gather(due)
        return Turn.NOT_YET

    async def _pause(self, until: float) -> None:
        """Sleep, or wake up when something changed; at least once round the loop."""
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0.001)):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    async def _gather(self, due: float) -> Turn:
        """Wait for a lull while transactions come, so that no burst is cut; the next block is the sooner for it."""
        latest = due + MOST_GATHERING * self.block_seconds
        while not self.stopped and self._faults.making:
            quiet = self._arrived + LULL * self.block_seconds
            if time.monotonic() >= min(quiet, latest):
                return Turn.DUE
            await self._pause(min(quiet, latest))
        return Turn.NOT_YET
