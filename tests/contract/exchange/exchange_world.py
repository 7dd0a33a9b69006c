"""Hosts with real stores, real TLS and real servers on the loopback, and real blobs and states to exchange."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.identity import Identity, introducer_certificate, new_identity
from gonka_trainer.exchange.limits import DEFAULT_LIMITS, Limits
from gonka_trainer.exchange.server import SERVICE, PeerServer
from gonka_trainer.gradient.blob import BlobIndex, encode_blob, open_blob
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.header import Expected, Header
from gonka_trainer.gradient.layout import Entry, Layout, layout_root
from gonka_trainer.gradient.state import StateIndex, index_state, open_state
from gonka_trainer.ports import ChunkIndex, Endpoint
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import ZERO_DIGEST, Address, Digest, Verdict, sha256

RUN = sha256(b"run")
ROUND = 3
LAYOUT = Layout((Entry("w", (1_500_000,), "zeros"),), 300_000)  # 5 chunks of 1.2 MB: two messages each
SMALL = Layout((Entry("w", (40,), "zeros"),), 1)  # 40 chunks a vector: several requests


def address(name: str) -> Address:
    return Address(sha256(name.encode())[:20])


class Rights:
    """A gate whose rights a test changes under the servers' feet."""

    def __init__(self) -> None:
        self.members: dict[Digest, Address] = {}
        self.observers: set[Address] = set()
        self.window_closed = True

    def caller(self, spki: Digest) -> Address | None:
        return self.members.get(spki)

    def may_have_blob(self, caller: Address, round_number: int, commitment: Digest) -> bool:
        return self.window_closed and caller not in self.observers

    def may_have_state(self, caller: Address) -> bool:
        return True


class HookedStore(ObjectStore):
    """A store that tells a test which chunk is about to be read, and may change what is read."""

    hook: Callable[[int, bytes], bytes] | None = None
    reads: int = 0

    def read(self, stored: Any, chunk: int) -> bytes | None:
        data = super().read(stored, chunk)
        self.reads += 1
        return data if self.hook is None or data is None else self.hook(chunk, data)


@dataclass
class Host:
    name: str
    identity: Identity
    store: HookedStore
    server: PeerServer
    client: PeerClient

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(address(self.name), "127.0.0.1", self.server.port, self.identity.spki)


@dataclass
class World:
    folder: Path
    stack: AsyncExitStack
    gate: Rights = field(default_factory=Rights)

    async def host(self, name: str, limits: Limits = DEFAULT_LIMITS) -> Host:
        identity = new_identity()
        self.gate.members[identity.spki] = address(name)
        store = self.stack.enter_context(HookedStore(self.folder / name))
        server = await self.stack.enter_async_context(
            PeerServer(identity, self.gate, store, bind="127.0.0.1:0", limits=limits)
        )
        client = await self.stack.enter_async_context(PeerClient(identity, limits))
        return Host(name, identity, store, server, client)


def make_state(layout: Layout = LAYOUT, seed: int = 1) -> tuple[StateIndex, bytes]:
    random = np.random.default_rng(seed)
    parameters, momentum = random.standard_normal((2, layout.total_elements)).astype(np.float32)
    return index_state(layout, parameters, momentum, 10, 1, threads=1), parameters.tobytes() + momentum.tobytes()


def make_blob(author: str, layout: Layout = LAYOUT, **changes: Any) -> tuple[BlobIndex, bytes]:
    random = np.random.default_rng(7)
    base, local = random.standard_normal((2, layout.total_elements)).astype(np.float32)
    fields: dict[str, Any] = {
        "chain_id": "test-1",
        "run_id": RUN,
        "round": ROUND,
        "participant": address(author),
        "node": "n",
        "base_root": ZERO_DIGEST,
        "manifest_hash": ZERO_DIGEST,
        "assignment_root": ZERO_DIGEST,
        "layout_root": layout_root(layout),
        "codec": "f32",
        "codec_version": 1,
        "payload_root": ZERO_DIGEST,
        "leaf_count": 0,
        "payload_bytes": 0,
        "trace_root": ZERO_DIGEST,
        "tokens": 10,
        "inner_steps": 1,
        "feedback_root": ZERO_DIGEST,
        "hardware": "cpu",
        "salt": bytes(32),
    } | changes
    parts: list[bytes] = []
    index = encode_blob(base, local, layout, codec("f32", 1), Header(**fields), parts.append, threads=1)
    return index, b"".join(parts)


def keep(store: ObjectStore, kind: str, key: bytes, number: int, index: ChunkIndex, payload: bytes) -> None:
    with store.draft(len(payload)) as draft:
        draft.append(payload)
        draft.publish(kind, key, number, index)


def state_opener(root: Digest, layout: Layout = LAYOUT) -> Callable[[bytes, bytes], ChunkIndex | Verdict]:
    return lambda preamble, leaves: open_state(root, preamble, leaves, layout)


def blob_opener(
    author: str, commitment: Digest, layout: Layout = LAYOUT
) -> Callable[[bytes, bytes], ChunkIndex | Verdict]:
    expected = Expected(
        "test-1", RUN, ROUND, address(author), ZERO_DIGEST, ZERO_DIGEST, layout_root(layout), "f32", 1, 30, 1000
    )

    def opener(preamble: bytes, leaves: bytes) -> ChunkIndex | Verdict:
        index = open_blob(commitment, preamble, leaves, expected, layout)
        return index if isinstance(index, Verdict) or index.header_verdict.good else index.header_verdict

    return opener


Answering = Callable[[bytes, Any], Awaitable[None]]


@asynccontextmanager
async def liar(identity: Identity, name: str, **methods: Answering) -> AsyncIterator[Endpoint]:
    """A server that has the key of its join record and answers whatever a test likes (streamed methods by name)."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handlers = {method: grpc.unary_stream_rpc_method_handler(answer) for method, answer in methods.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    credentials = grpc.ssl_server_credentials(
        [(identity.key, identity.certificate)], introducer_certificate(), require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield Endpoint(address(name), "127.0.0.1", port, identity.spki)
    finally:
        await server.stop(None)


class Relay:
    """A TCP relay before a server: counts what passes from the client, and can cut the connection after some bytes."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._writers: list[Any] = []
        self._tasks: set[Any] = set()
        self._server: Any = None
        self.port = 0
        self.accepted = 0
        self.writes = 0
        self.bytes_down = 0
        self.cut_after_bytes: int | None = None
        self.changed = asyncio.Condition()

    async def __aenter__(self) -> Relay:

        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: Any, writer: Any) -> None:

        self.accepted += 1
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, up_writer]
        for pump in (self._up(reader, up_writer), self._down(up_reader, writer)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)

    async def _up(self, reader: Any, writer: Any) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            async with self.changed:
                self.writes += 1
                self.changed.notify_all()
        writer.close()

    async def _down(self, reader: Any, writer: Any) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
            self.bytes_down += len(data)
            if self.cut_after_bytes is not None and self.bytes_down > self.cut_after_bytes:
                self.cut_after_bytes = None
                self._server.close()
                self.cut()
                return
        writer.close()
