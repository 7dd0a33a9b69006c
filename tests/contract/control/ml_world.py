"""A surface between a client that speaks as the recorded network node and a real ML node's stand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from control_world import GENEROUS_SECONDS, RUN, World, until

from gonka_trainer.control.ml_node import serve_ml_node
from gonka_trainer.control.sharing import Patience

RECORDING = Path(__file__).parents[2] / "data" / "golden" / "network_node" / "ml_node_requests.json"
QUICK = Patience(leave=GENEROUS_SECONDS, settle=0.1, look=0.02)
SLOW = Patience(leave=GENEROUS_SECONDS, settle=1000.0, look=1000.0)


@dataclass(frozen=True)
class Answer:
    """What came back over the wire: header names as they were sent, in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(port: int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """Send a request byte for byte as a Go client does, with nothing that an HTTP library would add."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = {"Host": f"127.0.0.1:{port}", "User-Agent": "Go-http-client/1.1"}
    if method == "POST":
        sent["Content-Length"] = str(len(body))
    sent.update(headers or {"Accept-Encoding": "gzip"})
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    try:
        async with asyncio.timeout(GENEROUS_SECONDS):
            writer.write("\r\n".join(lines).encode() + body)
            return await _read(reader)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    status = int(head[0].split()[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readline()).strip(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        return Answer(status, headers, body)
    return Answer(status, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@dataclass(frozen=True)
class Seen:
    """A request that reached the ML node, and whether the trainer's worker was on the GPU then."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    worker_alive: bool


class RealMlNode:
    """Stands in for the ML node behind: the states and answers that were recorded."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.state = "STOPPED"
        self.seen: list[Seen] = []
        self.port = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[RealMlNode]:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            self.port = runner.addresses[0][1]
            yield self
        finally:
            await runner.cleanup()

    @property
    def asked(self) -> list[str]:
        """Paths of what was posted, in order."""
        return [seen.path for seen in self.seen if seen.method == "POST"]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/v1/"):
            return await self._stream(request)
        body = await request.read()
        headers = tuple(request.headers.items())
        seen = Seen(request.method, request.raw_path, headers, body, self._world.worker.alive)
        self.seen.append(seen)
        match request.method, request.path.partition("/api/v1/")[2]:
            case "POST", "stop":
                self.state = "STOPPED"
            case "POST", "inference/up":
                self.state = "INFERENCE"
            case "POST", "pow/init/generate":
                self.state = "POW"
                return web.json_response({"status": "OK", "pow_status": {"status": "GENERATING"}})
            case "POST", "pow/init/validate":
                return web.json_response({"status": "OK", "pow_status": {"status": "VALIDATING"}})
            case "GET", "state":
                return web.json_response({"state": self.state})
            case "GET", "pow/status":
                return web.json_response({"status": "GENERATING", "is_model_initialized": True})
        return web.json_response({"status": "OK"})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Answer each piece of the body as it comes, before the body has ended."""
        response = web.StreamResponse(headers={"X-Echo": "yes", "Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for piece in request.content.iter_any():
            await response.write(piece)
        await response.write_eof()
        return response


@dataclass
class Stage:
    """The world, the surface's port, and the ML node behind (None: the trainer stands alone)."""

    world: World
    port: int
    node: RealMlNode | None

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        return await ask(self.port, method, path, body)

    async def state(self) -> str:
        return str((await self.ask("GET", "/api/v1/state")).json["state"])

    @property
    def real(self) -> RealMlNode:
        assert self.node is not None
        return self.node

    async def train(self) -> None:
        """Wait until training may have the GPUs, and have a worker on them."""
        await until(lambda: not self.world.gpu.holds and self.world.worker.admitted)
        self.world.worker.alive = True


@asynccontextmanager
async def stage(folder: Path, patience: Patience, *, behind: bool, runs: bool = True) -> AsyncIterator[Stage]:
    """Serve the surface over a daemon that serves a run, if `runs`, with or without an ML node behind it."""
    world = World(folder)
    node = RealMlNode(world) if behind else None
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(world.serving())
        if runs:
            stack.enter_context(world.operations.serving(world.run, RUN, "tiny"))
        if node is not None:
            await stack.enter_async_context(node.serving())
        url = "" if node is None else f"http://127.0.0.1:{node.port}"
        surface = serve_ml_node(world.operations, world.gpu, ("127.0.0.1", 0), url, patience)
        yield Stage(world, await stack.enter_async_context(surface), node)
