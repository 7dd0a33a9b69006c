"""What happens in the host, for whoever reads along: each reader has a bounded queue of its own."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

from gonka_trainer.controls import HostEvent

QUEUE_EVENTS: Final = 1024
"""How many events wait for a reader before the oldest are dropped."""

MISSED: Final = "missed"


class EventReader:
    """One reader's queue. Events that are dropped are counted, and the count is given in their place."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[HostEvent] = deque()
        self._missed = 0
        self._arrived = asyncio.Event()

    def put(self, event: HostEvent) -> None:
        """Take an event in; the oldest makes room."""
        if len(self._queue) >= self._limit:
            self._queue.popleft()
            self._missed += 1
        self._queue.append(event)
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> HostEvent:
        """Return the next event, or how many were dropped before it; waits for ever."""
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        if self._missed:
            count, self._missed, following = self._missed, 0, self._queue[0]
            return HostEvent(following.sequence - 1, following.time_seconds, MISSED, {"count": count})
        return self._queue.popleft()


class EventHub:
    """Numbers the events from 1 and gives them to all who read now; nobody waits for a reader."""

    def __init__(self, limit: int = QUEUE_EVENTS) -> None:
        self._limit = limit
        self._sequence = 0
        self._readers: set[EventReader] = set()

    def tell(self, kind: str, details: Mapping[str, Any]) -> None:
        """Something happened: `details` are plain JSON values."""
        self._sequence += 1
        event = HostEvent(self._sequence, time.time(), kind, dict(details))
        for reader in self._readers:
            reader.put(event)

    @contextmanager
    def reading(self) -> Iterator[AsyncIterator[HostEvent]]:
        """Give the events from now on, while entered."""
        reader = EventReader(self._limit)
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)
