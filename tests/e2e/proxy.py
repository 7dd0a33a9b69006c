"""What stands between one host and its chain node, which stays the real one.

`BroadcastProxy` forwards gRPC by method path and can refuse a transaction or swallow it; `Gate` forwards connections
and can be shut.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from types import TracebackType
from typing import Any

import grpc

from gonka_trainer._pb.gonka_trainer.chain.v1 import node_pb2

_BROADCAST = "/cosmos.tx.v1beta1.Service/BroadcastTx"


class BroadcastProxy:
    """Forwards to `target`. `swallow` next broadcasts are answered with code 0 and never passed on; `refuse` next ones
    are answered as a node does whose mempool is full (sdk 20). `seen` counts what became of broadcasts.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.swallow = 0
        self.refuse = 0
        self.seen: Counter[str] = Counter()
        self.address = ""

    async def __aenter__(self) -> BroadcastProxy:
        self._channel = grpc.aio.insecure_channel(self._target)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((_Forward(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop(0)
        await self._channel.close(None)

    async def call(self, method: str, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        """Answer one call."""
        if method == _BROADCAST:
            answer = self._fault(request)
            if answer is not None:
                return answer
            self.seen["passed"] += 1
        metadata = tuple((k, v) for k, v in context.invocation_metadata() or () if k.startswith("x-cosmos"))
        try:
            call: Any = self._channel.unary_unary(method, None, None)  # bytes in, bytes out
            return bytes(await call(request, metadata=metadata, timeout=20))
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
            raise AssertionError("abort returned") from error

    def _fault(self, request: bytes) -> bytes | None:
        transaction = node_pb2.BroadcastTxRequest.FromString(request).tx_bytes
        answer = node_pb2.TxResponse(txhash=hashlib.sha256(transaction).hexdigest().upper().encode())
        if self.swallow > 0:
            self.swallow -= 1
            self.seen["swallowed"] += 1
        elif self.refuse > 0:
            self.refuse -= 1
            self.seen["refused"] += 1
            answer = node_pb2.TxResponse(txhash=answer.txhash, codespace=b"sdk", code=20, raw_log=b"mempool is full")
        else:
            return None
        return node_pb2.BroadcastTxResponse(tx_response=answer).SerializeToString()


class _Forward(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, proxy: BroadcastProxy) -> None:
        self._proxy = proxy

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        async def handle(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            return await self._proxy.call(details.method, request, context)

        return grpc.unary_unary_rpc_method_handler(handle)


class Gate:
    """Forwards TCP connections to host:port; while shut, open ones are cut and new ones are closed at once."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._pipes: set[asyncio.Task[None]] = set()
        self._shut = False
        self.address = ""

    async def __aenter__(self) -> Gate:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()
        self._server.close()

    def shut(self) -> None:
        """Be a node that is away."""
        self._shut = True
        for pipe in self._pipes:
            pipe.cancel()

    def open(self) -> None:
        """Be there again."""
        self._shut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pipe = asyncio.ensure_future(self._forward(reader, writer))
        self._pipes.add(pipe)
        pipe.add_done_callback(self._pipes.discard)
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await pipe
        writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._shut:
            return
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        try:
            await asyncio.wait(
                [
                    asyncio.ensure_future(_copy(reader, there_writer)),
                    asyncio.ensure_future(_copy(there_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            there_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
