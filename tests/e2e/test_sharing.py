"""GPUs that a network node has a say in: real daemons, with stand-ins for the network node."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gonka_trainer.app.accepted import Accepted
from tests.e2e.harness import CastStage, toy_net
from tests.support.network_node import Places, admin_stand_in, manager_stand_in

pytestmark = pytest.mark.e2e


def gpu_section(stage: CastStage, index: int, lines: str) -> None:
    """Give the host of that index a [gpu] section before its daemon starts."""
    stage.edits[stage.hosts[index].name] = {"[exchange]": f"[gpu]\n{lines}\n[exchange]"}


async def test_hosts_share_their_gpus_as_their_network_nodes_let(tmp_path: Path) -> None:
    """One host drains its ML node, one locks it; both train from then on, and give it back when the run is over."""
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(admin_stand_in("node1"))
        manager = await stack.enter_async_context(manager_stand_in({"node1": Places("m", 2)}))
        foreign = manager.take("node1")

        async def before_start(stage: CastStage, run: Accepted) -> None:
            gpu_section(
                stage,
                0,
                f'mode = "network-node-admin"\nadmin_url = "{admin.url}"\nnode = "node1"\naccept_lost_epoch = true',
            )
            gpu_section(stage, 1, f'mode = "node-manager"\nmanager = "{manager.target}"\nmodel = "m"')

        net = await stack.enter_async_context(toy_net(tmp_path, hosts=3, rounds=4, before_start=before_start))
        drained, locked, dedicated = net.hosts

        await net.until("the ML node was disabled", lambda: not admin.nodes["node1"].enabled)
        assert "loses its weight" in net.log(drained)
        await net.until_round_ended(dedicated, 0)
        assert "worker: start" not in net.log(drained), "trained before the drain took effect"
        assert "worker: start" not in net.log(locked), "trained while a request held a place"

        admin.poc_start()
        manager.nodes["node1"].locks.remove(foreign)
        await net.until("both train", lambda: all("worker: start" in net.log(host) for host in (drained, locked)))
        for host in (drained, locked):  # neither the ML node nor its places are lost by it
            net.kill(host)
            await net.restart(host)
        await net.until_ended()
        await net.assert_same_roots()
        assert "worker: start" in net.log(drained)
        assert "worker: start" in net.log(locked)
        await net.until("the ML node was enabled again", lambda: admin.nodes["node1"].enabled)
        await net.until("the places were given back", lambda: not manager.nodes["node1"].locks)
        assert [request for request in admin.requests if request != "list"] == ["disable node1", "enable node1"]
