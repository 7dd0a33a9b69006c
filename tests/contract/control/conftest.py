from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from control_world import RUN, World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A daemon's control service with a run that is served, its worker alive."""
    made = World(tmp_path)
    made.worker.alive = True
    async with made.serving():
        with made.operations.serving(made.run, RUN, "tiny"):
            yield made
