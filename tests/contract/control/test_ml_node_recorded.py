"""The requests that a network node was seen to send, in their order, against the surface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from control_world import until
from ml_world import RECORDING, SLOW, Stage, ask, stage

REQUESTS: list[dict[str, Any]] = json.loads(RECORDING.read_text())
POW = ("/api/v1/pow/init/generate", "/api/v1/pow/init/validate", "/api/v1/pow/validate")


async def replay(at: Stage, request: dict[str, Any]) -> Any:
    headers = {name: value for name, value in request["headers"].items() if name not in ("Host", "Content-Length")}
    answer = await ask(at.port, request["method"], request["path"], request["body"].encode(), headers)
    assert answer.headers["content-type"].startswith("application/json")
    return answer


def test_the_recording_has_what_the_tests_rest_on() -> None:
    assert len(REQUESTS) == 27
    assert all("Content-Type" not in request["headers"] for request in REQUESTS)
    assert {request["path"] for request in REQUESTS} >= {*POW, "/api/v1/stop", "/api/v1/inference/up", "/health"}


async def test_two_epochs_in_front_of_a_real_ml_node(tmp_path: Path) -> None:
    """The worker is on the GPU whenever training may have it, and never when the ML node is told to use it."""
    async with stage(tmp_path, SLOW, behind=True) as at:
        trained_before = 0
        for request in REQUESTS:
            if not at.world.gpu.holds:
                await until(lambda: at.world.worker.admitted)
                at.world.worker.alive = True
                trained_before += request["path"] == "/api/v1/stop"
            answer = await replay(at, request)
            assert answer.status == 200
            expect(at, request, answer.json)
        assert trained_before == 2  # before the first stop, and between the two proofs of compute
        assert not at.world.gpu.holds  # and after the last: training may go on
        assert [s.path for s in at.real.seen if s.path in POW] == [r["path"] for r in REQUESTS if r["path"] in POW]
        assert not any(seen.worker_alive for seen in at.real.seen if seen.method == "POST")
        sent = [r["body"].encode() for r in REQUESTS if r["path"] in POW]
        assert [seen.body for seen in at.real.seen if seen.path in POW] == sent
        assert all("Content-Type" not in dict(seen.headers) for seen in at.real.seen if seen.path in POW)
        assert "/api/v1/inference/up" not in at.real.asked  # the GPU is training's: no model is loaded beside it


def expect(at: Stage, request: dict[str, Any], answer: dict[str, Any]) -> None:
    """What is recorded stands, but that the trainer trains where the recorded node served inference or stood."""
    match request["path"]:
        case "/api/v1/state":
            assert answer == {"state": "TRAIN" if at.world.worker.alive else request["answer"]["state"]}
        case "/api/v1/inference/up":
            assert answer["status"] == "OK"
        case _:
            assert answer == request["answer"]


async def test_two_epochs_alone(tmp_path: Path) -> None:
    """Proof of compute and inference are refused, a stop is obeyed, and training goes on after each."""
    async with stage(tmp_path, SLOW, behind=False) as at:
        for request in REQUESTS:
            if not at.world.gpu.holds:
                await at.train()
            trained = at.world.worker.alive
            answer = await replay(at, request)
            match request["path"]:
                case "/api/v1/state":
                    assert answer.json == {"state": "TRAIN" if trained else "STOPPED"}
                case "/api/v1/stop" | "/health":
                    assert (answer.status, answer.json) == (200, {"status": "OK"})
                case "/api/v1/pow/status":
                    assert answer.json == {"status": "STOPPED", "is_model_initialized": False}
                case _:
                    assert (answer.status, answer.json["status"]) == (409, "ERROR")
                    assert "a trainer stands here" in answer.json["detail"]
            if request["path"] == "/api/v1/stop":
                assert not at.world.worker.alive
        assert not at.world.gpu.holds


@pytest.mark.parametrize("segment", ["", "/v3.0.8"])
async def test_a_segment_before_the_path_is_kept(tmp_path: Path, segment: str) -> None:
    async with stage(tmp_path, SLOW, behind=True) as at:
        await at.train()
        assert (await at.ask("GET", f"{segment}/api/v1/state")).json == {"state": "TRAIN"}
        await at.ask("POST", f"{segment}/api/v1/pow/init/generate", b"{}")
        assert at.real.asked == [f"{segment}/api/v1/pow/init/generate"]
        assert not at.world.worker.alive
