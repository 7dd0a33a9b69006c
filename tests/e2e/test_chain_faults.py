"""The chain node stands still, starts again, refuses and loses transactions: rounds go on, and all roots are equal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.manifest import WindowSpec
from tests.e2e.harness import WINDOWS, CastStage, Net, toy_net
from tests.e2e.proxy import BroadcastProxy, Gate

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LONG = replace(WINDOWS, train_blocks=100, commit_blocks=40, attest_blocks=40, state_blocks=60)
VERY_LONG = replace(WINDOWS, train_blocks=400, commit_blocks=400, attest_blocks=60, state_blocks=60)


async def goes_on(net: Net, rounds: int) -> None:
    """The run ends, every round of it final with all hosts in, and every host has the same roots."""
    await net.until_ended()
    for host in net.hosts:
        seen = net.rounds(host)
        assert [(r["round"], r["outcome"]) for r in seen] == [(n, "final") for n in range(rounds)], net.log(host)
    await net.assert_single_words()
    await net.assert_same_roots()


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [("train", 15.0), ("attest", 15.0), ("train", 60.0)],
)
@pytest.mark.slow
async def test_the_chain_stands_still(tmp_path: Path, phase: str, seconds: float) -> None:
    async with toy_net(tmp_path, rounds=3, min_weight=3, windows=LONG) as net:
        await net.until_phase(net.hosts[0], 1, phase)
        chain = net.stage.processes["devnet"]
        chain.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)  # the fault itself: a chain that stands still for this long
        finally:
            chain.send_signal(signal.SIGCONT)
        await goes_on(net, 3)


async def test_the_chain_node_starts_again(tmp_path: Path) -> None:
    async def down() -> None:
        """Stay away until every host has noticed."""
        marks = [net.log(host).count("does not answer") for host in net.hosts]

        def noticed() -> bool:
            return all(net.log(h).count("does not answer") > m for h, m in zip(net.hosts, marks, strict=True))

        await net.until("the hosts notice", noticed)

    async with toy_net(tmp_path, rounds=3, min_weight=3, windows=LONG) as net:
        await net.until_phase(net.hosts[0], 0, "train")
        await net.stage.restart_chain(signal.SIGTERM, down)
        await net.until_phase(net.hosts[0], 1, "train")
        await net.stage.restart_chain(signal.SIGKILL, down)
        await goes_on(net, 3)


@asynccontextmanager
async def proxied(out: Path, windows: WindowSpec) -> AsyncIterator[tuple[Net, BroadcastProxy]]:
    """Three hosts, of which host-3 talks to its node through the proxy."""
    async with AsyncExitStack() as stack:
        found: list[BroadcastProxy] = []

        async def before_start(stage: CastStage, _run: Accepted) -> None:
            proxy = await stack.enter_async_context(BroadcastProxy(stage.chain.grpc))
            stage.edits["host-3"] = {f'grpc = "{stage.chain.grpc}"': f'grpc = "{proxy.address}"'}
            found.append(proxy)

        async with toy_net(out, rounds=3, min_weight=3, windows=windows, before_start=before_start) as net:
            yield net, found[0]


@pytest.mark.parametrize("fault", ["refuse", "swallow"])
@pytest.mark.slow
async def test_the_node_refuses_or_loses_a_transaction_once(tmp_path: Path, fault: str) -> None:
    """A refused one is sent again, a lost one is handed over again: the host's record of the same round is on chain."""
    async with proxied(tmp_path, LONG) as (net, proxy):
        await net.until_phase(net.hosts[2], 1, "train")
        setattr(proxy, fault, 1)
        host = net.hosts[2]
        await goes_on(net, 3)
        assert sum(proxy.seen[key] for key in ("refused", "swallowed")) == 1
        assert all(host.address in r["commitments"] for r in net.rounds(net.hosts[0]))


@pytest.mark.slow
async def test_a_transaction_that_was_accepted_never_appears(tmp_path: Path) -> None:
    """Nothing new is sent before the old one's timeout has passed; then the same record goes into a new transaction."""
    async with proxied(tmp_path, VERY_LONG) as (net, proxy):
        host = net.hosts[2]
        await net.until_phase(host, 1, "train")
        proxy.swallow = 10**6
        await net.until("the timeout passes", lambda: "sending again" in net.log(host), 240)
        proxy.swallow = 0
        await goes_on(net, 3)
        assert proxy.seen["swallowed"] > 1
        assert all(host.address in r["commitments"] for r in net.rounds(net.hosts[0]))


OUTAGE_BLOCKS = 120
"""Ten minutes of blocks of five seconds."""


@pytest.mark.slow
async def test_one_hosts_node_is_away_for_ten_minutes_of_blocks(tmp_path: Path) -> None:
    """The others go on without it; it reads every block afterwards, and commits again in the run."""
    async with AsyncExitStack() as stack:
        gates: list[Gate] = []

        async def before_start(stage: CastStage, _run: Accepted) -> None:
            for old in (stage.chain.grpc, stage.chain.rpc.removeprefix("http://")):
                gates.append(await stack.enter_async_context(Gate(old)))
            edits = {stage.chain.grpc: gates[0].address, stage.chain.rpc.removeprefix("http://"): gates[1].address}
            stage.edits["host-3"] = edits

        net = await stack.enter_async_context(toy_net(tmp_path, rounds=6, min_weight=2, before_start=before_start))
        first, _, away = net.hosts
        await net.until_phase(away, 1, "train")
        for gate in gates:
            gate.shut()
        gone = net.status(away)["height"]
        there = gone + OUTAGE_BLOCKS
        await net.until("the chain went on", lambda: net.status(first)["height"] >= there, 200)
        assert net.status(away)["height"] <= gone + 2
        for gate in gates:
            gate.open()
        await net.until("it has caught up", lambda: net.status(away)["height"] >= there, 60)
        await net.until_ended()
        await net.assert_single_words()
        await net.assert_same_roots()
        last = net.rounds(first)[-1]
        assert away.address in last["included"]
        assert [r["outcome"] for r in net.rounds(first)].count("final") == 6
