"""One running worker: its process group, its log, and its end, which is waited for and proven."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from gonka_trainer.trainer.leash import PARENT_VARIABLE

LOG_LIMIT_BYTES: Final = 16 << 20
LEASH: Final = (sys.executable, "-m", "gonka_trainer.trainer.leash")


class Child:
    """A started command and, once it has connected, the worker inside it (torchrun puts that into a group of its own).

    Both are held by process handles, which name a process and not a number that may be used again.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._worker: int | None = None

    @property
    def running(self) -> bool:
        """Whether the started command still runs."""
        return self._process.returncode is None

    @property
    def status(self) -> int | None:
        """The command's exit status, negative for a signal, None while it runs."""
        return self._process.returncode

    def adopt(self, pid: int) -> None:
        """Take charge of the worker that connected; one that is gone already needs nothing."""
        if pid != self._process.pid:
            with suppress(ProcessLookupError):
                self._worker = os.pidfd_open(pid)

    async def ended(self) -> None:
        """Wait until command and worker have ended."""
        await self._process.wait()
        if self._worker is not None:
            await _readable(self._worker)

    async def stop(self, patience_seconds: float) -> None:
        """Wait for the end, then ask with SIGTERM, then SIGKILL; returns when every process is really gone.

        Each of the first two has `patience_seconds`; nothing can refuse the third.
        """
        try:
            for number in (None, signal.SIGTERM):
                if number is not None:
                    self._signal(number)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.ended(), patience_seconds)
                    return
        finally:
            self._signal(signal.SIGKILL)
            await asyncio.shield(self.ended())
            self._release()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        if self._worker is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._worker, number)

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
    """Wait until a process handle reports that the process has ended."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(handle)
