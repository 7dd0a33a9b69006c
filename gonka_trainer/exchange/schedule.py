"""Which chunks to ask of which peer next, while one object is fetched. Pure bookkeeping."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from gonka_trainer.ports import Endpoint

WIDTH: Final = 4
"""Peers asked at once."""

BATCH: Final = 16
"""Most chunks in one request."""

STRIKES: Final = 2
"""A peer is left after so many failures in a row that brought nothing."""


@dataclass(frozen=True, slots=True)
class Request:
    """Ask this peer for these chunks."""

    endpoint: Endpoint
    chunks: tuple[int, ...]


class Schedule:
    """Hands out chunks in order to peers in order of preference, one request a peer, and takes back what did not come.

    A peer that failed stands behind those that did not, and goes after STRIKES failures in a row without a chunk.
    """

    def __init__(self, missing: Iterable[int], endpoints: Iterable[Endpoint]) -> None:
        self._chunks = deque(sorted(missing))
        self._left = set(self._chunks)
        self._idle = deque(endpoints)
        self._strikes: Counter[Endpoint] = Counter()
        self._out: list[Request] = []
        self._doubled: set[Request] = set()

    @property
    def pending(self) -> int:
        """How many chunks have not come yet."""
        return len(self._left)

    def ready(self) -> list[Request]:
        """Return the requests to start now."""
        requests = []
        while self._chunks and self._idle and len(self._out) < WIDTH:
            share = -(-len(self._chunks) // min(WIDTH - len(self._out), len(self._idle)))
            count = min(BATCH, share)
            chunks = tuple(self._chunks.popleft() for _ in range(count))
            requests.append(self._start(chunks))
        return requests

    def again(self) -> list[Request]:
        """Return requests of idle peers for what others have been asked for and do not bring: the last chunks first.

        So a peer that drips holds up nobody; each request is doubled once.
        """
        requests = []
        for slow in [request for request in self._out if request not in self._doubled]:
            if not self._idle or len(self._out) >= 2 * WIDTH:
                break
            request = self._start(tuple(chunk for chunk in reversed(slow.chunks) if chunk in self._left))
            self._doubled |= {slow, request}
            requests.append(request)
        return requests

    def settle(self, request: Request, got: Collection[int], *, banned: bool, failed: bool) -> None:
        """Take note of how a request ended: which chunks are stored, and whether to ask this peer again."""
        self._out.remove(request)
        self._left.difference_update(got)
        asked = {chunk for other in self._out for chunk in other.chunks} | set(self._chunks)
        self._chunks.extendleft(c for c in sorted(request.chunks, reverse=True) if c in self._left and c not in asked)
        self._strikes[request.endpoint] = self._strikes[request.endpoint] + 1 if failed and not got else 0
        if banned or self._strikes[request.endpoint] >= STRIKES:
            return
        if failed:
            self._idle.append(request.endpoint)
        else:
            self._idle.appendleft(request.endpoint)

    def _start(self, chunks: tuple[int, ...]) -> Request:
        request = Request(self._idle.popleft(), chunks)
        self._out.append(request)
        return request
