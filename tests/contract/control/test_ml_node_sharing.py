from __future__ import annotations

import asyncio
import gzip
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from control_world import until
from ml_world import QUICK, SLOW, RealMlNode, ask, stage

from gonka_trainer.control.ml_node import serve_ml_node
from gonka_trainer.control.sharing import HOLDER
from gonka_trainer.errors import ConfigError

UP = b'{"model":"m"}'


def start_body(task: object) -> bytes:
    return json.dumps({"train_config": {}, "train_env": {"TASK_ID": task, "NODE_ID": "gonka1x/node1"}}).encode()


async def test_proof_of_compute_waits_until_the_worker_has_left(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        await at.train()
        at.world.worker.may_leave.clear()
        asked = asyncio.create_task(at.ask("POST", "/api/v1/pow/init/generate", b"{}"))
        await until(lambda: HOLDER in at.world.gpu.holds)
        assert await at.state() == "TRAIN"  # the worker is still there, and a question is answered meanwhile
        assert at.real.asked == []
        at.world.worker.may_leave.set()
        assert (await asked).json == {"status": "OK", "pow_status": {"status": "GENERATING"}}
        assert await at.state() == "POW"


async def test_a_worker_that_does_not_leave_does_not_cost_the_proof(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(tmp_path, replace(SLOW, leave=0.05), behind=True) as at:
        await at.train()
        at.world.worker.may_leave.clear()
        with caplog.at_level(logging.ERROR):
            assert (await at.ask("POST", "/api/v1/pow/init/generate", b"{}")).status == 200
        assert at.real.asked == ["/api/v1/pow/init/generate"]
        assert "the worker is on the GPUs after 0.05 s" in caplog.text


async def test_the_gpus_come_back_when_nothing_follows_a_stop(tmp_path: Path) -> None:
    for behind in (True, False):
        folder = tmp_path / str(behind)
        folder.mkdir()
        async with stage(folder, QUICK, behind=behind) as at:
            await at.train()
            assert (await at.ask("POST", "/api/v1/stop")).json == {"status": "OK"}
            assert not at.world.worker.alive
            await at.train()
            assert await at.state() == "TRAIN"


async def test_a_proof_whose_end_is_never_said_ends_when_the_ml_node_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True) as at:
        await at.train()
        await at.ask("POST", "/api/v1/pow/init/generate", b"{}")
        for _ in range(20):  # the watch looks many times: while it says POW the GPUs are the ML node's
            assert HOLDER in at.world.gpu.holds
            assert await at.state() == "POW"
        at.real.state = "STOPPED"
        await at.train()


async def test_a_challenge_that_does_not_come_through_the_surface_is_seen(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True) as at:
        await at.train()
        at.real.state = "POW"
        await until(lambda: HOLDER in at.world.gpu.holds and not at.world.worker.alive)
        at.real.state = "STOPPED"
        await at.train()


async def test_inference_gets_the_gpus_when_there_is_nothing_to_train(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True, runs=False) as at:
        await at.ask("POST", "/api/v1/stop")
        assert (await at.ask("POST", "/api/v1/inference/up", UP)).json == {"status": "OK"}
        assert at.real.asked == ["/api/v1/stop", "/api/v1/inference/up"]
        assert (at.real.seen[-1].body, await at.state()) == (UP, "INFERENCE")
        assert HOLDER in at.world.gpu.holds
        with at.world.operations.serving(at.world.run, at.world.daemon.lines[0].manifest_hash, "tiny"):
            await at.train()  # a run has come: the ML node is stopped first
            assert at.real.asked[-1] == "/api/v1/stop"
            assert await at.state() == "TRAIN"


async def test_inference_is_not_stopped_while_another_holds_the_gpus(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True, runs=False) as at:
        await at.ask("POST", "/api/v1/inference/up", UP)
        at.world.gpu.hold("proof of compute", "blocks 50 to 59")
        with at.world.operations.serving(at.world.run, at.world.daemon.lines[0].manifest_hash, "tiny"):
            looks = len(at.real.seen)
            await until(lambda: len(at.real.seen) > looks + 3)
            assert at.real.asked == ["/api/v1/inference/up"]
            at.world.gpu.lift("proof of compute")
            await at.train()
            assert at.real.asked == ["/api/v1/inference/up", "/api/v1/stop"]


async def test_a_model_that_was_not_loaded_is_loaded_when_training_ends(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True) as at:
        await at.train()
        answer = await at.ask("POST", "/api/v1/inference/up", UP)
        assert (answer.status, answer.json["status"]) == (200, "OK")
        assert at.real.asked == []
        at.world.run.ended.set()
        await until(lambda: "/api/v1/inference/up" in at.real.asked)
        assert (at.real.seen[-1].body, at.real.seen[-1].worker_alive) == (UP, False)
        await until(lambda: HOLDER in at.world.gpu.holds)
        assert await at.state() == "INFERENCE"


async def test_a_pause_lets_inference_in(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True) as at:
        await at.train()
        await at.ask("POST", "/api/v1/inference/up", UP)
        at.world.operations.pause("")
        await until(lambda: at.real.asked == ["/api/v1/inference/up"])
        assert await at.state() == "INFERENCE"
        at.world.operations.resume()
        await at.train()
        assert at.real.asked == ["/api/v1/inference/up", "/api/v1/stop"]


async def test_at_start_the_gpus_are_whose_the_ml_node_says(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=False) as at:
        node = RealMlNode(at.world)
        at.world.gpu.lift(HOLDER)
        for state, held in (("POW", True), ("INFERENCE", True), ("STOPPED", False)):
            node.state = state
            async with node.serving():
                url = f"http://127.0.0.1:{node.port}"
                async with serve_ml_node(at.world.operations, at.world.gpu, ("127.0.0.1", 0), url, SLOW):
                    assert (HOLDER in at.world.gpu.holds) is held, state


async def test_an_ml_node_that_does_not_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with stage(tmp_path, SLOW, behind=False) as at:
        node = RealMlNode(at.world)
        async with node.serving():
            url = f"http://127.0.0.1:{node.port}"  # free again below: nobody answers there
        async with serve_ml_node(at.world.operations, at.world.gpu, ("127.0.0.1", 0), url, QUICK) as port:
            assert "has not answered" in at.world.gpu.holds[HOLDER]
            for method, path in (("GET", "/api/v1/state"), ("POST", "/api/v1/stop"), ("GET", "/health")):
                answer = await ask(port, method, path)
                assert (answer.status, answer.json["status"]) == (502, "ERROR")
            await until(lambda: "training waits for it" in caplog.text)
            async with node.serving():
                await until(lambda: not at.world.gpu.holds)


async def test_a_network_node_starts_only_what_the_operator_allows(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        await at.ask("POST", "/api/v1/stop")
        refusals = {
            start_body("8"): (403, "you did not agree"),
            start_body("9"): (404, "names no run"),
            start_body("x"): (400, "TASK_ID"),
            start_body("9" * 50): (400, "TASK_ID"),
            start_body("0"): (400, "TASK_ID"),
            b"": (400, "TASK_ID"),
            b"[" * 100_000: (400, "TASK_ID"),
            b'{"train_env": []}': (400, "TASK_ID"),
        }
        for body, (status, text) in refusals.items():
            answer = await at.ask("POST", "/api/v1/train/start", body)
            assert (answer.status, answer.json["status"]) == (status, "ERROR")
            assert text in answer.json["detail"]
            assert HOLDER in at.world.gpu.holds
        assert at.world.daemon.started == []
        answer = await at.ask("POST", "/api/v1/train/start", start_body("7"))
        assert (answer.status, answer.json["status"], answer.json["task_id"]) == (200, "OK", 7)
        assert not at.world.gpu.holds
        said = (await at.ask("GET", "/api/v1/train/status")).json
        assert (said["status"], said["task_id"], said["round"], said["phase"]) == ("RUNNING", 7, 3, "train")
        assert at.real.asked == ["/api/v1/stop"]  # training is the trainer's: nothing of it reaches the ML node


async def test_a_network_node_does_not_end_a_pause_or_a_proof(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        at.world.operations.pause("a new driver")
        answer = await at.ask("POST", "/api/v1/train/start", start_body("7"))
        assert (answer.status, "a new driver" in answer.json["detail"]) == (409, True)
        assert (await at.ask("GET", "/api/v1/train/status")).json["status"] == "STOPPED"
        at.world.operations.resume()
        await at.ask("POST", "/api/v1/pow/init/generate", b"{}")
        assert (await at.ask("POST", "/api/v1/train/start", start_body("7"))).status == 409
        assert HOLDER in at.world.gpu.holds


async def test_bodies_are_streamed_both_ways(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        head = "POST /v1/chat/completions?x=%2F HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode() + b"5\r\nfirst\r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        assert b"X-Echo: yes" in answer
        assert b"Content-Type: text/event-stream" in answer
        await asyncio.wait_for(reader.readuntil(b"first"), 30)  # before the request has ended
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 30)).count(b"second") == 1
        writer.close()


async def test_large_bodies_pass_whole(tmp_path: Path) -> None:
    data = bytes(range(256)) * 40_000
    async with stage(tmp_path, SLOW, behind=True) as at:
        assert (await at.ask("POST", "/v1/completions", data)).body == data
        await at.ask("POST", "/api/v1/pow/validate", data)
        assert at.real.seen[-1].body == data
        huge = await at.ask("POST", "/api/v1/inference/up", data)
        assert huge.status == 413


async def test_headers_are_kept_and_none_is_added(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        given = {"Accept-Encoding": "gzip", "X-Own": "1", "Connection": "x-private", "X-Private": "2"}
        given |= {"connection": "X-Other, close", "X-Other": "3"}
        await ask(at.port, "POST", "/api/v1/inference/down", b"{}", given)
        names = {name.lower(): value for name, value in at.real.seen[-1].headers}
        assert names.pop("host") == f"127.0.0.1:{at.real.port}"
        assert names == {
            "user-agent": "Go-http-client/1.1",
            "content-length": "2",
            "accept-encoding": "gzip",
            "x-own": "1",
        }


async def test_alone_what_an_ml_node_has_and_a_trainer_has_not(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=False) as at:
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/api/v1/gpu/devices"), ("GET", "/")):
            answer = await at.ask(method, path)
            assert (answer.status, answer.json["status"]) == (404, "ERROR")


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=False) as at:
        with pytest.raises(ConfigError, match=r"ml_node\.bind"):
            async with serve_ml_node(at.world.operations, at.world.gpu, ("127.0.0.1", at.port), "", SLOW):
                pass


async def test_a_compressed_body_passes_as_it_came(tmp_path: Path) -> None:
    """Were it unpacked on the way its length would be wrong, and its end a request of its own to the ML node."""
    hidden = b"POST /api/v1/inference/up HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    plain = b"{}" + b" " * 500 + hidden
    async with stage(tmp_path, SLOW, behind=True) as at:
        given = {"Content-Encoding": "gzip"}
        answer = await ask(at.port, "POST", "/api/v1/inference/down", gzip.compress(plain), given)
        assert answer.status == 200
        assert at.real.asked == ["/api/v1/inference/down"]
        assert at.real.seen[-1].body == plain  # the ML node unpacks it


@pytest.mark.parametrize(
    "path",
    ["//api/v1/stop", "/api/v1//stop", "/api/v1/./stop", "/api/v1/stop/", "/api/v1/%73top", "/v3.0.8/api/v1/stop"],
)
async def test_a_stop_by_any_way_of_writing_takes_the_gpus(tmp_path: Path, path: str) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        await at.train()
        await at.ask("POST", path)
        assert not at.world.worker.alive
        assert at.real.asked == [path]


@pytest.mark.parametrize("path", ["/api/v1/inference/up/", "/api/v1/inference//up", "/api/v1/inference/up/async"])
async def test_no_way_of_writing_loads_a_model_beside_the_worker(tmp_path: Path, path: str) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        await at.train()
        assert (await at.ask("POST", path, UP)).json["status"] == "OK"
        assert at.real.asked == []
        assert at.world.worker.alive


@pytest.mark.parametrize(
    "path", ["/api/v1/x/../inference/up", "/api/v1/x/%2e%2e/inference/up", "http://elsewhere/api/v1/inference/up"]
)
async def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        await at.train()
        assert (await at.ask("POST", path, UP)).status == 400
        assert at.real.asked == []


async def test_a_hundred_requests_in_hand_keep_no_stop_waiting(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        held = [await asyncio.open_connection("127.0.0.1", at.port) for _ in range(101)]
        for _, writer in held:
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        for reader, _ in held[:100]:
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        assert (await at.ask("POST", "/api/v1/stop")).status == 200
        for _, writer in held:
            writer.close()


async def test_a_stop_takes_back_an_inference_that_was_put_off(tmp_path: Path) -> None:
    async with stage(tmp_path, QUICK, behind=True) as at:
        await at.train()
        await at.ask("POST", "/api/v1/inference/up", UP)
        await at.ask("POST", "/api/v1/stop")
        await at.train()
        at.world.run.ended.set()
        looks = len(at.real.seen)
        await until(lambda: len(at.real.seen) > looks + 3)
        assert at.real.asked == ["/api/v1/stop"]


async def test_a_start_does_not_take_gpus_of_which_nothing_is_known(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, behind=False) as at:
        node = RealMlNode(at.world)
        async with node.serving():
            url = f"http://127.0.0.1:{node.port}"  # free again below: nobody answers there
        async with serve_ml_node(at.world.operations, at.world.gpu, ("127.0.0.1", 0), url, SLOW) as port:
            assert (await ask(port, "POST", "/api/v1/train/start", start_body("7"))).status == 409
            assert HOLDER in at.world.gpu.holds
