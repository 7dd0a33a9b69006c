"""A proxy before a devnet's RPC that changes answers on their way, and one before its gRPC."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc
from aiohttp import web

from gonka_trainer.chain.client import ChainClient, NodeAddress

Alter = Callable[[str, int, Any], Any]


def untouched(_method: str, _height: int, result: Any) -> Any:
    return result


@dataclass
class RpcProxy:
    """What stands between a client and a node.

    `away` lets connections drop, `behind` hides the newest blocks, `lowest` the oldest, `alter` changes results.
    """

    target: str
    alter: Alter = untouched
    away: bool = False
    behind: int = 0
    lowest: int = 1
    asked: list[str] = field(default_factory=list)
    url: str = ""

    async def respond(self, request: web.Request) -> web.Response:
        method, height = request.match_info["method"], int(request.query.get("height", 0))
        self.asked.append(f"{method} {height}")
        if self.away:
            assert request.transport is not None
            request.transport.close()
            return web.Response(status=503)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{self.target}/{request.path_qs.lstrip('/')}") as answer,
        ):
            body, status = await answer.read(), answer.status
        if status != 200:
            return web.Response(body=body, status=status, content_type=answer.content_type)
        document = json.loads(body)
        newest = await self._newest()
        if height > newest:
            return _refusal(f"height {height} must be less than or equal to the current blockchain height {newest}")
        if 0 < height < self.lowest:
            return _refusal(f"height {height} is not available, lowest height is {self.lowest}")
        if method == "status":
            document["result"]["sync_info"]["latest_block_height"] = str(newest)
        document["result"] = self.alter(method, height, document["result"])
        return web.json_response(document)

    async def _newest(self) -> int:
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.target}/status") as answer:
            newest = int((await answer.json())["result"]["sync_info"]["latest_block_height"])
        return max(newest - self.behind, 1)


def _refusal(data: str) -> web.Response:
    error = {"code": -32603, "message": "Internal error", "data": data}
    return web.json_response({"jsonrpc": "2.0", "id": -1, "error": error}, status=500)


@asynccontextmanager
async def rpc_proxy(target: str, alter: Alter = untouched, **settings: Any) -> AsyncIterator[RpcProxy]:
    """Serve a proxy before the RPC at `target` (host:port)."""
    proxy = RpcProxy(target, alter, **settings)
    server = web.Application()
    server.router.add_get("/{method}", proxy.respond)
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        proxy.url = f"http://{host}:{port}"
        yield proxy
    finally:
        await runner.cleanup()


class _Handler(grpc.GenericRpcHandler):
    def __init__(
        self, channel: grpc.aio.Channel, alter: Callable[[str, bytes], bytes], answers: Mapping[str, bytes]
    ) -> None:
        self._channel = channel
        self._alter = alter
        self._answers = answers

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            if details.method in self._answers:
                return self._answers[details.method]
            metadata = [(key, value) for key, value in details.invocation_metadata if key.startswith("x-cosmos")]
            try:
                found = await self._channel.unary_unary(details.method)(request, metadata=metadata)
            except grpc.aio.AioRpcError as error:
                await context.abort(error.code(), error.details() or "")
                raise
            return self._alter(details.method, found)

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def grpc_proxy(
    target: str, alter: Callable[[str, bytes], bytes] = lambda _, answer: answer, **answers: bytes
) -> AsyncIterator[str]:
    """Serve a proxy before the gRPC at `target`; yields host:port.

    `alter` gets the method and the answer; methods in `answers` are not handed on.
    """
    async with grpc.aio.insecure_channel(target) as channel:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_Handler(channel, alter, answers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            await server.stop(None)


@asynccontextmanager
async def reader(net: Any, *rpcs: str, verify: bool = False, **settings: Any) -> AsyncIterator[ChainClient]:
    """Open a client of nodes whose RPC is at these URLs, and whose gRPC is the devnet's or as `grpcs` says."""
    grpcs = settings.pop("grpcs", [net.grpc] * len(rpcs))
    first, *others = [NodeAddress(at, url, verify) for at, url in zip(grpcs, rpcs, strict=True)]
    settings = {"chain_id": net.chain_id, "timeout_seconds": 5.0, "tend_seconds": 0.1, **settings}
    async with ChainClient(first, others=others, **settings) as client:
        yield client
