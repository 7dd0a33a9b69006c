"""Following the chain: every block in order, none skipped, and where the tip is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Block, Chain
from gonka_trainer.types import Digest, Height

_LOG: Final = logging.getLogger(__name__)
_BATCH_BLOCKS: Final = 16
_MAX_WAIT_SECONDS: Final = 15.0
_SAY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Tip:
    """All blocks up to the node's latest one were given out."""

    height: Height


class Progress:
    """Says every few seconds how far a longer catching up is. `clock` is in seconds."""

    def __init__(self, first: int, latest: int, clock: Callable[[], float]) -> None:
        self._first = first
        self._total = latest - first + 1
        self._clock = clock
        self._begun = self._said = clock()

    def at(self, height: int) -> None:
        """Note that all blocks up to the height were given out."""
        now, done = self._clock(), height - self._first + 1
        if self._total <= _BATCH_BLOCKS or now - self._said < _SAY_SECONDS:
            return
        self._said = now
        rate = done / (now - self._begun)
        left = shown_seconds((self._total - done) / rate)
        _LOG.info("catching up: %d of %d blocks, %.3g a second, %s left", done, self._total, rate, left)

    def end(self) -> None:
        """Note that all blocks were given out."""
        if self._said > self._begun:
            _LOG.info("caught up: %d blocks in %s", self._total, shown_seconds(self._clock() - self._begun))


def shown_seconds(seconds: float) -> str:
    """Return a time span for people, in its largest unit."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


class Follower:
    """Yields the blocks from a height on, then each new one as it comes; waits for a node that does not answer."""

    def __init__(self, chain: Chain, poll_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._chain = chain
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._last_hash: Digest | None = None

    async def follow(self, start: Height, last_hash: Digest | None = None) -> AsyncIterator[Block | Tip]:
        """Yield `Block`s from `start` on without end, and a `Tip` whenever there is no further one yet.

        `last_hash` is of the block before `start`, if this host knows it.
        """
        self._last_hash = last_hash
        height, wait = start, self._poll_seconds
        while True:
            try:
                async for block in self._up_to_tip(height):
                    height = Height(block.height + 1)
                    yield block
                wait = self._poll_seconds
                if height > start:
                    yield Tip(Height(height - 1))
            except ChainUnavailableError as error:
                _LOG.warning("chain: %s; asking for block %d again in %.1f s", error.what, height, wait)
                wait = min(2 * wait, _MAX_WAIT_SECONDS)
            await asyncio.sleep(wait)

    async def _up_to_tip(self, start: Height) -> AsyncIterator[Block]:
        latest = (await self._chain.info()).height
        progress = Progress(start, latest, self._clock)
        first, size = int(start), 1  # the first block alone: it may be where a verified node's trust begins
        while first <= latest:
            async for block in self._batch(range(first, min(first + size, latest + 1))):
                yield block
                progress.at(block.height)
            first, size = first + size, _BATCH_BLOCKS
        progress.end()

    async def _batch(self, heights: range) -> AsyncIterator[Block]:
        """Yield the blocks in order, asked for at once; up to the first that cannot be had, whose error is raised."""
        asked = (self._chain.block(Height(height)) for height in heights)
        for found in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(found, BaseException):
                raise found
            self._check_link(found)
            yield found

    def _check_link(self, block: Block) -> None:
        if self._last_hash is not None and block.previous_hash != self._last_hash:
            raise ChainError(
                f"block {block.height} does not follow the block before it as this host read it",
                "the node changed its history or is another chain's: use a node that you trust and start again",
            )
        self._last_hash = block.block_hash
