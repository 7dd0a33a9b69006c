"""The service gonka_trainer.v1.Control over any listener: requests to an `Operator`, UserErrors to statuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from gonka_trainer._pb.gonka_trainer.v1 import control_pb2 as pb
from gonka_trainer.control import messages
from gonka_trainer.controls import Gpu, Operator
from gonka_trainer.errors import ConfigError, UserError
from gonka_trainer.text import printable

SERVICE: Final = "gonka_trainer.v1.Control"
READERS: Final = 16
"""How many readers of events there may be at once."""

KINDS: Final = frozenset(
    (
        "phase",
        "round_final",
        "round_void",
        "transaction",
        "gpu_held",
        "gpu_freed",
        "run_started",
        "run_over",
        "error",
        "missed",
    )
)
"""The kinds of events (control.proto, `Event`)."""

REQUEST_BYTES: Final = 64 * 1024
_WHY_BYTES: Final = 200

Context = grpc.aio.ServicerContext[bytes, bytes]
Request = TypeVar("Request", bound=Message)
Answer = Callable[[Any], Awaitable[Message]]


class ControlService:
    """Answers the calls of the control service for one daemon."""

    def __init__(self, operator: Operator, gpu: Gpu) -> None:
        self._operator = operator
        self._gpu = gpu
        self._readers = 0

    def handlers(self) -> grpc.GenericRpcHandler[bytes, bytes]:
        """Return the handlers, for a server of either kind of listener."""
        calls: dict[str, tuple[type[Message], Answer]] = {
            "Status": (pb.StatusRequest, self._status),
            "Tasks": (pb.TasksRequest, self._tasks),
            "Start": (pb.StartRequest, self._start),
            "Pause": (pb.PauseRequest, self._pause),
            "Drain": (pb.DrainRequest, self._drain),
            "Resume": (pb.ResumeRequest, self._resume),
            "Stop": (pb.StopRequest, self._stop),
        }
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(_unary(kind, answer)) for name, (kind, answer) in calls.items()
        }
        methods["Events"] = grpc.unary_stream_rpc_method_handler(self._events)
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _status(self, _request: pb.StatusRequest) -> Message:
        return messages.status_reply(self._operator.status(), self._gpu.holds)

    async def _tasks(self, _request: pb.TasksRequest) -> Message:
        return pb.TasksReply(tasks=[messages.task(line) for line in await self._operator.tasks()])

    async def _start(self, request: pb.StartRequest) -> Message:
        await self._operator.start(messages.digest(request.manifest_hash))
        return pb.StartReply()

    async def _pause(self, request: pb.PauseRequest) -> Message:
        if len(request.why.encode()) > _WHY_BYTES:
            raise ConfigError(f"the reason has more than {_WHY_BYTES} bytes", "say it shorter")
        self._operator.pause(printable(request.why))
        return pb.PauseReply()

    async def _drain(self, _request: pb.DrainRequest) -> Message:
        await self._operator.drain()
        return pb.DrainReply()

    async def _resume(self, _request: pb.ResumeRequest) -> Message:
        self._operator.resume()
        return pb.ResumeReply()

    async def _stop(self, _request: pb.StopRequest) -> Message:
        self._operator.stop()
        return pb.StopReply()

    async def _events(self, raw: bytes, context: Context) -> None:
        request = await _parse(pb.EventsRequest, raw, context)
        for kind in sorted(set(request.kinds) - KINDS):
            text = f"no event is of kind {printable(kind)} -> {', '.join(sorted(KINDS))}"
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, text)
        if self._readers >= READERS:
            await _abort(context, grpc.StatusCode.RESOURCE_EXHAUSTED, f"{READERS} readers of events are here already")
        self._readers += 1
        try:
            await self._send_events(frozenset(request.kinds), context)
        finally:
            self._readers -= 1

    async def _send_events(self, kinds: frozenset[str], context: Context) -> None:
        with self._operator.events() as events:
            await context.send_initial_metadata(())
            async for happened in events:
                if not kinds or happened.kind in kinds or happened.kind == "missed":
                    await context.write(messages.event(happened).SerializeToString())


def _unary(kind: type[Message], answer: Answer) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def handler(raw: bytes, context: Context) -> bytes:
        request = await _parse(kind, raw, context)
        try:
            return (await answer(request)).SerializeToString()
        except ConfigError as error:
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, _text(error))
        except UserError as error:
            await _abort(context, grpc.StatusCode.FAILED_PRECONDITION, _text(error))

    return handler


def _text(error: UserError) -> str:
    """Return what is wrong and what to do on one line: a status' text is a header."""
    return printable(error.what if not error.remedy else f"{error.what} -> {error.remedy}", 1000)


async def _parse(kind: type[Request], raw: bytes, context: Context) -> Request:
    message = kind()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"not a {kind.__name__}")
    return message


async def _abort(context: Context, code: grpc.StatusCode, detail: str) -> NoReturn:
    await context.abort(code, detail)
    raise AssertionError("abort returned")
