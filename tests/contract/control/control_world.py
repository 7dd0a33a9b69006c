"""The real operations, holds and services over sockets; only the run and its worker stand in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from gonka_trainer._pb.gonka_trainer.v1 import control_pb2 as pb
from gonka_trainer.app.operations import Operations
from gonka_trainer.control.access import TcpSettings
from gonka_trainer.control.server import serve_control
from gonka_trainer.control.service import SERVICE, ControlService
from gonka_trainer.controls import TaskLine
from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.types import Digest

RUN = Digest(bytes.fromhex("ab" * 32))
STRANGE = Digest(bytes.fromhex("cd" * 32))
BROKEN = Digest(bytes.fromhex("ee" * 32))
GENEROUS_SECONDS = 30.0


class Worker:
    """Stands in for the trainer: `alive` is whether its process is; it leaves only when the test lets it."""

    def __init__(self) -> None:
        self.alive = False
        self.admitted = True
        self.may_leave = asyncio.Event()
        self.may_leave.set()

    @property
    def in_use(self) -> bool:
        return self.alive

    def bar(self) -> None:
        self.admitted = False

    def admit(self) -> None:
        self.admitted = True

    async def vacate(self, _seconds: float) -> None:
        self.bar()
        await self.may_leave.wait()
        self.alive = False


class Daemon:
    """Stands in for the daemon: two runs on chain, one of which the operator's list refuses."""

    def __init__(self) -> None:
        self.about: Mapping[str, Any] = {"host": "gonka1participant", "chain_id": "gonka-devnet"}
        self.started: list[Digest] = []
        self.lines = (
            TaskLine(RUN, 7, "gonka1author", 12, "", "serving", ""),
            TaskLine(STRANGE, 8, "gonka1stranger", 13, "https://example.com/x.json", "refused", "you did not agree"),
        )

    async def task_lines(self) -> tuple[TaskLine, ...]:
        return self.lines

    async def start_run(self, run: Digest) -> None:
        if run == STRANGE:
            raise ConfigError("run cd... does not start: it is on another chain", "mend that; it is agreed to now")
        if run == BROKEN:
            raise StorageError("data/accepted: No space left on device", "free space")
        self.started.append(run)


class Run:
    """Stands in for the served run: a round in training that ends, and is committed, when the test says so."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.status: Mapping[str, Any] = {
            "host": "gonka1participant",
            "run": "12" * 32,
            "height": 100,
            "round": 3,
            "phase": "train",
            "inner_step": 5,
            "training_round": 3,
            "loss": 2.5,
            "transactions": 4,
            "got_bytes": 1000,
        }
        self.training: int | None = 3
        self.finish_asked = asyncio.Event()
        self.trained = asyncio.Event()
        self.in_block = asyncio.Event()

    @property
    def over(self) -> bool | None:
        return self.ended.is_set()

    def listen(self, tell: Callable[[str, Mapping[str, Any]], None]) -> None:
        pass

    async def finish_training(self) -> int | None:
        self.finish_asked.set()
        if self.training is None:
            return None
        await self.trained.wait()
        return self.training

    async def committed(self, round_number: int) -> None:
        assert round_number == self.training
        await self.in_block.wait()


class World:
    """One daemon's control service at `socket`, and on TCP when asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "control.sock"
        self.gpu = GpuTurns(FileStops(folder / "stops.json", 30.0))
        self.worker = Worker()
        self.daemon = Daemon()
        self.run = Run()
        self.stopped = asyncio.Event()
        self.operations = Operations(folder, self.gpu, self.daemon, self.stopped.set)
        self.gpu.tell = self.operations.tell
        self.port = 0

    @asynccontextmanager
    async def serving(self, tcp: TcpSettings | None = None) -> AsyncIterator[World]:
        async with AsyncExitStack() as stack:
            lent = asyncio.create_task(self.gpu.serve(self.worker, _unheard))
            stack.callback(lent.cancel)
            await until(lambda: self.gpu._trainer is not None)
            service = ControlService(self.operations, self.gpu)
            self.port = await stack.enter_async_context(serve_control(service, self.socket, tcp))
            yield self

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        async with grpc.aio.insecure_channel(f"unix:{self.socket}") as channel:
            yield channel


def _unheard(**_: Any) -> None:
    pass


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(GENEROUS_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


async def call(channel: grpc.aio.Channel, name: str, request: Any = None, metadata: Any = ()) -> Any:
    """Make a unary call by the method's name, with an empty request if none is given."""
    request = request if request is not None else getattr(pb, f"{name}Request")()
    method = channel.unary_unary(
        f"/{SERVICE}/{name}", type(request).SerializeToString, getattr(pb, f"{name}Reply").FromString
    )
    return await method(request, timeout=GENEROUS_SECONDS, metadata=metadata)


async def refused(
    channel: grpc.aio.Channel, name: str, request: Any = None, metadata: Any = ()
) -> grpc.aio.AioRpcError:
    """Make a call that must fail, and return its error."""
    try:
        await call(channel, name, request, metadata)
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError(f"{name} was not refused")
