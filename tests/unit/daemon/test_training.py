"""A round's training ends early when the core says so, also when it said so before the training began."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.training import Training
from gonka_trainer.gradient.layout import layout_root
from gonka_trainer.ports import StoredObject
from gonka_trainer.round.commands import Train
from gonka_trainer.storage.unfinished import UnfinishedRound
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer
from gonka_trainer.types import ZERO_DIGEST, Address, Height
from tests.support.tiny_run import PARTICIPANT, TinyRun, make_run

WORKER = Path(__file__).parents[2] / "support" / "numpy_worker.py"
STEPS = 1_000_000  # far more than could be made while the test runs


def training(run: TinyRun, trainer: Trainer, progress: Any) -> Training:
    """The action with a real worker; of the kit only what training reads."""
    participant = Address(bytes.fromhex(PARTICIPANT))
    inner = SimpleNamespace(steps=STEPS)
    kit: Any = SimpleNamespace(
        trainer=trainer,
        reporter=SimpleNamespace(progress=progress),
        run=SimpleNamespace(
            participant=participant,
            manifest=SimpleNamespace(inner=inner),
            layout_root=layout_root(run.manifest.layout),
        ),
        unfinished=UnfinishedRound(run.folder),
        store=SimpleNamespace(state=lambda _root: StoredObject(b"", b"", run.base)),
        work=run.folder,
    )
    return Training(kit)


@pytest.mark.timeout(60)
async def test_finish_that_stood_before_the_training_began_ends_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    settings = WorkerSettings(run.manifest_path, run.data, run.folder, command=(sys.executable, str(WORKER)))
    async with open_trainer(settings) as trainer:
        command = Train(0, ZERO_DIGEST, (), Height(10), finish=True)
        trained = await training(run, trainer, lambda _: None)._trained(Wanted(command))
    assert trained.done.inner_steps < STEPS


@pytest.mark.timeout(60)
async def test_finish_that_comes_while_training_ends_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    settings = WorkerSettings(run.manifest_path, run.data, run.folder, command=(sys.executable, str(WORKER)))
    wanted = Wanted(Train(0, ZERO_DIGEST, (), Height(10), finish=False))
    made = []

    def progress(step: Any) -> None:
        made.append(step)
        wanted.update(Train(0, ZERO_DIGEST, (), Height(10), finish=True))

    async with open_trainer(settings) as trainer:
        trained = await training(run, trainer, progress)._trained(wanted)
    assert 0 < len(made) <= trained.done.inner_steps < STEPS
