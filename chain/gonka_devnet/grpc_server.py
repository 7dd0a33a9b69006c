"""The gRPC door: methods by their path, bytes in and out, heights by metadata, and refusals in the chain's words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from gonka_devnet.errors import printable, sdk_query_error
from gonka_devnet.module import QueryError
from gonka_devnet.node import Node

HEIGHT_HEADER = "x-cosmos-block-height"
MOST_REQUEST_BYTES = 10 * 1024 * 1024
OPTIONS = (
    ("grpc.max_receive_message_length", MOST_REQUEST_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
    ("grpc.so_reuseport", 0),
)
Handler = Callable[[bytes, int], Awaitable[bytes]]


def asked_height(text: str) -> int:
    """Return the height that the metadata names, 0 for none; raise QueryError."""
    if not text:
        return 0
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII):
        reason = f'invalid height header "{HEIGHT_HEADER}": strconv.ParseInt: parsing "{text}": invalid syntax'
        raise sdk_query_error(18, f"Baseapp.RegisterGRPCServer: {reason}")
    return int(text)


class Gateway(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its stubs alone
    """Gives every path its handler; unknown ones are refused as Go's server does."""

    def __init__(self, node: Node, handlers: Mapping[str, Handler]) -> None:
        self._node = node
        self._handlers = handlers
        self._services = {path.rsplit("/", 1)[0] for path in handlers}

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a call."""
        path = handler_call_details.method
        metadata = dict(handler_call_details.invocation_metadata or ())
        height_text = str(metadata.get(HEIGHT_HEADER, ""))

        async def call(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            try:
                height = asked_height(height_text)
                answered = height or self._node.height
                self._node.view(height)
                answer = await self._find(path)(request, height)
            except QueryError as error:
                return await _abort(context, error.status, error.details)
            except DecodeError:
                text = "grpc: error unmarshalling request: unexpected EOF"
                return await _abort(context, grpc.StatusCode.INTERNAL, text)
            await context.send_initial_metadata(((HEIGHT_HEADER, str(answered)),))
            return answer

        return grpc.unary_unary_rpc_method_handler(call)

    def _find(self, path: str) -> Handler:
        if path in self._handlers:
            return self._handlers[path]
        service, _, method = path.rpartition("/")
        name = service.lstrip("/")
        known = service in self._services
        details = f"unknown method {method} for service {name}" if known else f"unknown service {name}"
        raise QueryError(grpc.StatusCode.UNIMPLEMENTED, details)


async def _abort(context: grpc.aio.ServicerContext[Any, Any], status: grpc.StatusCode, details: str) -> NoReturn:
    await context.abort(status, printable(details))
    raise AssertionError("abort returned")


def module_handlers(node: Node) -> dict[str, Handler]:
    """Return handlers for the modules' queries."""

    def handler(path: str) -> Handler:
        return lambda request, height: node.query(path, request, height)

    return {path: handler(path) for path in node.app.queries}
