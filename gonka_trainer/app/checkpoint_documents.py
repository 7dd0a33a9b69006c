"""What others need to start here: the bytes under the last roster digests, kept as documents."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from gonka_trainer.ports import Objects
from gonka_trainer.round.state import CoreState
from gonka_trainer.storage.documents import MAX_DOCUMENT_BYTES
from gonka_trainer.types import Digest

_LOG: Final = logging.getLogger(__name__)
KEPT_ROUNDS: Final = 64


class RosterDocuments:
    """Keeps the rosters of the last rounds on disk and removes older ones. `look` never waits, `run` writes.

    The environments that go with them are kept when they are read.
    """

    def __init__(self, store: Objects) -> None:
        self._store = store
        self._kept: OrderedDict[Digest, None] = OrderedDict()
        self._newest: tuple[Digest, bytes] | None = None
        self._seen = asyncio.Event()

    def look(self, state: CoreState) -> None:
        """Take in which round is open after a step."""
        current = state.current
        if current is None or current.roster.digest in self._kept:
            return
        self._kept[current.roster.digest] = None
        self._newest = (current.roster.digest, current.roster.preimage)
        self._seen.set()

    async def run(self) -> None:
        """Write each new roster until cancelled."""
        while True:
            await self._seen.wait()
            self._seen.clear()
            old = [self._kept.popitem(last=False)[0] for _ in range(len(self._kept) - KEPT_ROUNDS)]
            await asyncio.to_thread(self._write, self._newest, old)

    def _write(self, newest: tuple[Digest, bytes] | None, old: Sequence[Digest]) -> None:
        if newest is not None and len(newest[1]) <= MAX_DOCUMENT_BYTES:
            self._store.put_document(*newest)
        elif newest is not None:
            _LOG.warning("the roster has %d bytes: too many to serve, nobody can start from it", len(newest[1]))
        for digest in old:
            self._store.remove_document(digest)
