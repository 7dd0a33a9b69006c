"""The key commands that speak to a chain, run as a user does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_log_world import CHAIN_ID, Devnet, client, key, text

from gonka_trainer.__main__ import main
from gonka_trainer.app.accepted import accept
from gonka_trainer.app.reading import RunReader
from gonka_trainer.chain.keyfiles import write_secret
from gonka_trainer.chain.service import Account
from gonka_trainer.manifest import render_manifest
from gonka_trainer.types import Address
from tests.e2e.harness import WINDOWS, toy_manifest
from tests.support.tiny_run import text as corpus

CONFIG = """\
data_dir = "data"
[chain]
grpc = "{grpc}"
rpc = "http://{rpc}"
chain_id = "{chain}"
[keys]
account_file = "warm.key"
participant = "{participant}"
[exchange]
bind = "127.0.0.1:0"
advertise = "127.0.0.1:0"
[worker]
data = "corpus.txt"
"""


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `gonka-trainer keys` in the test's folder; return what it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["gonka-trainer", "keys", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = "".join(capfd.readouterr())
        assert (ended.value.code or 0) == status, said
        return said

    return run


async def at_the_tip(net: Devnet, name: str) -> tuple[int, Account]:
    async with client(net) as chain:
        return max(1, (await chain.info()).height), await chain.tx.account(key(name).address)


async def delegate_of(net: Devnet, manifest: Path, name: str) -> Address | None:
    async with client(net, verify=False) as chain:  # with it the last block waits for the next one
        reader = RunReader(chain, accept(manifest.read_bytes(), "run.json"), 0.05)
        async for _ in reader.to_tip():
            pass
        return reader.state.membership.standing(key(name).address).delegate


def write_manifest(folder: Path, height: int) -> Path:
    (folder / "corpus.txt").write_bytes(corpus())
    hosts = [SimpleNamespace(address=text(name)) for name in ("alice", "bob")]
    stage: Any = SimpleNamespace(chain=SimpleNamespace(chain_id=CHAIN_ID), hosts=hosts)
    made = toy_manifest(stage, height, folder / "corpus.txt", "memo", 3, WINDOWS, 2, name=folder.name)
    (folder / "run.json").write_bytes(render_manifest(made))
    return folder / "run.json"


def test_grants_tell_the_command_that_makes_them_good(
    shared_net: Devnet, tmp_path: Path, keys: Callable[..., str]
) -> None:
    height, account = asyncio.run(at_the_tip(shared_net, "carol"))
    manifest = write_manifest(tmp_path, height)
    write_secret(tmp_path / "warm.key", key("bob").file_content(None))
    write_secret(tmp_path / "cold.key", key("carol").file_content(None))
    names = {"grpc": shared_net.grpc, "rpc": shared_net.rpc, "chain": CHAIN_ID, "participant": text("carol")}
    (tmp_path / "gonka-trainer.toml").write_text(CONFIG.format(**names))
    lacks = keys("grants", "run.json", status=1)
    assert "MISSING" in lacks
    command = next(line for line in lacks.splitlines() if "keys delegate" in line).split()
    assert command[:2] == ["gonka-trainer", "keys"]

    # The command as it was told, but made without network, and sent afterwards.
    told = [part.replace("COLD.key", "cold.key") for part in command[2:]]
    numbers = ["--account-number", str(account.number), "--sequence", str(account.sequence), "--height", str(height)]
    asked = keys(*told, "--offline", "signed.json", status=1)
    assert "--account-number, --sequence and --height" in asked
    said = keys(*told, "--offline", "signed.json", *numbers)
    assert f"{text('carol')} lets {text('bob')} speak for it" in said
    secret = key("carol").file_content(None).decode().strip()
    assert secret not in (tmp_path / "signed.json").read_text() + said
    assert json.loads((tmp_path / "signed.json").read_text())["sequence"] == account.sequence
    assert asyncio.run(delegate_of(shared_net, manifest, "carol")) is None
    node = ["--grpc", shared_net.grpc, "--rpc", f"http://{shared_net.rpc}"]
    assert "in block" in keys("broadcast", "signed.json", *node)
    assert asyncio.run(delegate_of(shared_net, manifest, "carol")) == key("bob").address
    assert "MISSING" not in keys("grants", "run.json")
    assert "error" in keys("broadcast", "signed.json", *node, status=1)
