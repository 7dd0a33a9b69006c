"""Following the chain: every block in order, none skipped, and where the tip is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Block, Chain
from gonka_trainer.types import Digest, Height

_LOG: Final = logging.getLogger(__name__)
_BATCH_BLOCKS: Final = 16
_MAX_WAIT_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Tip:
    """All blocks up to the node's latest one were given out."""

    height: Height


class Follower:
    """Yields the blocks from a height on, then each new one as it comes; waits for a node that does not answer."""

    def __init__(self, chain: Chain, poll_seconds: float) -> None:
        self._chain = chain
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
        for first in range(start, latest + 1, _BATCH_BLOCKS):
            heights = range(first, min(first + _BATCH_BLOCKS, latest + 1))
            if latest - start > _BATCH_BLOCKS:
                _LOG.info("catching up: block %d of %d", first, latest)
            for block in await asyncio.gather(*(self._chain.block(Height(h)) for h in heights)):
                self._check_link(block)
                yield block

    def _check_link(self, block: Block) -> None:
        if self._last_hash is not None and block.previous_hash != self._last_hash:
            raise ChainError(
                f"block {block.height} does not follow the block before it as this host read it",
                "the node changed its history or is another chain's: use a node that you trust and start again",
            )
        self._last_hash = block.block_hash
