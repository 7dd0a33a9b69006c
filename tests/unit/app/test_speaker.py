"""A run's folder belongs to one participant: another one is refused before anything is read or sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gonka_trainer.app.accepted import AcceptedRuns, accept
from gonka_trainer.app.host import RunHost, Speaker, run_folder
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.runlog import MemoRunLog
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.errors import ConfigError
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.types import Address
from tests.support.tiny_run import make_run

OWN, OTHER = Address(b"\x01" * 20), Address(b"\x02" * 20)


async def test_another_participants_folder(tmp_path: Path) -> None:
    run = accept(make_run(tmp_path).manifest_path.read_bytes(), "manifest")
    config = Config(
        data_dir=str(tmp_path / "data"),
        chain=ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", "test-1"),
        keys=KeyConfig("account.key"),
        exchange=ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        worker=WorkerConfig(str(tmp_path / "corpus.txt")),
    )
    folder = run_folder(config, run)
    folder.mkdir(parents=True)
    (folder / "participant").write_text(encode_address(OTHER, "gonka"))
    host = new_host(config, run, Speaker(OWN, OWN))
    with pytest.raises(ConfigError, match=f"is of participant {encode_address(OTHER, 'gonka')}") as caught:
        await host.run()
    assert "use another data_dir" in caught.value.remedy
    assert not (folder / "journal").exists()
    assert not (tmp_path / "data" / "tls.pem").exists()
    for key in (OWN, OTHER):  # the key may change, the participant not
        with pytest.raises(ConfigError, match="is of participant"):
            await new_host(replace(config), run, Speaker(OWN, key)).run()


def new_host(config: Config, run: object, speaker: Speaker) -> RunHost:
    chain = ChainClient(NodeAddress("127.0.0.1:1", "http://127.0.0.1:1"))
    gpu = GpuTurns(FileStops(config.data_path / "stops.json", 1.0))
    log = MemoRunLog.__new__(MemoRunLog)  # never reached
    return RunHost(config, run, speaker, chain, log, AcceptedRuns(config.data_path), gpu)
