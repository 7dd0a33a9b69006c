"""The admin API, and GPU sharing by it, against a stand-in with a real network node's habits."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web
from sharing_world import turns, until

from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.errors import NetworkNodeError, NetworkNodeUnavailableError
from gonka_trainer.network_node.admin import AdminApi
from gonka_trainer.network_node.drained import WHO, DrainedNode
from tests.support.network_node import AdminNode, AdminStandIn, admin_stand_in
from tests.support.pieces import in_pieces


@pytest.fixture
async def node() -> AsyncIterator[AdminStandIn]:
    async with admin_stand_in("node1", "node2") as stand_in:
        yield stand_in


@pytest.fixture
async def admin(node: AdminStandIn) -> AsyncIterator[AdminApi]:
    async with AdminApi(node.url, timeout_seconds=3) as opened:
        yield opened


async def test_an_unknown_id_is_never_sent(node: AdminStandIn, admin: AdminApi) -> None:
    with pytest.raises(NetworkNodeError, match=r"no ML node 'nope' \(it has: node1, node2\)"):
        await admin.disable("nope")
    assert node.requests == ["list"]
    assert [each.id for each in await admin.nodes()] == ["node1", "node2"]


async def test_the_stand_in_wedges_as_the_real_one_does(node: AdminStandIn) -> None:
    """What the rule above protects from: after one unknown id nothing is answered any more."""
    async with AdminApi(node.url, timeout_seconds=0.3) as careless:
        with pytest.raises(NetworkNodeError, match="404"):
            await careless._call("POST", "/admin/v1/nodes/nope/disable")
        with pytest.raises(NetworkNodeUnavailableError):
            await careless.nodes()


async def test_an_id_that_would_change_the_path_is_refused(node: AdminStandIn, admin: AdminApi) -> None:
    node.nodes["node1/disable?x"] = node.nodes.pop("node1")
    node.nodes["node1/disable?x"].id = "node1/disable?x"
    with pytest.raises(NetworkNodeError, match="cannot be named in a URL"):
        await admin.disable("node1/disable?x")
    assert node.requests == ["list"]


@pytest.mark.parametrize(
    "answer",
    ["[]]", '{"nodes": 1}', '[{"node": {"id": 5}, "state": {}}]', '[{"node": {"id": "a"}, "state": null}]', "\xff"],
)
async def test_an_answer_of_another_form_is_an_error_with_its_place(answer: str) -> None:
    async def strange(_: web.Request) -> web.Response:
        return web.Response(text=answer, content_type="application/json")

    app = web.Application()
    app.router.add_get("/admin/v1/nodes", strange)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with AdminApi(f"http://127.0.0.1:{runner.addresses[0][1]}") as admin:
            with pytest.raises(NetworkNodeError, match="/admin/v1/nodes"):
                await admin.nodes()
    finally:
        await runner.cleanup()


def share(admin: AdminApi, gpu: GpuTurns, mark: Path, wanted: Callable[[], bool], consent: bool = True) -> DrainedNode:
    return DrainedNode(admin, gpu, "node1", consent, mark, wanted)


async def test_a_drain_waits_for_proof_of_compute_and_is_taken_back_at_the_end(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wanted = [True]
    async with turns(tmp_path) as (gpu, worker):
        drained = share(admin, gpu, tmp_path / "mark", lambda: wanted[0])
        task = asyncio.create_task(drained.run(look_seconds=0.02))
        await until(lambda: "disable node1" in node.requests)
        await until(lambda: "takes effect at the next start" in gpu.holds.get(WHO, ""))
        said = next(r.getMessage() for r in caplog.records if "loses its weight (60 now)" in r.getMessage())
        assert "disabling ML node node1" in said
        before = [r.getMessage() for r in caplog.records].index(said)
        assert before >= 0
        looks = len(node.requests)
        await until(lambda: len(node.requests) > looks + 5)
        assert WHO in gpu.holds  # inference goes on until the block of proof of compute

        node.poc_start()
        await until(lambda: WHO not in gpu.holds)
        await worker.start()
        assert node.nodes["node2"].enabled

        wanted[0] = False
        await until(lambda: "enable node1" in node.requests)
        assert not worker.in_use, "enabled while the worker was on the GPU"
        assert node.ml_node_requests[-2:] == ["stop", "inference/up"]
        await until(lambda: not (tmp_path / "mark").exists())
        assert node.requests.count("disable node1") == 1
        assert node.requests.count("enable node1") == 1
        task.cancel()


async def test_without_consent_nothing_is_disabled_and_the_operator_is_told(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, _):
        drained = share(admin, gpu, tmp_path / "mark", lambda: True, consent=False)
        for _ in range(3):
            await drained.look()
        assert "accept_lost_epoch" in gpu.holds[WHO]
        assert "loses its weight" in gpu.holds[WHO]
        assert node.requests == ["list"] * 3


async def test_a_node_that_its_operator_disabled_is_used_and_left_disabled(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    node.nodes["node1"].enabled = False
    node.poc_start()
    wanted = [True]
    async with turns(tmp_path) as (gpu, _):
        drained = share(admin, gpu, tmp_path / "mark", lambda: wanted[0])
        await drained.look()
        assert WHO not in gpu.holds
        wanted[0] = False
        await drained.look()
        assert WHO in gpu.holds
        assert not any(request.startswith("enable") for request in node.requests)


async def test_an_operator_who_enables_the_node_gets_the_gpu_back_at_once(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, worker):
        drained = share(admin, gpu, tmp_path / "mark", lambda: True)
        await drained.look()
        node.poc_start()
        await drained.look()
        await worker.start()
        await admin.enable("node1")
        await drained.look()
        assert "enabled by somebody else" in gpu.holds[WHO]
        await gpu.vacated()
        await drained.look()
        assert node.requests.count("disable node1") == 1  # it is not fought over


async def test_a_restart_between_mark_and_disable_or_later_loses_nothing(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    (tmp_path / "mark").write_text("node1")
    node.nodes["node1"].enabled = False
    node.poc_start()
    async with turns(tmp_path) as (gpu, _):
        after_restart = share(admin, gpu, tmp_path / "mark", lambda: False)
        await after_restart.look()
        assert node.nodes["node1"].enabled
        assert not (tmp_path / "mark").exists()


async def test_a_network_node_that_is_away_changes_nothing(tmp_path: Path) -> None:
    async with (
        turns(tmp_path) as (gpu, worker),
        admin_stand_in("node1") as node,
        AdminApi(node.url, timeout_seconds=0.5) as admin,
    ):
        node.nodes["node1"].enabled = False
        node.poc_start()
        drained = share(admin, gpu, tmp_path / "mark", lambda: True)
        task = asyncio.create_task(drained.run(look_seconds=0.02))
        await until(lambda: bool(node.requests) and WHO not in gpu.holds)
        await worker.start()
        node.wedged = True
        looks = len(node.requests)
        await until(lambda: len(node.requests) > looks + 1)
        assert WHO not in gpu.holds
        assert worker.in_use
        task.cancel()
        await until(task.done)


async def test_who_enables_the_node_while_the_daemon_is_down_keeps_it(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, _):
        before = share(admin, gpu, tmp_path / "mark", lambda: True)
        await before.look()
        node.poc_start()
        await before.look()
        await admin.enable("node1")
        after_restart = share(admin, gpu, tmp_path / "mark", lambda: True)
        await after_restart.look()
        assert "enabled by somebody else" in gpu.holds[WHO]
        assert node.requests.count("disable node1") == 1


async def test_an_answer_that_comes_in_pieces_is_read_whole() -> None:
    body = json.dumps([AdminNode(f"node{number}").entry() for number in range(40)]).encode()
    async with in_pieces(body) as node, AdminApi(node.url, timeout_seconds=3) as admin:
        assert [each.id for each in await admin.nodes()][-1] == "node39"


async def test_a_restart_in_mid_run_gives_nothing_back_before_the_run_is_known(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    (tmp_path / "mark").write_text("node1 drained")
    node.nodes["node1"].enabled = False
    node.poc_start()
    wanted: list[bool | None] = [None]
    async with turns(tmp_path) as (gpu, _):
        after_restart = DrainedNode(admin, gpu, "node1", True, tmp_path / "mark", lambda: wanted[0])
        gpu.hold(WHO, "not asked yet")  # as at the start
        await after_restart.look()
        assert WHO in gpu.holds
        wanted[0] = True
        await after_restart.look()
        assert WHO not in gpu.holds
        wanted[0] = None  # this run is over, and whether there is another one is being looked up
        await after_restart.look()
        assert WHO not in gpu.holds
        assert node.requests == ["list"] * 3, "an epoch would be lost for nothing"
        node.nodes["node1"].status = "INFERENCE"
        await after_restart.look()
        assert WHO in gpu.holds


async def test_a_node_that_the_settings_name_no_more_is_given_back(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, _):
        await share(admin, gpu, tmp_path / "mark", lambda: True).look()
        node.poc_start()
        now = DrainedNode(admin, gpu, "node2", True, tmp_path / "mark", lambda: True)
        await now.look()
        assert node.nodes["node1"].enabled
        assert (tmp_path / "mark").read_text() == "node2"
        node.poc_start()
        await now.look()
        assert WHO not in gpu.holds


async def test_a_mark_of_a_node_that_is_gone_is_dropped(node: AdminStandIn, admin: AdminApi, tmp_path: Path) -> None:
    (tmp_path / "mark").write_text("node7 drained")
    async with turns(tmp_path) as (gpu, _):
        await share(admin, gpu, tmp_path / "mark", lambda: False).look()
        assert not (tmp_path / "mark").exists()
        assert set(node.requests) == {"list"}


async def test_nothing_is_disabled_that_cannot_be_remembered(
    node: AdminStandIn, admin: AdminApi, tmp_path: Path
) -> None:
    async with turns(tmp_path) as (gpu, _):
        drained = share(admin, gpu, tmp_path / "nowhere" / "mark", lambda: True)
        task = asyncio.create_task(drained.run(look_seconds=0.02))
        await until(lambda: len(node.requests) > 4 or task.done())
        assert not task.done()
        assert WHO in gpu.holds
        assert set(node.requests) == {"list"}
        task.cancel()
        await until(task.done)
