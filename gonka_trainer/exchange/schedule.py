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
        self._idle = deque(endpoints)
        self._strikes: Counter[Endpoint] = Counter()
        self._busy = 0
        self.pending = len(self._chunks)

    def ready(self) -> list[Request]:
        """Return the requests to start now."""
        requests = []
        while self._chunks and self._idle and self._busy < WIDTH:
            share = -(-len(self._chunks) // min(WIDTH - self._busy, len(self._idle)))
            count = min(BATCH, share)
            chunks = tuple(self._chunks.popleft() for _ in range(count))
            requests.append(Request(self._idle.popleft(), chunks))
            self._busy += 1
        return requests

    def settle(self, request: Request, got: Collection[int], *, banned: bool, failed: bool) -> None:
        """Take note of how a request ended: which chunks are stored, and whether to ask this peer again."""
        self._busy -= 1
        self.pending -= len(got)
        self._chunks.extendleft(chunk for chunk in reversed(request.chunks) if chunk not in got)
        self._strikes[request.endpoint] = self._strikes[request.endpoint] + 1 if failed and not got else 0
        if banned or self._strikes[request.endpoint] >= STRIKES:
            return
        if failed:
            self._idle.append(request.endpoint)
        else:
            self._idle.appendleft(request.endpoint)
