from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from devnet_process import Devnet, devnet
from node_world import Node, named, open_node

from gonka_trainer.chain.client import ChainClient

VERSIONS = ("named node",) if named() else ("0.2.0", "0.2.16")


@pytest.fixture(scope="session")
def shared_devnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    """One devnet for the tests that leave it as it is."""
    with devnet(tmp_path_factory.mktemp("devnet") / "home", "--index-lag-seconds", "0.05") as running:
        yield running


@pytest.fixture(scope="session", params=VERSIONS)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A devnet of each version, or the node that CHAIN_GRPC names; tests leave it as it is but for what they send."""
    with open_node(request.param, tmp_path_factory.mktemp("node") / "home") as opened:
        yield opened


@pytest.fixture
async def chain(node: Node) -> AsyncIterator[ChainClient]:
    async with node.client() as opened:
        yield opened
