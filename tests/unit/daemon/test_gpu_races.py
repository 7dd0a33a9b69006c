"""Holds and lifts at the worst moment, and a worker that outlives its run: never a worker beside another holder."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer
from tests.support.tiny_run import make_run

pytestmark = pytest.mark.timeout(60)

WORKER = Path(__file__).parents[2] / "support" / "numpy_worker.py"


def settings(folder: Path, *command: str) -> WorkerSettings:
    run = make_run(folder)
    return WorkerSettings(
        run.manifest_path, run.data, run.folder, command=command or (sys.executable, str(WORKER)), stop_seconds=0.5
    )


async def served(turns: GpuTurns, trainer: Trainer) -> asyncio.Task[None]:
    told = asyncio.Event()
    serving = asyncio.create_task(turns.serve(trainer, lambda **_: told.set()))
    await told.wait()
    return serving


async def test_a_lift_and_a_hold_in_one_breath_start_no_worker(tmp_path: Path) -> None:
    turns = GpuTurns(FileStops(tmp_path / "stops.json", 30.0))
    async with open_trainer(settings(tmp_path)) as trainer:
        turns.hold("a", "one")
        serving = await served(turns, trainer)
        call = asyncio.create_task(trainer.start())
        await asyncio.wait((call,), timeout=0.1)
        turns.lift("a")
        turns.hold("b", "two")
        await asyncio.wait((call,), timeout=1.0)
        assert (trainer.starts, turns.in_use, trainer.admitted) == (0, False, False)
        turns.lift("b")
        await call
        assert trainer.starts == 1
        serving.cancel()
        await asyncio.wait((serving,))


async def test_the_gpus_are_in_use_until_the_worker_of_a_run_that_was_left_has_ended(tmp_path: Path) -> None:
    turns = GpuTurns(FileStops(tmp_path / "stops.json", 30.0))
    stubborn = f'trap "" TERM; {sys.executable} {WORKER} "$@"; sleep 1000'
    async with open_trainer(settings(tmp_path, "/bin/bash", "-c", stubborn, "worker")) as trainer:
        serving = await served(turns, trainer)
        await trainer.start()
        serving.cancel()  # the run is left; its worker is ended a little later
        await asyncio.wait((serving,))
        vacated = asyncio.create_task(turns.vacated())
        await asyncio.wait((vacated,), timeout=0.2)
        assert turns.in_use
        assert not vacated.done()
    await vacated
    assert not turns.in_use
