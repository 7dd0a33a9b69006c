"""NODE_RANK, NNODES, MASTER_ADDR, MASTER_PORT: read strictly, turned into torchrun's arguments, and really met by."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from support.tiny_run import TinyRun, make_run

from gonka_trainer.app.machines import own_rendezvous, run_worker_machine
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.errors import ConfigError, WorkerError
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.rendezvous import Rendezvous, read_rendezvous
from gonka_trainer.trainer.trainer import open_trainer
from tests.unit.trainer.test_trainer_torch import PARAMETERS

GOOD = {"NODE_RANK": "1", "NNODES": "3", "MASTER_ADDR": "shard-0.example", "MASTER_PORT": "29500"}


def config(folder: Path, rendezvous: str = "environment") -> Config:
    return Config(
        data_dir=str(folder / "data"),
        chain=ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", "chain"),
        keys=KeyConfig("account.key"),
        exchange=ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        worker=WorkerConfig(str(folder / "corpus.txt"), rendezvous=rendezvous),
    )


def test_the_four_variables() -> None:
    assert read_rendezvous(GOOD) == Rendezvous(1, 3, "shard-0.example", 29500)
    for address in ("10.0.0.7", "::1", "fd00::17", "localhost"):
        assert read_rendezvous({**GOOD, "MASTER_ADDR": address}).address == address


@pytest.mark.parametrize("name", GOOD)
def test_a_variable_that_is_missing(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not set"):
        read_rendezvous({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NODE_RANK", "3"),
        ("NODE_RANK", "-1"),
        ("NODE_RANK", ""),
        ("NODE_RANK", "1 "),
        ("NODE_RANK", "one"),
        ("NODE_RANK", "١"),
        ("NNODES", "0"),
        ("NNODES", "1:3"),
        ("NNODES", "1025"),
        ("NNODES", "9" * 5000),
        ("MASTER_PORT", "0"),
        ("MASTER_PORT", "65536"),
        ("MASTER_PORT", "0x10"),
        ("MASTER_ADDR", ""),
        ("MASTER_ADDR", "a b"),
        ("MASTER_ADDR", "host:29500"),
        ("MASTER_ADDR", "-x"),
        ("MASTER_ADDR", "http://host"),
        ("MASTER_ADDR", "h" * 300),
    ],
)
def test_a_value_that_is_wrong(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rendezvous({**GOOD, name: value})
    assert caught.value.what.startswith(f"{name}='{value[:20]}")
    assert len(caught.value.what) < 250


def test_one_that_torchrun_has_started_already() -> None:
    with pytest.raises(ConfigError, match="LOCAL_RANK=0"):
        read_rendezvous({**GOOD, "LOCAL_RANK": "0"})


def test_arguments(run: TinyRun) -> None:
    alone = WorkerSettings(run.manifest_path, run.data, run.folder)
    assert "--standalone" in alone.whole_command
    met = WorkerSettings(run.manifest_path, run.data, run.folder, rendezvous=read_rendezvous(GOOD)).whole_command
    flags = ("--nnodes=3", "--node-rank=1", "--master-addr=shard-0.example", "--master-port=29500")
    assert met[3:7] == flags
    assert "--standalone" not in met
    assert met[7:] == alone.whole_command[4:]


async def test_who_runs_where(tmp_path: Path) -> None:
    there = WorkerConfig("corpus.txt", rendezvous="environment")
    assert own_rendezvous(WorkerConfig("corpus.txt"), {}) is None
    assert own_rendezvous(there, {**GOOD, "NODE_RANK": "0"}) == Rendezvous(0, 3, "shard-0.example", 29500)
    with pytest.raises(ConfigError, match="daemon runs on machine 0 of 3") as caught:
        own_rendezvous(there, GOOD)
    assert "gonka-trainer worker" in caught.value.remedy
    with pytest.raises(ConfigError, match="daemon's machine") as caught:
        await run_worker_machine(config(tmp_path), {**GOOD, "NODE_RANK": "0"})
    assert "gonka-trainer run" in caught.value.remedy
    with pytest.raises(ConfigError, match="standalone"):
        await run_worker_machine(config(tmp_path, "standalone"), GOOD)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def at_loopback(nodes: int, node_rank: int, port: int) -> dict[str, str]:
    return {
        "NNODES": str(nodes),
        "NODE_RANK": str(node_rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


async def test_one_machine_trains_by_the_environment(tmp_path: Path) -> None:
    run = make_run(tmp_path, PARAMETERS)
    met = own_rendezvous(WorkerConfig("", rendezvous="environment"), at_loopback(1, 0, free_port()))
    async with open_trainer(WorkerSettings(run.manifest_path, run.data, run.folder, rendezvous=met)) as trainer:
        done = await trainer.train(run.job(inner_steps=3), lambda _: None)
        before, after = [(await trainer.evaluate("", path)).loss for path in (str(run.base), done.output)]
    assert (done.inner_steps, trainer.starts) == (3, 1)
    assert after < before


@pytest.mark.slow
async def test_two_machines_meet_and_both_say_that_one_is_what_this_version_trains_on(tmp_path: Path) -> None:
    run, port = make_run(tmp_path, PARAMETERS), free_port()
    first = read_rendezvous(at_loopback(2, 0, port))
    other = asyncio.create_task(run_worker_machine(config(tmp_path), at_loopback(2, 1, port)))
    log = tmp_path / "data" / "worker-1.log"
    try:
        settings = WorkerSettings(run.manifest_path, run.data, run.folder, rendezvous=first)
        async with open_trainer(settings) as trainer:
            with pytest.raises(WorkerError, match="one of 2 processes: this version trains on one") as caught:
                await trainer.start()
        assert "NNODES=1" in caught.value.remedy
        async with asyncio.timeout(120):
            while not (log.exists() and "one of 2 processes: this version trains on one" in log.read_text()):
                assert not other.done()
                await asyncio.sleep(0.1)
    finally:
        other.cancel()
        await asyncio.wait((other,))
