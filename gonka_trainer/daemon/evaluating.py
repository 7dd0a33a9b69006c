"""Evaluating each final state on the held-out split, when the worker is free."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from gonka_trainer.daemon.kit import Kit
from gonka_trainer.errors import WorkerError
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Digest

_LOG: Final = logging.getLogger(__name__)


class Evaluating:
    """Asks the worker for the held-out loss of every state that a round starts from, once each."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._queue: asyncio.Queue[tuple[Digest, str]] = asyncio.Queue()
        self._last: Digest | None = None

    def look(self, state: CoreState) -> None:
        """Take note of a state that is final and on disk here."""
        root = state.final_root
        if root == self._last or root not in state.own.states:
            return
        self._last = root
        self._queue.put_nowait((root, "initial" if state.final is None else f"round {state.final.number}"))

    async def run(self) -> None:
        """Evaluate as states come, until cancelled. A loss that cannot be had is logged, nothing depends on it."""
        while True:
            root, label = await self._queue.get()
            stored = self._kit.store.state(root)
            if stored is None:
                continue
            try:
                done = await self._kit.trainer.evaluate(label, str(stored.payload))
            except WorkerError as error:
                _LOG.warning("evaluation of %s: %s", label, error)
                continue
            self._kit.reporter.evaluated(label, done.loss)
