"""Calling a daemon on this machine over its Unix socket, for the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from gonka_trainer._pb.gonka_trainer.v1 import control_pb2 as pb
from gonka_trainer.control.service import SERVICE
from gonka_trainer.control.unix_socket import check_length, grpc_target
from gonka_trainer.errors import ConfigError, StorageError, UserError

_Reply = TypeVar("_Reply", bound=Message)
_CALL_SECONDS: Final = 30.0
_ENDED: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class ControlClient:
    """Calls of the control service. UserError says what the daemon refuses, or that there is none."""

    def __init__(self, channel: grpc.aio.Channel, socket: Path) -> None:
        self._channel = channel
        self._socket = socket

    async def status(self) -> pb.StatusReply:
        """Return where the host stands."""
        return await self._call("Status", pb.StatusRequest(), pb.StatusReply)

    async def pause(self, why: str) -> None:
        """Free the GPUs at once."""
        await self._call("Pause", pb.PauseRequest(why=why), pb.PauseReply)

    async def resume(self) -> None:
        """Take a pause or a drain back."""
        await self._call("Resume", pb.ResumeRequest(), pb.ResumeReply)

    async def drain(self) -> None:
        """End the round in hand and free the GPUs; waits until that is done, however long."""
        await self._call("Drain", pb.DrainRequest(), pb.DrainReply, None)

    async def stop(self) -> None:
        """End the daemon."""
        await self._call("Stop", pb.StopRequest(), pb.StopReply)

    async def events(self, kinds: list[str]) -> AsyncIterator[dict[str, Any]]:
        """Give events as plain values, until the daemon ends."""
        method = self._channel.unary_stream(
            f"/{SERVICE}/Events", pb.EventsRequest.SerializeToString, pb.Event.FromString
        )
        call, connected = method(pb.EventsRequest(kinds=kinds)), False
        try:
            await call.initial_metadata()
            connected = True
            async for event in call:
                details = MessageToDict(event.details)
                yield {"sequence": event.sequence, "time": event.time_seconds, "kind": event.kind, "details": details}
        except grpc.aio.AioRpcError as error:
            if not connected or error.code() not in _ENDED:
                raise self._error(error) from error

    async def _call(
        self, name: str, request: Message, reply: type[_Reply], timeout_seconds: float | None = _CALL_SECONDS
    ) -> _Reply:
        method = self._channel.unary_unary(f"/{SERVICE}/{name}", type(request).SerializeToString, reply.FromString)
        try:
            answer: _Reply = await method(request, timeout=timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise self._error(error) from error
        return answer

    def _error(self, error: grpc.aio.AioRpcError) -> UserError:
        match error.code():
            case grpc.StatusCode.UNAVAILABLE:
                return StorageError(
                    f"no daemon answers at {self._socket}", "start it with `gonka-trainer run`, or give its --config"
                )
            case grpc.StatusCode.UNIMPLEMENTED:
                return ConfigError(f"the daemon at {self._socket} is of another version", "restart it")
        what, _, remedy = (error.details() or error.code().name).partition(" -> ")
        return ConfigError(what, remedy)


@asynccontextmanager
async def open_control(socket: Path) -> AsyncIterator[ControlClient]:
    """Give the client of the daemon that listens at this socket; StorageError when none does."""
    check_length(socket)
    if not socket.exists():
        raise StorageError(f"no daemon runs: {socket} is not there", "start it with `gonka-trainer run`")
    async with grpc.aio.insecure_channel(grpc_target(socket)) as channel:
        yield ControlClient(channel, socket)
