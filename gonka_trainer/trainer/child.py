"""One running worker: its process group, its log, and its end, which is waited for and proven."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from gonka_trainer.trainer import processes
from gonka_trainer.trainer.leash import PARENT_VARIABLE

_LOG: Final = logging.getLogger(__name__)
LOG_LIMIT_BYTES: Final = 16 << 20
LEASH: Final = (sys.executable, "-m", "gonka_trainer.trainer.leash")
_LOOK_SECONDS: Final = 0.02
_REAP_SECONDS: Final = 1.0
_SAY_SECONDS: Final = 10.0


class Child:
    """A started command and, once it has connected, the worker inside it (torchrun puts that into a group of its own).

    Both are held by process handles, which name a process and not a number that may be used again. What they start is
    found by its session: at the end nothing of any of their sessions is left.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._worker: int | None = None
        self._worker_pid = 0
        self._sessions = {process.pid}

    @property
    def running(self) -> bool:
        """Whether the started command still runs."""
        return self._process.returncode is None

    @property
    def present(self) -> bool:
        """Whether any process of it is alive, whoever its parent is by now."""
        return self.running or bool(processes.members(self._sessions))

    @property
    def status(self) -> int | None:
        """The command's exit status, negative for a signal, None while it runs."""
        return self._process.returncode

    def adopt(self, pid: int) -> None:
        """Take charge of the worker that connected; one that is gone already needs nothing."""
        self._note_sessions()
        if pid != self._process.pid:
            with suppress(ProcessLookupError):
                self._worker, self._worker_pid = os.pidfd_open(pid), pid

    async def ended(self) -> None:
        """Wait until command and worker have ended."""
        await self._process.wait()
        if self._worker is not None:
            await _readable(self._worker)

    async def stop(self, patience_seconds: float) -> None:
        """Wait for the end, then ask with SIGTERM, then SIGKILL; returns when every process is really gone.

        Each of the first two has `patience_seconds`; nothing can refuse the third.
        """
        self._note_sessions()
        try:
            for number in (None, signal.SIGTERM):
                if number is not None:
                    self._signal(number)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.ended(), patience_seconds)
                    return
        finally:
            await asyncio.shield(self._gone())

    async def worker_ended(self) -> None:
        """Wait until the worker has ended; whatever is around it may still run."""
        if self._worker is None:
            await self._process.wait()
        else:
            await _readable(self._worker)

    async def _gone(self) -> None:
        """Kill what is left and wait until the last process of every session has ended.

        The worker first: its parent then reaps it, where it would have become a zombie of nobody's.
        """
        if self._worker is not None:
            self._signal_worker(signal.SIGKILL)
            await _readable(self._worker)
            await self._reaped()
        self._signal(signal.SIGKILL)
        await self.ended()
        self._release()
        loop = asyncio.get_running_loop()
        said = loop.time()
        while left := processes.members(self._sessions):
            self._sessions = {entry.session for entry in left}
            for entry in left:
                processes.kill(entry)
            if loop.time() - said > _SAY_SECONDS:
                said = loop.time()
                _LOG.warning("worker: still there after SIGKILL: %s", ", ".join(str(entry.pid) for entry in left))
            await asyncio.sleep(_LOOK_SECONDS)

    def _note_sessions(self) -> None:
        """Remember the sessions of all that descends from the command, while it can be told from its parents."""
        if self.running:
            self._sessions |= processes.sessions_below(self._process.pid)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        self._signal_worker(number)

    def _signal_worker(self, number: signal.Signals) -> None:
        if self._worker is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._worker, number)

    async def _reaped(self) -> None:
        """Give the parent of the worker that has ended the time to take note of it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_SECONDS):
                while self.running and processes.is_zombie(self._worker_pid):
                    await asyncio.sleep(_LOOK_SECONDS)

    def _release(self) -> None:
        if self._worker is not None:
            os.close(self._worker)
            self._worker = None


async def start(command: Sequence[str], log: Path) -> Child:
    """Start the command on a leash in a group of its own, its output at the end of `log`; OSError if it cannot."""
    environment = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
    with _open_log(log) as output:
        process = await asyncio.create_subprocess_exec(
            *LEASH,
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
    return Child(process)


def _open_log(log: Path) -> IO[bytes]:
    """Open a log for more lines; one that has grown large is put aside first, and the one put aside before is lost."""
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    return log.open("ab")


def tail(log: Path, lines: int = 15) -> str:
    """Return the log's last lines; what cannot be read is empty."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16384))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


async def _readable(handle: int) -> None:
    """Wait until a process handle reports that the process has ended; several may wait at once."""
    loop, done, own = asyncio.get_running_loop(), asyncio.Event(), os.dup(handle)
    loop.add_reader(own, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(own)
        os.close(own)
