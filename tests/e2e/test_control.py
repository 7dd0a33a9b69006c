"""An operator drives a running daemon over its control socket, by the command line and by the service itself."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.control.client import open_control
from tests.e2e.harness import INNER, WINDOWS, CastStage, Net, command, toy_net

LONG = replace(WINDOWS, train_blocks=100)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

WORKER = 'numpy_worker.py"]'
SLOW_WORKER = 'numpy_worker.py", "--step-seconds", "3"]'


async def told(*arguments: str) -> str:
    code, out, err = await command(*arguments)
    assert code == 0, f"{arguments}: {out}\n{err}"
    return out


async def status(host: DemoHost) -> Any:
    async with open_control(host.data / "control.sock") as daemon:
        return await daemon.status()


async def read_along(host: DemoHost, into: list[dict[str, Any]], connected: asyncio.Event) -> None:
    async with open_control(host.data / "control.sock") as daemon:
        assert (await daemon.status()).standing in {"waiting", "serving"}
        connected.set()
        async for event in daemon.events([]):
            into.append(event)


def trains(net: Net, host: DemoHost) -> bool:
    """Whether some, but not all, of the open round's inner steps are made."""
    now = net.status(host)
    open_round = now.get("phase") == "train" and now.get("training_round") == now.get("round")
    return open_round and 0 < now.get("inner_step", 0) < INNER.steps - 2


def own(net: Net, host: DemoHost, round_number: int) -> dict[str, Any]:
    return next(r["own"] for r in net.rounds(host) if r["round"] == round_number)


def trained(net: Net, host: DemoHost) -> int:
    """The last round, of those that have ended, for which the host made inner steps."""
    return max((r["round"] for r in net.rounds(host) if r["own"].get("inner_steps")), default=-1)


def assert_same_rounds(net: Net) -> None:
    """The hosts saw each round end alike, and the one that was drained never committed twice."""
    told = [net.outcomes(host) for host in net.hosts]
    common = set.intersection(*(set(each) for each in told))
    assert all(told[0][number] and len({each[number] for each in told}) == 1 for number in common)
    commits = [t["round"] for t in net.transactions(net.hosts[0]) if t["record"] == "Commit"]
    assert len(commits) == len(set(commits))


def committed(net: Net, host: DemoHost, round_number: int) -> bool:
    return any(t["record"] == "Commit" and t["round"] == round_number for t in net.transactions(host))


async def test_drain_restart_resume_and_stop(tmp_path: Path) -> None:
    async def before_start(stage: CastStage, _run: Accepted) -> None:
        stage.edits["host-1"] = {WORKER: SLOW_WORKER}

    async with toy_net(
        tmp_path, hosts=3, rounds=1000, windows=LONG, block_seconds=0.2, before_start=before_start
    ) as net:
        host, flag = net.hosts[0], ["--config", str(net.hosts[0].config)]
        seen: list[dict[str, Any]] = []
        connected = asyncio.Event()
        reading = asyncio.create_task(read_along(host, seen, connected))
        await asyncio.wait_for(connected.wait(), 60)
        await net.until("host-1 trains", lambda: trains(net, host))
        number = net.status(host)["round"]
        async with open_control(host.data / "control.sock") as daemon:
            await daemon.drain()

        # What there was of the round is committed, and no process of the worker is left.
        assert committed(net, host, number)
        said = await status(host)
        assert (said.asked, said.gpus_in_use, [hold.who for hold in said.holds]) == ("drain", False, ["operator"])
        await net.until_round_ended(host, number)
        assert 0 < own(net, host, number)["inner_steps"] < INNER.steps

        # A restart does not give the GPUs back.
        await net.until("the reader learns of it", lambda: "round_final" in {event["kind"] for event in seen})
        net.kill(host)
        await net.restart(host)
        await net.until("host-1 is back", lambda: "operator's drain still stands" in net.log(host))
        await asyncio.wait_for(reading, 60)
        await net.until_round_ended(host, number + 1)
        assert (await status(host)).asked == "drain"
        assert own(net, host, number + 1).get("inner_steps", 0) == 0

        assert "resumed" in await told("resume", *flag)
        await net.until("host-1 trains again", lambda: trained(net, host) > number + 1)
        assert_same_rounds(net)
        assert "ends" in await told("stop", *flag)
        assert await asyncio.wait_for(net.stage.processes[host.name].wait(), 60) == 0
        code, _, err = await command("pause", *flag)
        assert (code, "no daemon runs" in err, "Traceback" in err) == (1, True, False)

    kinds = {event["kind"] for event in seen}
    assert kinds >= {"phase", "transaction", "gpu_held", "round_final"}
    assert [event["sequence"] for event in seen] == sorted(event["sequence"] for event in seen)
    assert json.loads(json.dumps(seen)) == seen
