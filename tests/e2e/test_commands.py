"""What a researcher, an operator and an observer type, on a real chain with real hosts."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.opening import make_sender, open_client, open_run_log
from gonka_trainer.chain.keys import create_key, load_key
from gonka_trainer.cli.commands import app
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.manifest import manifest_hash
from gonka_trainer.round.naming import run_id
from gonka_trainer.round.records import Commit
from gonka_trainer.types import sha256
from tests.e2e.harness import WINDOWS, CastStage, Net, command, toy_net
from tests.support.tiny_run import CONFIG

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MORTAL = Path(__file__).parents[1] / "support" / "mortal.py"
LONG = replace(WINDOWS, train_blocks=200, commit_blocks=100, attest_blocks=40, state_blocks=60)


def at_once(*arguments: str) -> str:
    """Run a command that needs no chain, in this process, and return what it printed."""
    told = CliRunner().invoke(app, list(arguments))
    assert told.exit_code == 0, f"{arguments}: {told.output}"
    return told.stdout


async def done(*arguments: str) -> str:
    """Run a command that must succeed, and return what it printed."""
    code, out, err = await command(*arguments)
    assert code == 0, f"{arguments}: {out}\n{err}"
    return out


async def new_run(net: Net) -> Accepted:
    """Make, check and announce a second run as a researcher does; nobody agrees to it."""
    out, node = net.out, ["--grpc", net.stage.chain.grpc, "--rpc", net.stage.chain.rpc]
    path, model = str(out / "llama.json"), out / "config.json"
    model.write_text(json.dumps(CONFIG))
    members = [flag for host in net.hosts for flag in ("--participant", host.address)]
    settings = ["--set", "inner.steps=5", "--set", "inner.sequence_tokens=32", "--set", "end.rounds=2"]
    corpus = str(out / "corpus.txt")
    said = await done(
        "spec", "new", path, "--model", str(model), "--data", corpus, "--name", "llama", *members, *settings, *node
    )
    run = accept(Path(path).read_bytes(), path)
    assert run.hash.hex() in said
    assert (run.manifest.inner.steps, run.manifest.end.rounds) == (5, 2)
    assert run.manifest.membership.participants == tuple(host.address for host in net.hosts)
    assert at_once("spec", "hash", path).strip() == run.hash.hex() == manifest_hash(run.document).hex()
    told = " ".join(at_once("spec", "check", path).split())
    for fact in ("run llama", "5 inner steps", "after 2 rounds", "2 participants of equal weight"):
        assert fact in told
    announced = await done("announce", path, "--key", str(net.stage.researcher), *node)
    assert run.hash.hex() in announced
    return run


async def start_with_nothing(net: Net, host: DemoHost) -> None:
    """Start a host whose operator has agreed to nothing, and wait until it says so."""
    shutil.rmtree(host.data)
    net.stage.absent.discard(host.name)
    await net.stage.start_host(host)
    await net.until("it waits", lambda: "no agreed run is on chain yet" in net.log(host))


async def contradict(net: Net, host: DemoHost, round_number: int) -> None:
    """Publish a second, different commitment with the member's own key."""
    chain = net.stage.chain
    async with open_client(chain) as client:
        sender = make_sender(client, chain, load_key(host.folder / "account.key"), net.out / "sent")
        log = await open_run_log(client, sender, net.run.manifest, net.run.hash)
        await log.publish([Commit(round_number, sha256(b"another"))])


def committed(net: Net, host: DemoHost, round_number: int) -> bool:
    return any(t["record"] == "Commit" and t["round"] == round_number for t in net.transactions(host))


@asynccontextmanager
async def two_hosts(out: Path) -> AsyncIterator[Net]:
    """A run of three rounds whose hosts are not started yet; host-2 dies before it commits in round 1."""

    async def before_start(stage: CastStage, _run: Accepted) -> None:
        stage.absent |= {"host-1", "host-2"}

    programs = {"host-2": [str(MORTAL), "--at", "journalled", "--since", "1"]}
    async with toy_net(
        out, hosts=2, rounds=3, min_weight=2, windows=LONG, programs=programs, before_start=before_start
    ) as net:
        yield net


async def test_a_run_from_its_making_to_its_audit(tmp_path: Path) -> None:
    async with two_hosts(tmp_path) as net:
        first, second = net.hosts
        manifest, node = str(tmp_path / "manifest.json"), ["--grpc", net.stage.chain.grpc, "--rpc", net.stage.chain.rpc]
        foreign = await new_run(net)

        # One operator agrees by the document, the other by the hash alone: its daemon gets the document from the first.
        await start_with_nothing(net, first)
        at_once("join", manifest, "--config", str(first.config))
        await net.until("host-1 joined", lambda: any(t["record"] == "Join" for t in net.transactions(first)))
        await start_with_nothing(net, second)
        at_once("join", net.run.hash.hex(), "--config", str(second.config))
        await net.until("host-2 dies", lambda: "dying at journalled in round 1" in net.log(second), 240)
        assert (second.data / "accepted" / f"{net.run.hash.hex()}.json").read_bytes() == net.run.document

        # Host-1 has committed and the round waits for host-2. So far the run is honest; then host-1 is not.
        await net.until("host-1 committed", lambda: committed(net, first, 1))
        honest = await done("audit", manifest, *node)
        assert "round 0: final" in honest
        assert "CONTRADICTION" not in honest
        await contradict(net, first, 1)
        net.stage.programs.clear()
        await net.restart(second)
        await net.until_ended()

        await assert_audit(net, manifest, node)
        await assert_fetched(net, node)
        (said,) = json.loads(at_once("status", "--json", "--config", str(first.config)))
        assert (said["host"], said["phase"]) == (first.address, "ended")
        await net.assert_same_roots()
        with pytest.raises(AssertionError):  # what the tests of crashes rest on sees the second commitment
            await net.assert_single_words()
        await assert_never_started(net, foreign)


async def assert_audit(net: Net, manifest: str, node: list[str]) -> None:
    code, out, err = await command("audit", manifest, "--json", *node)
    assert code == 2, err
    found = json.loads(out)
    assert [note["author"] for note in found["contradictions"]] == [net.hosts[0].address]
    assert [r["root"] for r in found["rounds"]] == [r["root"] for r in net.rounds(net.hosts[0])]


async def assert_fetched(net: Net, node: list[str]) -> None:
    """An observer who has the hash alone gets the final parameters, byte for byte, and where they are from."""
    run, target = net.run, net.out / "fetched"
    key = str(net.stage.researcher)
    await done("fetch", run.hash.hex(), str(target), "--key", key, *node)
    root = net.rounds(net.hosts[0])[-1]["root"]
    facts: dict[str, Any] = json.loads((target / "provenance.json").read_text())
    assert (facts["manifest"], facts["round"], facts["state_root"]) == (run.hash.hex(), 2, root)
    assert sha256(b"gonka-trainer/state/1", bytes.fromhex(facts["state"])).hex() == root
    assert (target / "manifest.json").read_bytes() == run.document
    parameters = (target / "parameters.f32").read_bytes()
    assert len(parameters) == 4 * run.manifest.layout.total_elements
    for host in net.hosts:
        (payload,) = host.data.glob(f"runs/*/objects/states/{root}/payload")
        assert payload.read_bytes()[: len(parameters)] == parameters


async def assert_never_started(net: Net, foreign: Accepted) -> None:
    """Nobody agreed to the run: no host joined, fetched or even named it."""
    folder = run_id(foreign.manifest.chain_id, foreign.hash).hex()[:16]
    for host in net.hosts:
        assert foreign.hash.hex() not in net.log(host)
        assert not (host.data / "runs" / folder).exists()
    assert await replace(net, run=foreign).records() == []


async def test_what_is_wrong_in_a_configuration_is_named(tmp_path: Path) -> None:
    config = tmp_path / "gonka-trainer.toml"
    config.write_text(_CONFIG.format(grpc="nonsense", rpc="http://127.0.0.1:1"))
    code, _, err = await command("run", "--config", str(config))
    assert code == 1
    assert f"{config}: chain.grpc: 'nonsense'" in err
    assert "Traceback" not in err
    for arguments in (("announce", "none.json", "--key", "none.key"), ("audit", "none.json")):
        code, _, err = await command(*arguments)
        assert code == 1
        assert "none.json" in err
        assert "Traceback" not in err


async def test_a_daemon_waits_for_a_node_that_does_not_answer_and_says_which(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
        node = f"127.0.0.1:{taken.getsockname()[1]}"
        config = tmp_path / "gonka-trainer.toml"
        config.write_text(_CONFIG.format(grpc=node, rpc=f"http://{node}"))
        create_key(tmp_path / "account.key")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gonka_trainer", "run", "--config", str(config), stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        said: list[str] = []
        while len(said) < 2:
            line = (await asyncio.wait_for(process.stderr.readline(), 120)).decode()
            assert line, "it ended"
            said += [line] if "chain node" in line else []  # other services say where they listen
        assert process.returncode is None
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    for line in said:
        assert f"{node} does not answer" in line
        assert "trying again" in line


_CONFIG = """\
data_dir = "data"

[chain]
grpc = "{grpc}"
rpc = "{rpc}"
chain_id = "gonka-devnet"

[keys]
account_file = "account.key"

[exchange]
bind = "127.0.0.1:0"
advertise = "127.0.0.1:0"

[worker]
data = "corpus.txt"
"""
