"""The daemon as its operator drives it: `controls.Operator` over the run that is served and the holds on the GPUs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from gonka_trainer import __version__
from gonka_trainer.control.events import EventHub
from gonka_trainer.controls import Gpu, HostEvent, TaskLine
from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.text import printable
from gonka_trainer.types import Digest

_LOG: Final = logging.getLogger(__name__)
HOLDER: Final = "operator"
MARK: Final = "operator.json"
PAUSE: Final = "pause"
DRAIN: Final = "drain"


class Daemon(Protocol):
    """What is asked of the daemon itself."""

    @property
    def about(self) -> Mapping[str, Any]:
        """What is known of the daemon besides its run: host (its participant), chain_id."""

    async def task_lines(self) -> tuple[TaskLine, ...]:
        """Return the runs on chain with their standing here."""

    async def start_run(self, run: Digest) -> None:
        """Agree to a run."""


class Served(Protocol):
    """What is asked of the run that is served."""

    ended: asyncio.Event

    @property
    def over(self) -> bool | None:
        """Whether nothing is left to train there; None while that is not known."""

    def listen(self, tell: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Have what happens in the run told here."""

    @property
    def status(self) -> Mapping[str, Any]:
        """What its `status.json` says."""

    async def finish_training(self) -> int | None:
        """End the round in hand with what there is; its number, None when nothing is trained now."""

    async def committed(self, round_number: int) -> None:
        """Wait until the round's commitment is in a block, or cannot be any more."""


class Operations:
    """One for the daemon's life. What the operator asked for last is kept in the data directory, over restarts."""

    def __init__(self, data: Path, gpu: Gpu, daemon: Daemon, end: Callable[[], None]) -> None:
        self._mark = data / MARK
        self._gpu = gpu
        self._daemon = daemon
        self._end = end
        self._hub = EventHub()
        self._served: Served | None = None
        self._facts: Mapping[str, str] = {}
        self._asked = ""
        self._draining: asyncio.Task[None] | None = None

    def recall(self) -> None:
        """Take up what the operator asked for before a restart; to be called before anything trains."""
        try:
            said = json.loads(self._mark.read_bytes())
            self._asked, why = str(said["asked"]), printable(str(said["why"]))
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError) as error:
            # Somebody meant to keep the GPUs from training: a damaged mark must not give them back.
            _LOG.warning("%s cannot be read: %s", self._mark, error)
            self._asked, why = PAUSE, "an unreadable mark of a pause"
        self._gpu.hold(HOLDER, why)
        _LOG.info("the operator's %s still stands: `gonka-trainer resume` takes it back", self._asked)

    @contextmanager
    def serving(self, run: Served, manifest_hash: Digest, name: str) -> Iterator[None]:
        """Speak for this run while it is served."""
        self._served, self._facts = run, {"manifest_hash": manifest_hash.hex(), "name": name}
        run.listen(self.tell)
        self._hub.tell("run_started", self._facts)
        try:
            yield
        finally:
            self._hub.tell("run_over", self._facts)
            self._served, self._facts = None, {}

    def tell(self, kind: str, details: Mapping[str, Any]) -> None:
        """Something happened, for those who read along."""
        self._hub.tell(kind, details)

    def status(self) -> Mapping[str, Any]:
        """Return what `status.json` of the served run says, and the daemon's standing."""
        run = self._served
        return {
            "version": __version__,
            **self._daemon.about,
            **({} if run is None else run.status),
            "manifest_hash": self._facts.get("manifest_hash", ""),
            "standing": "waiting" if run is None else "over" if run.ended.is_set() else "serving",
            "gpus_in_use": self._gpu.in_use,
            "asked": self._asked,
        }

    async def tasks(self) -> tuple[TaskLine, ...]:
        """Return the runs on chain that this host knows of, with their standing."""
        return await self._daemon.task_lines()

    async def start(self, run: Digest) -> None:
        """Agree to a run, as `gonka-trainer join` does."""
        await self._daemon.start_run(run)

    def pause(self, why: str) -> None:
        """Free the GPUs at once and stay a member: an unfinished round commits what it has."""
        why = why or "paused by the operator"
        self._gpu.hold(HOLDER, why)
        self._ask(PAUSE, why)

    def resume(self) -> None:
        """Take a pause or a drain back."""
        self._asked = ""
        try:
            self._mark.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{self._mark}: {error.strerror}", "remove it: it pauses at every start") from error
        self._gpu.lift(HOLDER)

    async def drain(self) -> None:
        """End the round in hand with what there is, commit it, train no more and free the GPUs; returns when free."""
        self._ask(DRAIN, "drained by the operator")
        if self._draining is None or self._draining.done():
            self._draining = asyncio.create_task(self._drain())
        # The drain goes on when who asked for it does not wait.
        await asyncio.shield(self._draining)

    def stop(self) -> None:
        """End the daemon in order, as SIGTERM does."""
        _LOG.info("the operator said stop")
        self._end()

    def events(self) -> AbstractContextManager[AsyncIterator[HostEvent]]:
        """Give, while entered, the events from then on, in order."""
        return self._hub.reading()

    @property
    def wants_gpus(self) -> bool:
        """Whether there is something to train that the operator has not paused, whoever else holds the GPUs."""
        return not self._asked and self._served is not None and self._served.over is False

    async def _drain(self) -> None:
        run = self._served
        number = None if run is None else await run.finish_training()
        if self._asked != DRAIN:
            raise ConfigError("the drain was taken back before its end", "drain again if that was not meant")
        self._gpu.hold(HOLDER, "drained by the operator")
        if run is not None and number is not None:
            await run.committed(number)
        await self._gpu.vacated()

    def _ask(self, asked: str, why: str) -> None:
        self._asked = asked
        write_atomic(self._mark, json.dumps({"asked": asked, "why": why}).encode())


class ErrorEvents(logging.Handler):
    """Tells what the daemon logs as an error to those who read along. Any thread may log."""

    def __init__(self, tell: Callable[[str, Mapping[str, Any]], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record; after the loop's end nobody reads."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, "error", {"text": record.getMessage()})
