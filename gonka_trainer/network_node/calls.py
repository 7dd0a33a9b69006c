"""Calls to the network node: gRPC by method path, in plaintext on a private interface as it serves it."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message

from gonka_trainer.errors import NetworkNodeError, NetworkNodeUnavailableError
from gonka_trainer.text import printable

Answer = TypeVar("Answer", bound=Message)

_AWAY: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


class CallError(NetworkNodeError):
    """The network node answered a call with an error of its own: `status` and `details` are what it said."""

    def __init__(self, what: str, status: grpc.StatusCode, details: str, remedy: str = "") -> None:
        super().__init__(f"{what}: {status.name} {printable(details)}", remedy)
        self.status = status
        self.details = details


class NodeChannel:
    """A channel to host:port. Use as `async with`."""

    def __init__(self, target: str, timeout_seconds: float = 30.0) -> None:
        self.target = target
        self._timeout_seconds = timeout_seconds
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> NodeChannel:
        self._channel = grpc.aio.insecure_channel(self.target)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close(None)

    async def call(self, path: str, request: Message, answer: type[Answer]) -> Answer:
        """Call the method; NetworkNodeUnavailableError when nobody answers, CallError for the node's own errors."""
        assert self._channel is not None, "used outside `async with`"
        method = self._channel.unary_unary(path, None, None)  # bytes in, bytes out
        try:
            raw: Any = await method(request.SerializeToString(), timeout=self._timeout_seconds)
            return answer.FromString(raw)
        except grpc.aio.AioRpcError as error:
            details = error.details() or ""
            if error.code() in _AWAY:
                raise NetworkNodeUnavailableError(
                    f"network node {self.target} does not answer {path}: {printable(details)}",
                    "check that it runs and that the address is right",
                ) from error
            raise CallError(f"network node {self.target} refuses {path}", error.code(), details) from error
        except WireError as error:
            raise NetworkNodeError(f"answer of network node {self.target} to {path} does not decode") from error
