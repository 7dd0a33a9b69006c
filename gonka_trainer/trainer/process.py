"""The worker as a service: started when it is needed, again when it died, and gone when the daemon goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gonka_trainer.errors import WorkerError
from gonka_trainer.jobs import Failed, Ready, Shutdown
from gonka_trainer.trainer.child import Child, start, tail
from gonka_trainer.trainer.link import LinkError, WorkerLink, listen
from gonka_trainer.trainer.rendezvous import Rendezvous, torchrun

_FIRST_DELAY_SECONDS: Final = 0.5
_LONGEST_DELAY_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerSettings:
    """How to run the worker. `folder` (which exists) takes its socket and log.

    `command` replaces torchrun and `python -m gonka_trainer.worker`; it is given the same flags. `rendezvous` is None
    where the worker is on this machine alone. `failures` is how many starts may fail in a row before somebody is told.
    A worker that says nothing for `silent_seconds` in a job (it tells of every inner step) is taken for hung and
    replaced.
    """

    manifest: Path
    data: Path
    folder: Path
    processes: int = 1
    threads: int = 1
    command: tuple[str, ...] = ()
    rendezvous: Rendezvous | None = None
    start_seconds: float = 180.0
    silent_seconds: float = 600.0
    stop_seconds: float = 5.0
    failures: int = 3

    @property
    def socket(self) -> Path:
        """Where the worker connects."""
        return self.folder / "worker.sock"

    @property
    def log(self) -> Path:
        """Where the worker's output goes."""
        return self.folder / "worker.log"

    @property
    def whole_command(self) -> tuple[str, ...]:
        """The command with its flags."""
        flags = ("--socket", str(self.socket), "--manifest", str(self.manifest), "--data", str(self.data))
        return (*(self.command or torchrun(self.rendezvous, self.processes)), *flags, "--threads", str(self.threads))


class TrainerProcess:
    """The worker's process. `link` is for one task at a time."""

    def __init__(self, settings: WorkerSettings, arrivals: asyncio.Queue[WorkerLink]) -> None:
        self._settings = settings
        self._arrivals = arrivals
        self._child: Child | None = None
        self._link: WorkerLink | None = None
        self._ready: Ready | None = None
        self._failures = 0
        self._starts = 0
        self._clearing = asyncio.Lock()

    @property
    def starts(self) -> int:
        """How often the worker was started."""
        return self._starts

    @property
    def ready(self) -> Ready | None:
        """What the running worker said of itself; None while there is none."""
        return self._ready

    @property
    def present(self) -> bool:
        """Whether any process of a worker is alive."""
        return self._child is not None and self._child.present

    async def link(self) -> WorkerLink:
        """Return the link to a worker that is ready, starting one (with growing delays) where there is none.

        WorkerError when starting failed too often in a row, or at once when the worker itself says what is wrong.
        """
        while True:
            if self._link is not None and not self._link.closed and self._child is not None and self._child.running:
                return self._link
            await self._clear(0.0)
            await asyncio.sleep(self._delay_seconds)
            try:
                await self._start()
            except LinkError as error:
                self.failed(str(error))

    def failed(self, what: str) -> None:
        """Count that the worker died; WorkerError with the end of its log when that was too often in a row."""
        self._failures += 1
        _log.warning("worker: %s (failure %d in a row; see %s)", what, self._failures, self._settings.log)
        if self._failures >= self._settings.failures:
            text = f"the worker failed {self._failures} times in a row: {what}; the end of {self._settings.log}:"
            self._failures = 0
            raise WorkerError(f"{text}\n{tail(self._settings.log)}", "mend what the log says; the daemon tries again")

    def succeeded(self) -> None:
        """Note that the worker did a job: failures are counted from here."""
        self._failures = 0

    async def discard(self) -> None:
        """End a worker that broke the link's rules or that nobody can use; the next `link` starts another."""
        await self._clear(0.0)

    async def stop(self) -> None:
        """Ask the worker to end, and see to it that it does."""
        patience_seconds = 0.0
        if self._link is not None and not self._link.closed:
            self._link.send(Shutdown())
            patience_seconds = self._settings.stop_seconds
        await self._clear(patience_seconds)

    async def leave(self) -> None:
        """Ask a worker that has nothing to do to end, and be rid of all that is around it as soon as it has."""
        if self._link is not None and not self._link.closed and self._child is not None:
            self._link.send(Shutdown())
            await self._child.worker_ended()
        await self._clear(0.0)

    @property
    def _delay_seconds(self) -> float:
        if self._failures == 0:
            return 0.0
        delay: float = min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2.0 ** (self._failures - 1))
        return delay

    async def _start(self) -> None:
        """Start a worker and wait until it is ready; LinkError when it ends or says nothing in time."""
        self._starts += 1
        settings = self._settings
        _log.info("worker: start %d", self._starts)
        starting = asyncio.ensure_future(start(settings.whole_command, settings.log))
        try:
            self._child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._child = await starting  # what was begun must be known to be ended
            raise
        except OSError as error:
            raise WorkerError(f"{settings.log}: the worker cannot be started: {error}", "is the disk full?") from error
        try:
            async with asyncio.timeout(settings.start_seconds):
                self._link = await self._arrival(self._child)
                self._child.adopt(self._link.pid)
                self._ready = await _first(self._link)
        except TimeoutError as error:
            raise LinkError(f"not ready within {settings.start_seconds:g} s of its start") from error

    async def _arrival(self, child: Child) -> WorkerLink:
        """Return the first connection; LinkError when the command ends before there is one."""
        arrival = asyncio.ensure_future(self._arrivals.get())
        end = asyncio.ensure_future(child.ended())
        try:
            await asyncio.wait((arrival, end), return_when=asyncio.FIRST_COMPLETED)
            if arrival.done():
                return arrival.result()
            raise LinkError(f"ended with status {child.status} before it connected")
        finally:
            arrival.cancel()
            end.cancel()

    async def _clear(self, patience_seconds: float) -> None:
        """Be rid of the worker that there is, and of connections that nobody waits for."""
        async with self._clearing:
            link, child = self._link, self._child
            self._link = self._ready = None
            if child is not None:
                await child.stop(patience_seconds)
                self._child = None
            if link is not None:
                await link.close()
            await self._drop_arrivals()

    async def _drop_arrivals(self) -> None:
        while not self._arrivals.empty():
            await self._arrivals.get_nowait().close()


@asynccontextmanager
async def open_process(settings: WorkerSettings) -> AsyncIterator[TrainerProcess]:
    """Listen for a worker; at the end nothing of it is left running. Starts nothing yet."""
    async with listen(settings.socket) as arrivals:
        process = TrainerProcess(settings, arrivals)
        try:
            yield process
        finally:
            await process.stop()


async def _first(link: WorkerLink) -> Ready:
    """Return the worker's Ready; WorkerError with its own words when it says that it cannot."""
    match await link.receive():
        case Ready() as ready:
            return ready
        case Failed(what, remedy):
            raise WorkerError(what, remedy)
        case message:
            raise LinkError(f"the worker spoke out of turn: {type(message).__name__} before Ready")
