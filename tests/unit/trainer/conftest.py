from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.tiny_run import TinyRun, make_run

from gonka_trainer.trainer.process import WorkerSettings

STAND_IN = (sys.executable, str(Path(__file__).parents[2] / "support" / "numpy_worker.py"))


@pytest.fixture
def run(tmp_path: Path) -> TinyRun:
    return make_run(tmp_path)


@pytest.fixture
def settings(run: TinyRun) -> WorkerSettings:
    return WorkerSettings(run.manifest_path, run.data, run.folder, command=STAND_IN)
