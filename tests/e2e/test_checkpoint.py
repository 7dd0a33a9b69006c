"""The chain nodes forget old blocks: a host enters or goes on by a checkpoint, and without one stops with a remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.checkpoint_own import own_checkpoint
from gonka_trainer.app.checkpoint_text import CheckpointText, parse_checkpoint
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.config_file import load_config
from tests.e2e.harness import WINDOWS, CastStage, Net, command, numpy_command, toy_net
from tests.e2e.test_members import absent, start, until_posted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SHORT = replace(WINDOWS, train_blocks=40, commit_blocks=30, attest_blocks=30, state_blocks=40)
FLAGS = ("--control", "127.0.0.1:0")
WORLD: dict[str, Any] = {"hosts": 4, "rounds": 1000, "windows": SHORT, "devnet_flags": FLAGS}


def slowly(*late: str) -> Any:
    """Steps take half a second, so that few rounds pass while commands run; some hosts are not started."""

    async def before_start(stage: CastStage, run: Accepted) -> None:
        await absent(*late)(stage, run)
        paced = numpy_command().replace('.py"]', '.py", "--step-seconds", "0.5"]')
        for host in stage.hosts:
            stage.edits[host.name] = {numpy_command(): paced}

    return before_start


async def prune(net: Net, below: int) -> None:
    """Have the chain node forget all blocks and states below the height (0: remember all again)."""
    url = f"http://{net.stage.control}/prune"
    async with aiohttp.ClientSession() as session, session.post(url, json={"below": below}) as answer:
        assert answer.status == 200, await answer.text()


async def checkpoint(net: Net) -> tuple[str, CheckpointText]:
    """The line of the first host; the second says the same at the same round, whatever hosts they name."""
    said: list[CheckpointText] = []

    def same() -> bool:
        said[:] = [own_checkpoint(load_config(host.config), None) for host in net.hosts[:2]]
        return said[0].checkpoint.round == said[1].checkpoint.round

    await net.until("two hosts are in the same round", same)
    assert said[0].checkpoint == said[1].checkpoint
    status, out, err = await command("checkpoint", "--config", str(net.hosts[0].config))
    assert status == 0, err
    return out.strip(), parse_checkpoint(out.strip(), "test")


async def stops(net: Net, host: DemoHost) -> str:
    """Wait until the daemon has ended by itself, with an error; return its last words."""
    process = net.stage.processes[host.name]
    await net.until(f"{host.name} stops", lambda: process.returncode is not None)
    assert process.returncode == 1
    return net.log(host)[-2000:]


async def enter(net: Net, host: DemoHost, line: str) -> None:
    told = await command("join", str(net.out / "manifest.json"), "--checkpoint", line, "--config", str(host.config))
    assert told[0] == 0, told
    await net.stage.start_host(host)


async def all_agree(net: Net) -> None:
    """With the old blocks back: what everybody saw is what the chain says."""
    await prune(net, 0)
    await net.assert_single_words()
    await net.assert_same_roots()


def journal_size(host: DemoHost) -> int:
    return sum(path.stat().st_size for path in host.data.glob("runs/*/journal/events"))


async def test_a_new_host_enters_a_run_whose_first_blocks_are_gone(tmp_path: Path) -> None:
    slow = slowly("host-4")
    async with toy_net(tmp_path, min_weight=2, chain_version="0.2.0", before_start=slow, **WORLD) as net:
        first, late = net.hosts[0], net.hosts[3]
        await net.until_round_ended(first, 1)
        line, said = await checkpoint(net)
        assert said.checkpoint.round >= 2
        assert said.task_id > 0
        await prune(net, said.checkpoint.height + 1)

        await start(net, late)
        words = await stops(net, late)
        assert "no longer has" in words
        assert "gonka-trainer join MANIFEST --checkpoint" in words

        await enter(net, late, line)
        told = await until_posted(net, late, said.checkpoint.round)
        assert told["states"][late.address]["root"] == told["root"]
        assert min(net.outcomes(late)) >= said.checkpoint.round

        net.kill(late)
        await net.restart(late)
        again = await until_posted(net, late, told["round"])
        assert again["outcome"] == "final"
        await all_agree(net)


@pytest.mark.slow
async def test_a_host_that_was_away_too_long_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    async with toy_net(tmp_path, min_weight=3, before_start=slowly(), **WORLD) as net:
        first, away = net.hosts[0], net.hosts[3]
        await net.until_phase(away, 1, "commit")
        spoken = net.status(away)["round"]
        net.kill(away)
        await net.stage.processes[away.name].wait()
        await net.until_round_ended(first, spoken + 1)
        line, said = await checkpoint(net)
        assert said.checkpoint.round > spoken
        await prune(net, said.checkpoint.height + 1)

        await net.stage.start_host(away)
        words = await stops(net, away)
        assert "no longer has" in words
        assert "--checkpoint" in words
        kept = journal_size(away)

        await enter(net, away, line)
        told = await until_posted(net, away, said.checkpoint.round)
        assert told["states"][away.address]["root"] == told["root"]
        assert journal_size(away) > kept  # the same journal goes on
        await all_agree(net)
