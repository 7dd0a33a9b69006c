from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.tiny_run import CONFIG, TinyRun, make_run

from gonka_trainer.worker.model import describe
from gonka_trainer.worker.session import Session, open_session


@pytest.fixture
def run(tmp_path: Path) -> TinyRun:
    return make_run(tmp_path, tuple(describe(CONFIG)))


@pytest.fixture
def session(run: TinyRun) -> Session:
    return open_session(run.manifest, run.data, threads=1)
