"""The corpus that a manifest pins, and what a requester's run may cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from gonka_trainer.app.accepted import AcceptedRuns, accept
from gonka_trainer.app.budget import MeteredLog, metered
from gonka_trainer.app.corpus import Corpus
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, RunsConfig, WorkerConfig
from gonka_trainer.errors import ChainError
from gonka_trainer.ports import Block, FoundRun, Receipt
from gonka_trainer.round.records import Heartbeat, PlacedRecord, Record
from gonka_trainer.types import Address, Digest, Height
from tests.support.tiny_run import make_run


async def test_the_corpus(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    pinned, corpus = run.manifest.data, Corpus(run.data)
    assert await corpus.fault(pinned) == ""
    assert "SHA-256" in await corpus.fault(replace(pinned, sha256="00" * 32))
    assert f"corpus of {pinned.size_bytes + 1}" in await corpus.fault(replace(pinned, size_bytes=pinned.size_bytes + 1))
    changed = bytearray(run.data.read_bytes())
    changed[0] ^= 1
    run.data.write_bytes(changed)
    os.utime(run.data, ns=(1, 1))  # whatever the clock's grain is, the file is another one
    assert "SHA-256" in await corpus.fault(pinned)
    run.data.unlink()
    assert "No such file" in await corpus.fault(pinned)


@dataclass
class Log:
    """A run log in which everything costs ten."""

    sent: list[Record] = field(default_factory=list)

    def records(self, _block: Block) -> tuple[PlacedRecord, ...]:
        return ()

    async def publish(self, records: Sequence[Record]) -> Receipt:
        self.sent += records
        return Receipt("AA", Height(1), 10, 5)


async def test_nothing_is_sent_once_the_limit_is_reached(tmp_path: Path) -> None:
    log, path = Log(), tmp_path / "spent"
    for step in range(3):
        assert (await MeteredLog(log, path, 25).publish([Heartbeat(0, step)])).fee == 10  # anew, as after restarts
    with pytest.raises(ChainError, match=r"has cost 30 in fees, runs\.max_fee is 25") as caught:
        await MeteredLog(log, path, 25).publish([Heartbeat(0, 3)])
    assert "raise runs.max_fee" in caught.value.remedy
    assert len(log.sent) == 3
    await MeteredLog(log, path, 31).publish([Heartbeat(0, 3)])
    assert MeteredLog(log, path, 31).spent() == 40


def config(folder: Path, max_fee: int) -> Config:
    return Config(
        data_dir=str(folder),
        chain=ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", "chain"),
        keys=KeyConfig("account.key"),
        exchange=ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        worker=WorkerConfig("corpus.txt"),
        runs=RunsConfig(max_fee=max_fee),
    )


def test_only_requesters_runs_are_metered(tmp_path: Path) -> None:
    run = accept(make_run(tmp_path).manifest_path.read_bytes(), "manifest")
    runs, log, run_id = AcceptedRuns(tmp_path / "data"), Log(), Digest(b"\x05" * 32)
    folder = tmp_path / "data"
    runs.add(run)
    assert metered(config(folder, 10), run.hash, run_id, log) is log
    runs.take(run, FoundRun(run.hash, "", Address(b"\x01" * 20), Height(1), 0))
    assert metered(config(folder, 0), run.hash, run_id, log) is log
    assert isinstance(metered(config(folder, 10), run.hash, run_id, log), MeteredLog)
