"""Whether all nodes tell the same history: block hashes, between nodes and against what was seen before."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from gonka_trainer.chain.endpoints import Endpoints, out_of_time
from gonka_trainer.chain.headers import Header, header_hash
from gonka_trainer.chain.node import ChainNode
from gonka_trainer.chain.transport import GoneError, NotServedError, NotYetError
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Block
from gonka_trainer.types import Digest, Height

_LOG: Final = logging.getLogger(__name__)
_KEPT_HASHES: Final = 256
_BACKLOG_BLOCKS: Final = 4096
_AT_ONCE: Final = 16
_COMPARE_SECONDS: Final = 3.0
_REMEDY: Final = (
    "nothing is done until a person has looked: find out which node is right (docs/nodes.md), "
    "take the other out of chain, and start again"
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A block hash and the node that gave it."""

    block_hash: Digest
    giver: str


class Comparing:
    """The hashes that were seen, and for each node those that it has not been asked about yet (at most 4,096)."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._seen: OrderedDict[int, _Seen] = OrderedDict()
        self._waiting: dict[ChainNode, OrderedDict[int, _Seen]] = {node: OrderedDict() for node in endpoints.nodes}
        self._dropped: set[ChainNode] = set()

    def check(self, node: ChainNode, block: Block) -> None:
        """Compare a block with those around it that were seen; stops everything when it is of another history."""
        for height, found in ((block.height, block.block_hash), (block.height - 1, block.previous_hash)):
            known = self._seen.get(height)
            if known is None or known.block_hash == found:
                continue
            if known.giver == node.name:
                why = f"block {block.height} is not of the history that was read before: the chain was reset"
                raise self._endpoints.stop(node.unsound(why))
            raise self._stop(height, known, found, node)

    def remember(self, node: ChainNode, block: Block) -> None:
        """Take a block's hash as seen."""
        self._seen[block.height] = _Seen(block.block_hash, node.name)
        if len(self._seen) > _KEPT_HASHES:
            self._seen.popitem(last=False)

    async def with_others(self, node: ChainNode, block: Block) -> None:
        """Ask the other nodes for the block's hash; those that do not answer or are behind are asked later."""
        seen = _Seen(block.block_hash, node.name)
        await asyncio.gather(*(self._compare(other, block.height, seen) for other in self._endpoints.others(node)))

    async def catch_up(self) -> None:
        """Ask the nodes that answer for what they were not asked about yet."""
        await asyncio.gather(*(self._catch_up(node) for node in self._endpoints.nodes))

    async def _catch_up(self, node: ChainNode) -> None:
        waiting = self._waiting[node]
        while waiting and not self._endpoints.is_away(node):
            heights = list(waiting)[:_AT_ONCE]
            entries = [(height, waiting.pop(height)) for height in heights]
            await asyncio.gather(*(self._compare(node, height, seen) for height, seen in entries))
            if any(height in waiting for height in heights):  # it is not that far
                return

    async def _compare(self, node: ChainNode, height: int, seen: _Seen) -> None:
        try:
            header = await self._header(node, height)
        except (GoneError, NotServedError):  # it cannot be asked for this one
            return
        if header is None:
            self._later(node, height, seen)
            return
        self._endpoints.same_chain(header.chain_id, node.name)
        if header_hash(header) != seen.block_hash:
            raise self._stop(height, seen, header_hash(header), node)

    async def _header(self, node: ChainNode, height: int) -> Header | None:
        """Return a node's header; None when the node does not answer or is not that far."""
        if self._endpoints.is_away(node):
            return None
        try:
            async with asyncio.timeout(_COMPARE_SECONDS):
                return await node.header(Height(height))
        except NotYetError:
            return None
        except ChainUnavailableError as error:
            self._endpoints.failed(node, error)
        except TimeoutError:
            self._endpoints.failed(node, out_of_time(node))
        return None

    def _later(self, node: ChainNode, height: int, seen: _Seen) -> None:
        waiting = self._waiting[node]
        waiting[height] = seen
        if len(waiting) > _BACKLOG_BLOCKS:
            waiting.popitem(last=False)
            if node not in self._dropped:
                _LOG.warning("chain node %s is so far behind that not all blocks are compared with it", node.name)
            self._dropped.add(node)

    def _stop(self, height: int, seen: _Seen, found: Digest, node: ChainNode) -> ChainError:
        return self.differ(height, seen.giver, seen.block_hash.hex().upper(), node.name, found.hex().upper())

    def differ(self, height: int, first: str, first_says: str, second: str, second_says: str) -> ChainError:
        """Stop everything because two nodes contradict each other, and return the error: who is right is not known."""
        what = f"block {height}: chain node {first} says {first_says}, chain node {second} says {second_says}"
        return self._endpoints.stop(ChainError(what, _REMEDY))
