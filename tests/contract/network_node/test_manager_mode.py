"""GPU sharing by NodeManager, against a stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sharing_world import turns, until

from gonka_trainer.errors import NetworkNodeError, NetworkNodeUnavailableError
from gonka_trainer.network_node.calls import NodeChannel
from gonka_trainer.network_node.locked import WHO, LockedNode
from gonka_trainer.network_node.manager import NodeManager
from tests.support.network_node import ManagerStandIn, Places, manager_stand_in


@pytest.fixture
async def node() -> AsyncIterator[ManagerStandIn]:
    async with manager_stand_in({"a": Places("m", 3), "b": Places("m", 2), "c": Places("other", 4)}) as stand_in:
        yield stand_in


@pytest.fixture
async def manager(node: ManagerStandIn) -> AsyncIterator[NodeManager]:
    async with NodeChannel(node.target, timeout_seconds=5) as channel:
        yield NodeManager(channel)


async def test_all_places_of_the_named_node_are_locked_before_training(
    node: ManagerStandIn, manager: NodeManager, tmp_path: Path
) -> None:
    foreign = node.take("b")
    async with turns(tmp_path) as (gpu, _):
        locked = LockedNode(manager, gpu, "m", "b", lambda: True, tmp_path / "locks")
        await locked.look()
        assert "1 of 2 places of ML node b are locked" in gpu.holds[WHO]
        node.nodes["b"].locks.remove(foreign)  # the request before is done
        await locked.look()
        assert WHO not in gpu.holds
        assert len(node.nodes["b"].locks) == 2
        assert node.nodes["a"].locks == set()


async def test_proof_of_compute_gets_the_gpu_and_the_places_come_back_after(
    node: ManagerStandIn, manager: NodeManager, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, worker):
        locked = LockedNode(manager, gpu, "m", "a", lambda: True, tmp_path / "locks")
        task = asyncio.create_task(locked.run(look_seconds=0.02))
        await until(lambda: WHO not in gpu.holds and len(locked.locks) == 3)
        await worker.start()
        node.nodes["a"].status = "POC"
        await until(lambda: not node.nodes["a"].locks)
        assert not worker.in_use, "places were given back while the worker was on the GPU"
        assert "POC" in gpu.holds[WHO]
        node.nodes["a"].status = "INFERENCE"
        await until(lambda: WHO not in gpu.holds)
        assert len(node.nodes["a"].locks) == 3
        await worker.start()
        task.cancel()
        await until(task.done)
        assert not worker.in_use
        assert not node.nodes["a"].locks, "the daemon ended and kept places"


async def test_the_end_of_the_run_gives_the_places_back(
    node: ManagerStandIn, manager: NodeManager, tmp_path: Path
) -> None:
    wanted = [True]
    async with turns(tmp_path) as (gpu, _):
        locked = LockedNode(manager, gpu, "m", "", lambda: wanted[0], tmp_path / "locks")
        await locked.look()
        assert WHO not in gpu.holds
        wanted[0] = False
        await locked.look()
        assert WHO in gpu.holds
        assert not any(places.locks for places in node.nodes.values())


async def test_while_another_holds_the_gpu_requests_may_come(
    node: ManagerStandIn, manager: NodeManager, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, worker):
        locked = LockedNode(manager, gpu, "m", "a", lambda: True, tmp_path / "locks")
        await locked.look()
        await worker.start()
        gpu.hold("proof of compute", "scheduled")
        await locked.look()
        assert not node.nodes["a"].locks
        gpu.lift("proof of compute")
        assert WHO in gpu.holds, "training could begin before the places are locked"
        await locked.look()
        assert not gpu.holds
        assert len(node.nodes["a"].locks) == 3


async def test_locks_that_the_network_node_forgot_are_taken_again(
    node: ManagerStandIn, manager: NodeManager, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, worker):
        locked = LockedNode(manager, gpu, "m", "a", lambda: True, tmp_path / "locks")
        await locked.look()
        await worker.start()
        node.nodes["a"].locks.clear()  # it was restarted
        await locked.look()
        assert not worker.in_use  # requests may have come meanwhile
        assert len(node.nodes["a"].locks) == 3
        assert WHO not in gpu.holds


async def test_a_model_that_nobody_serves_and_a_node_without_the_service(tmp_path: Path, manager: NodeManager) -> None:
    async with turns(tmp_path) as (gpu, _):
        await LockedNode(manager, gpu, "nobody's", "", lambda: True, tmp_path / "locks").look()
        assert "serves nobody's" in gpu.holds[WHO]
    async with NodeChannel("127.0.0.1:1", timeout_seconds=1) as channel:
        with pytest.raises(NetworkNodeUnavailableError):
            await NodeManager(channel).capacities()


async def test_when_the_network_node_cannot_be_asked_the_gpu_is_held(tmp_path: Path) -> None:
    async with (
        turns(tmp_path) as (gpu, _),
        manager_stand_in({"a": Places("m", 1)}) as node,
        NodeChannel(node.target, 2) as channel,
    ):
        locked = LockedNode(NodeManager(channel), gpu, "m", "", lambda: True, tmp_path / "locks")
        task = asyncio.create_task(locked.run(look_seconds=0.02))
        await until(lambda: bool(locked.locks) and WHO not in gpu.holds)
        del node.nodes["a"]
        await until(lambda: WHO in gpu.holds)
        task.cancel()
        await until(task.done)


async def test_a_lock_without_an_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with manager_stand_in({"a": Places("m", 1)}) as node, NodeChannel(node.target) as channel:
        monkeypatch.setattr(node, "take", lambda _: "")
        with pytest.raises(NetworkNodeError, match="without an id"):
            await NodeManager(channel).acquire("m")


async def test_places_that_a_killed_daemon_held_are_given_back_at_the_next_start(
    node: ManagerStandIn, manager: NodeManager, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, _):
        killed = LockedNode(manager, gpu, "m", "a", lambda: True, tmp_path / "locks")
        await killed.look()
        assert len(node.nodes["a"].locks) == 3
        node.nodes["a"].locks.pop()  # one that the network node has forgotten
        foreign = node.take("a")
        after = LockedNode(manager, gpu, "m", "a", lambda: True, tmp_path / "locks")
        await after.look()
        assert len(after.locks) == 2
        assert foreign in node.nodes["a"].locks
        node.nodes["a"].locks.remove(foreign)
        await after.look()
        assert WHO not in gpu.holds
        assert len(node.nodes["a"].locks) == 3
        (tmp_path / "locks").write_text("[")
        await LockedNode(manager, gpu, "m", "a", lambda: False, tmp_path / "locks").look()
        assert len(node.nodes["a"].locks) == 3
