"""A run that strangers announce again and again: what this host has of it is read once a look, not once for each."""

from __future__ import annotations

from pathlib import Path

from gonka_trainer.app.accepted import Accepted, AcceptedRuns, accept
from gonka_trainer.app.finding import Finder
from gonka_trainer.app.policy import Answer
from gonka_trainer.app.standing import Standings
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.ports import Block, FoundRun, NodeInfo, ProofOfCompute
from gonka_trainer.round.environment import Environment
from gonka_trainer.types import Address, Digest, Height
from tests.support.tiny_run import make_run


class Node:
    """A chain that is only asked what it is."""

    async def info(self) -> NodeInfo:
        return NodeInfo("test-1", Height(9000), Height(1), 0, False, "0", False)

    async def block(self, height: Height) -> Block:
        raise AssertionError(height)

    async def environment(self, height: Height) -> Environment:
        raise AssertionError(height)

    async def proof_of_compute(self) -> ProofOfCompute:
        raise AssertionError


class Flood:
    """Announcements of one run by many."""

    settled = True

    def __init__(self, run: Digest, count: int) -> None:
        self.found = [
            FoundRun(run, f"https://{i}.example", Address(i.to_bytes(20, "big")), Height(i), 0)
            for i in range(1, count + 1)
        ]

    async def runs(self, since: Height) -> tuple[FoundRun, ...]:
        return tuple(run for run in self.found if run.height >= since)

    async def vouched(self, run: FoundRun) -> bool:
        return run.task_id == 0


class Counted(AcceptedRuns):
    """Counts how often a manifest is read, which takes milliseconds of the one thread that all else waits for."""

    reads = 0

    def get(self, run: Digest) -> Accepted | None:
        self.reads += 1
        return super().get(run)


async def test_a_manifest_is_read_once_a_look(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    agreed = accept(run.manifest_path.read_bytes(), "the run")
    config = Config(
        str(tmp_path / "data"),
        ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", "test-1"),
        KeyConfig("account.key"),
        ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        WorkerConfig(str(run.data)),
    )
    runs = Counted(config.data_path)
    runs.add(agreed)
    node = Node()
    standings = Standings(config, Address(bytes(20)), node, Finder(node, (Flood(agreed.hash, 500),)), runs)
    await standings.look()
    runs.reads = 0
    found = await standings.standings()
    assert [each.decision.answer for each in found] == [Answer.START] * 500
    assert runs.reads == 1
    assert [line.standing for line in await standings.lines()] == ["agreed"]
    assert runs.reads == 2
