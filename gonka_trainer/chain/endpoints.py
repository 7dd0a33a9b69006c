"""Which of several chain nodes is asked: the first in the settings' order that answers and has caught up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from google.protobuf.message import Message as WireMessage

from gonka_trainer.chain.node import ChainNode, NodeStatus
from gonka_trainer.chain.transport import Answer, GoneError, NotYetError
from gonka_trainer.errors import ChainError, ChainUnavailableError

_LOG: Final = logging.getLogger(__name__)
_T = TypeVar("_T")

_FIRST_PAUSE_SECONDS: Final = 1.0
_MAX_PAUSE_SECONDS: Final = 60.0
_LAG_BLOCKS: Final = 5
_STILL_SECONDS: Final = 30.0  # some blocks' time
_PROBE_SECONDS: Final = 3.0


@dataclass(slots=True)
class _Standing:
    """How a node has done: `pause_seconds` is 0 while it answers, else `reason` says why; `status` is its last one.

    `risen_at` is when its height last rose, in the clock's seconds.
    """

    pause_seconds: float = 0.0
    reason: str = ""
    again_at: float = 0.0
    status: NodeStatus | None = None
    risen_at: float = 0.0

    @property
    def away(self) -> bool:
        return self.pause_seconds > 0


class Endpoints:
    """The nodes in order of preference. Calls go to the current one, and on to the next when it does not answer.

    `stop` makes every later call fail: what was seen must be looked at by a person before anything else is done.
    """

    def __init__(self, nodes: Sequence[ChainNode], clock: Callable[[], float] = time.monotonic) -> None:
        self.nodes = tuple(nodes)
        self.chain_id: str | None = None
        self._clock = clock
        self._current = self.nodes[0]
        self._standing = {node: _Standing() for node in self.nodes}
        self._stopped: ChainError | None = None

    @property
    def current(self) -> ChainNode:
        """The node that is asked first."""
        return self._current

    def others(self, node: ChainNode) -> tuple[ChainNode, ...]:
        """Return the nodes but this one."""
        return tuple(each for each in self.nodes if each is not node)

    def is_away(self, node: ChainNode) -> bool:
        """Whether the node did not answer when it was last asked."""
        return self._standing[node].away

    def standing(self) -> tuple[tuple[str, str], ...]:
        """Return each node's name, and how it is trusted and does, for people."""
        return tuple((node.name, self._said(node)) for node in self.nodes)

    def _said(self, node: ChainNode) -> str:
        words = ["not one's own: verified" if node.verify else "one's own"]
        words += ["in use"] if node is self._current else []
        words += ["does not answer"] if self.is_away(node) else ["behind"] if self._lags(node) else []
        return ", ".join(words)

    def stop(self, error: ChainError) -> ChainError:
        """Have every later call raise the error, and return it."""
        self._stopped = self._stopped or error
        return error

    def check(self) -> None:
        """Raise what stopped everything, if something did."""
        if self._stopped is not None:
            raise ChainError(self._stopped.what, self._stopped.remedy)

    # -- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, call: Callable[[ChainNode], Awaitable[_T]]) -> _T:
        """Ask the current node, and the others in order when it does not answer or no longer has what is asked for.

        Raises the last node's ChainUnavailableError when none answers, GoneError when no node that answers has it.
        """
        self.check()
        gone: GoneError | None = None
        failure: ChainUnavailableError | None = None
        for node in self._order():
            try:
                found = await call(node)
            except NotYetError:
                raise
            except GoneError as error:
                gone = gone or error
            except ChainUnavailableError as error:
                failure = error
                self.failed(node, error)
            else:
                if gone is None:
                    self._answered(node)
                return found
        raise gone or failure or ChainUnavailableError("no chain node is named")

    async def call(self, path: str, request: WireMessage, answer: type[Answer], height: int | None = None) -> Answer:
        """Call a gRPC method of the first node that answers, as `GrpcNode.call`."""
        return await self.ask(lambda node: node.call(path, request, answer, height))

    def _order(self) -> list[ChainNode]:
        """Return the nodes to try: the current one, then those that answered last, then those that did not."""
        first = self._current
        return sorted(self.nodes, key=lambda node: (self.is_away(node), self._lags(node), node is not first))

    def failed(self, node: ChainNode, error: ChainError) -> None:
        """Note that a node does not answer; it is tried again after a pause that grows."""
        standing = self._standing[node]
        if not standing.away and node is not self._current:
            _LOG.warning("%s; going on without it", error.what)
        standing.reason = error.what
        standing.pause_seconds = min(2 * standing.pause_seconds or _FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS)
        standing.again_at = self._clock() + standing.pause_seconds

    def _answered(self, node: ChainNode) -> None:
        self._standing[node].pause_seconds = 0.0
        self._use(node)

    def _use(self, node: ChainNode) -> None:
        before = self._current
        if node is before:
            return
        self._current = node
        if self.is_away(before):
            _LOG.warning("%s; now asking chain node %s", self._standing[before].reason, node.name)
        else:
            _LOG.info("now asking chain node %s instead of %s", node.name, before.name)

    # -- tending ----------------------------------------------------------------------------------------------------

    async def tend(self, highest: int) -> None:
        """Ask every node whose pause is over for its status, and go back to the first that has caught up.

        `highest` is the height that was seen. ChainError when a node is of another chain.
        """
        now = self._clock()
        due = [node for node in self.nodes if now >= self._standing[node].again_at]
        await asyncio.gather(*(self._probe(node) for node in due))
        usable = [node for node in self.nodes if not self._is_out(node)]
        fit = [node for node in usable if node is self._current or self._height(node) >= highest]
        if fit:
            self._use(fit[0])

    async def _probe(self, node: ChainNode) -> None:
        standing = self._standing[node]
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                status = await node.status()
                if standing.away or standing.status is None:  # gRPC may be down, or of another chain, by itself
                    self.same_chain(await node.grpc_chain_id(), node.grpc.target)
        except ChainError as error:
            self.check()
            self.failed(node, error)  # also where a page stands for the node: it is told, and asked again
            return
        except TimeoutError:
            self.failed(node, out_of_time(node))
            return
        self.same_chain(status.chain_id, node.name)
        if standing.away and node is not self._current:
            _LOG.info("chain node %s answers again, at block %d", node.name, status.height)
        standing.pause_seconds = 0.0
        self.note(node, status)

    def same_chain(self, found: str, where: str) -> None:
        """Take the first chain id that is seen as the chain's; stop everything at another one."""
        self.chain_id = self.chain_id or found
        if found != self.chain_id:
            raise self.stop(
                ChainError(
                    f"chain node {where} is of chain {found}, not {self.chain_id}",
                    "name nodes of the right chain in chain, or mend chain.chain_id",
                )
            )

    def note(self, node: ChainNode, status: NodeStatus) -> None:
        """Remember a node's status."""
        standing = self._standing[node]
        if standing.status is None or status.height > standing.status.height:
            standing.risen_at = self._clock()
        standing.status = status

    def _height(self, node: ChainNode) -> int:
        status = self._standing[node].status
        return status.height if status is not None else 0

    def _lags(self, node: ChainNode) -> bool:
        """Whether the node is known to be behind the others, or to sync.

        The height that a verified node says has no proof: it counts against one's own only when that stands still.
        """
        standing = self._standing[node]
        if standing.status is None:
            return False
        rises = not node.verify and self._clock() < standing.risen_at + _STILL_SECONDS
        others = (each for each in self.others(node) if not self.is_away(each) and not (rises and each.verify))
        best = max((self._height(each) for each in others), default=0)
        return standing.status.syncing or standing.status.height < best - _LAG_BLOCKS

    def _is_out(self, node: ChainNode) -> bool:
        return self.is_away(node) or self._lags(node)


def out_of_time(node: ChainNode) -> ChainUnavailableError:
    """Return the error for a node that let the time for an answer pass."""
    return ChainUnavailableError(f"chain node {node.name} does not answer in time")
