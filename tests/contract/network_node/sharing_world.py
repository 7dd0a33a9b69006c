"""A worker that is a real process, lent to real `GpuTurns`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.ports import Trainer
from gonka_trainer.storage.stops import FileStops


class Worker:
    """What `GpuTurns` needs of a trainer, around a process that does nothing."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self.barred = False

    async def start(self) -> None:
        """Start the process, once workers are admitted, as a trainer does."""
        await until(lambda: not self.barred)
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        self._process = await asyncio.create_subprocess_exec(*command)

    @property
    def in_use(self) -> bool:
        return self._process is not None

    def bar(self) -> None:
        self.barred = True

    def admit(self) -> None:
        self.barred = False

    async def vacate(self, bound_seconds: float) -> None:
        if self._process is not None:
            self._process.terminate()
            await self._process.wait()
            self._process = None


@asynccontextmanager
async def turns(folder: Path) -> AsyncIterator[tuple[GpuTurns, Worker]]:
    gpu, worker = GpuTurns(FileStops(folder / "stops.json", 5.0)), Worker()

    def unheard(**_: Any) -> None:
        pass

    serving = asyncio.create_task(gpu.serve(cast("Trainer", worker), unheard))
    try:
        yield gpu, worker
    finally:
        serving.cancel()
        await worker.vacate(1.0)


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a state; fail when it does not come."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)
