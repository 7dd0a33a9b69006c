"""The worker besides its rounds: ready in time, evaluating each final state, and gone when the run is over."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from gonka_trainer.daemon.kit import Kit
from gonka_trainer.errors import WorkerError
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Digest

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5


class Evaluating:
    """Asks the worker for the held-out loss of every state that a round starts from, once each.

    While somebody holds the GPUs all of it waits: the trainer starts no worker then.
    """

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._queue: asyncio.Queue[tuple[Digest, str]] = asyncio.Queue()
        self._last: Digest | None = None
        self._busy = False

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
            if stored is not None:
                await self._evaluate(label, str(stored.payload))

    async def warm_up(self) -> None:
        """Start the worker as soon as this host is a member, so that no round waits for it."""
        participant = self._kit.run.participant
        while participant is not None:
            state = self._kit.state()
            if state.own.caught_up and not state.ended and state.membership.is_member(participant):
                break
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            await self._kit.trainer.start()
        except WorkerError as error:
            _LOG.warning("%s", error)

    async def rest(self, ended: asyncio.Event) -> None:
        """End the worker when the run is over and its last state is evaluated."""
        await ended.wait()
        while not self._queue.empty() or self._busy:
            await asyncio.sleep(_LOOK_SECONDS)
        await self._kit.trainer.stop()
        _LOG.info("the worker has ended: nothing is left to train")

    async def _evaluate(self, label: str, path: str) -> None:
        self._busy = True
        try:
            done = await self._kit.trainer.evaluate(label, path)
            self._kit.reporter.evaluated(label, done.loss)
        except WorkerError as error:
            _LOG.warning("evaluation of %s: %s", label, error)
        finally:
            self._busy = False
