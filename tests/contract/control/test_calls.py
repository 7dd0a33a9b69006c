from __future__ import annotations

import asyncio
import stat
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
from control_world import BROKEN, RUN, STRANGE, World, call, refused, until

from gonka_trainer import __version__
from gonka_trainer._pb.gonka_trainer.v1 import control_pb2 as pb
from gonka_trainer.control.service import READERS, SERVICE


async def test_status_says_where_the_host_stands(world: World) -> None:
    world.gpu.hold("proof of compute", "blocks 50 to 59")
    async with world.channel() as channel:
        said = await call(channel, "Status")
    assert (said.version, said.participant, said.chain_id) == (__version__, "gonka1participant", "gonka-devnet")
    assert (said.standing, said.manifest_hash, said.run) == ("serving", RUN.hex(), "12" * 32)
    assert (said.height, said.round, said.phase, said.inner_step) == (100, 3, "train", 5)
    assert said.loss == 2.5
    assert not said.HasField("validation_loss")
    assert [(hold.who, hold.why) for hold in said.holds] == [("proof of compute", "blocks 50 to 59")]


async def test_status_between_runs_and_after_a_runs_end(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.serving(), world.channel() as channel:
        said = await call(channel, "Status")
        assert (said.standing, said.participant, said.manifest_hash) == ("waiting", "gonka1participant", "")
        with world.operations.serving(world.run, RUN, "tiny"):
            world.run.ended.set()
            assert (await call(channel, "Status")).standing == "over"


async def test_tasks_come_with_standing_and_reason(world: World) -> None:
    async with world.channel() as channel:
        said = (await call(channel, "Tasks")).tasks
    assert [(task.manifest_hash, task.task_id, task.standing) for task in said] == [
        (RUN.hex(), 7, "serving"),
        (STRANGE.hex(), 8, "refused"),
    ]
    assert said[1].why == "you did not agree"


async def test_start_agrees_to_a_run(world: World) -> None:
    async with world.channel() as channel:
        await call(channel, "Start", pb.StartRequest(manifest_hash=RUN.hex()))
    assert world.daemon.started == [RUN]


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        ("nonsense", grpc.StatusCode.INVALID_ARGUMENT, "'nonsense' is not 64 hex digits -> `spec hash FILE`"),
        (STRANGE.hex(), grpc.StatusCode.INVALID_ARGUMENT, "it is on another chain -> mend that"),
        (BROKEN.hex(), grpc.StatusCode.FAILED_PRECONDITION, "No space left on device -> free space"),
    ],
)
async def test_errors_say_what_is_wrong_and_what_to_do(
    world: World, asked: str, code: grpc.StatusCode, text: str
) -> None:
    async with world.channel() as channel:
        error = await refused(channel, "Start", pb.StartRequest(manifest_hash=asked))
    assert error.code() is code
    assert text in (error.details() or "")
    assert world.daemon.started == []


async def test_pause_frees_the_gpus_and_resume_gives_them_back(world: World) -> None:
    async with world.channel() as channel:
        await call(channel, "Pause", pb.PauseRequest(why="a new driver"))
        await asyncio.wait_for(world.gpu.vacated(), 30)
        said = await call(channel, "Status")
        assert [(hold.who, hold.why) for hold in said.holds] == [("operator", "a new driver")]
        assert (said.asked, said.gpus_in_use, world.worker.admitted) == ("pause", False, False)
        await call(channel, "Resume")
        said = await call(channel, "Status")
    assert (said.asked, list(said.holds)) == ("", [])
    await until(lambda: world.worker.admitted)


async def test_a_pause_outlives_a_restart(world: World, tmp_path: Path) -> None:
    async with world.channel() as channel:
        await call(channel, "Pause", pb.PauseRequest(why="a new driver"))
    again = World(tmp_path)
    again.operations.recall()
    assert dict(again.gpu.holds) == {"operator": "a new driver"}
    assert again.operations.status()["asked"] == "pause"
    again.operations.resume()
    third = World(tmp_path)
    third.operations.recall()
    assert not third.gpu.holds


@pytest.mark.parametrize(
    "mark", [b"", b"[]", b'{"asked": "pause"}', b"\xff\xfe", b'{"asked": "pause", "why": "\\ud800"}']
)
async def test_a_damaged_mark_pauses(tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "operator.json").write_bytes(mark)
    world = World(tmp_path)
    world.operations.recall()
    assert "operator" in world.gpu.holds
    async with world.serving(), world.channel() as channel:
        assert [hold.who for hold in (await call(channel, "Status")).holds] == ["operator"]


async def test_drain_ends_the_round_commits_it_and_then_is_free(world: World) -> None:
    world.worker.may_leave.clear()
    async with world.channel() as channel:
        draining = asyncio.create_task(call(channel, "Drain"))
        await asyncio.wait_for(world.run.finish_asked.wait(), 30)
        assert not world.gpu.holds  # the worker still hands over what there is
        world.run.trained.set()
        await until(lambda: "operator" in world.gpu.holds)
        world.worker.may_leave.set()
        await asyncio.wait_for(world.gpu.vacated(), 30)
        assert not draining.done()
        world.run.in_block.set()
        await draining
        assert (await call(channel, "Status")).asked == "drain"
    assert not world.operations.wants_gpus


async def test_a_drain_goes_on_when_its_caller_has_gone(world: World) -> None:
    async with world.channel() as channel:
        draining = asyncio.create_task(call(channel, "Drain"))
        await asyncio.wait_for(world.run.finish_asked.wait(), 30)
        draining.cancel()
    world.run.trained.set()
    world.run.in_block.set()
    await until(lambda: "operator" in world.gpu.holds)


async def test_a_drain_that_is_taken_back_says_so(world: World) -> None:
    async with world.channel() as channel:
        draining = asyncio.create_task(refused(channel, "Drain"))
        await asyncio.wait_for(world.run.finish_asked.wait(), 30)
        await call(channel, "Resume")
        world.run.trained.set()
        assert "taken back" in ((await draining).details() or "")
    assert not world.gpu.holds


async def test_stop_is_answered_before_the_daemon_ends(world: World) -> None:
    async with world.channel() as channel:
        assert await call(channel, "Stop") == pb.StopReply()
    assert world.stopped.is_set()


async def test_a_request_that_is_none_is_refused(world: World) -> None:
    async with world.channel() as channel:
        method = channel.unary_unary(f"/{SERVICE}/Pause")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await method(b"\xff" * 10, timeout=30)
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        long = await refused(channel, "Pause", pb.PauseRequest(why="x" * 201))
        assert "200 bytes" in (long.details() or "")
        huge = await refused(channel, "Pause", pb.PauseRequest(why="x" * 100_000))
        assert huge.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not world.gpu.holds


async def test_the_socket_is_its_owners_alone_and_goes_with_the_daemon(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.serving():
        assert stat.S_IMODE(world.socket.stat().st_mode) == 0o600
    assert not world.socket.exists()


async def test_events_come_in_order_and_only_those_asked_for(world: World) -> None:
    async with world.channel() as channel:
        method = channel.unary_stream(f"/{SERVICE}/Events", pb.EventsRequest.SerializeToString, pb.Event.FromString)
        everything, rounds = method(pb.EventsRequest()), method(pb.EventsRequest(kinds=["round_final"]))
        await everything.initial_metadata()
        await rounds.initial_metadata()
        world.operations.tell("phase", {"round": 3, "phase": "commit", "height": 120})
        world.operations.pause("")
        world.operations.tell("round_final", {"round": 3, "root": "aa", "included": 2})
        read = [await everything.read() for _ in range(3)]
        final = await rounds.read()
    assert [event.kind for event in read] == ["phase", "gpu_held", "round_final"]
    assert [b.sequence - a.sequence for a, b in pairwise(read)] == [1, 1]
    assert dict(read[0].details) == {"round": 3, "phase": "commit", "height": 120}
    assert dict(read[1].details) == {"who": "operator", "why": "paused by the operator"}
    assert final == read[2]


async def test_a_kind_of_event_that_does_not_exist_is_refused(world: World) -> None:
    async with world.channel() as channel:
        method = channel.unary_stream(f"/{SERVICE}/Events", pb.EventsRequest.SerializeToString, pb.Event.FromString)
        with pytest.raises(grpc.aio.AioRpcError, match="no event is of kind rounds") as caught:
            await method(pb.EventsRequest(kinds=["phase", "rounds"])).read()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_slow_reader_learns_how_many_it_missed(world: World) -> None:
    count, text = 5000, "x" * 2000
    async with world.channel() as channel:
        method = channel.unary_stream(f"/{SERVICE}/Events", pb.EventsRequest.SerializeToString, pb.Event.FromString)
        reader = method(pb.EventsRequest())
        await reader.initial_metadata()
        first = world.operations._hub._sequence
        for _ in range(count):  # 10 MB: more than the connection takes while nobody reads
            world.operations.tell("error", {"text": text})
            await asyncio.sleep(0)
        seen, missed, last = 0, 0, first
        while last < first + count:
            event = await reader.read()
            if event.kind == "missed":
                missed += int(event.details["count"])
                continue
            seen, last = seen + 1, event.sequence
            assert last == first + seen + missed  # nothing is left out in silence
    assert missed > 0
    assert seen + missed == count


async def test_too_many_readers_are_refused(world: World) -> None:
    async with world.channel() as channel:
        method = channel.unary_stream(f"/{SERVICE}/Events", pb.EventsRequest.SerializeToString, pb.Event.FromString)
        readers = [method(pb.EventsRequest()) for _ in range(READERS)]
        for reader in readers:
            await reader.initial_metadata()
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await method(pb.EventsRequest()).read()
        assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        readers[0].cancel()

        async def reads() -> bool:
            again = method(pb.EventsRequest())
            await again.initial_metadata()
            world.operations.tell("phase", {"round": 4})
            try:
                return (await again.read()).kind == "phase"
            except grpc.aio.AioRpcError:
                return False

        async with asyncio.timeout(30):
            while not await reads():
                await asyncio.sleep(0.05)
