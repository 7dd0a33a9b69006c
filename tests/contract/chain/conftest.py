from __future__ import annotations

from collections.abc import Iterator

import pytest
from devnet_process import Devnet, devnet


@pytest.fixture(scope="session")
def shared_devnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    """One devnet for the tests that leave it as it is."""
    with devnet(tmp_path_factory.mktemp("devnet") / "home", "--index-lag-seconds", "0.05") as running:
        yield running
