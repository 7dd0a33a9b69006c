from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from run_log_world import Devnet, Run, client, devnet, open_run

from gonka_trainer.chain.client import ChainClient


@pytest.fixture(scope="session")
def shared_net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    """One devnet for the tests that leave it as it is; each uses a run of its own."""
    with devnet(tmp_path_factory.mktemp("shared") / "home") as net:
        yield net


@pytest.fixture
async def chain(shared_net: Devnet) -> AsyncIterator[ChainClient]:
    async with client(shared_net) as opened:
        yield opened


@pytest.fixture(params=["memo", "kv"])
async def run(request: pytest.FixtureRequest, chain: ChainClient, tmp_path: Path) -> Run:
    return await open_run(request.param, chain, request.node.name, tmp_path)
