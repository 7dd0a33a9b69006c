"""The HTTP surface of an ML node, for a network node to drive: alone, or in front of a real ML node (docs/control.md).

What is asked and what must be answered was recorded from decentralized-api v0.2.0: no POST has a Content-Type, a stop
has no body, the network node ignores HTTP statuses, and a node that says TRAIN is left alone until proof of compute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from aiohttp import web

from gonka_trainer.control.real_node import RealNode, keep_headers, open_real_node, refusal
from gonka_trainer.control.sharing import Patience, Sharing
from gonka_trainer.control.train_calls import TrainCalls
from gonka_trainer.controls import Gpu, Operator
from gonka_trainer.errors import ConfigError

_LOG: Final = logging.getLogger(__name__)
_API: Final = "/api/v1/"
_UP: Final = "inference/up"
_BODY_BYTES: Final = 1024 * 1024
_SHUTDOWN_SECONDS: Final = 2.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class MlNodeSurface:
    """Answers as an ML node does; what is another's comes from the real one behind, if there is one."""

    def __init__(self, sharing: Sharing, train: TrainCalls, behind: RealNode | None) -> None:
        self._sharing = sharing
        self._train = train
        self._behind = behind
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "state"): self._state,
            ("POST", "stop"): self._stop,
            ("POST", _UP): self._inference_up,
            ("POST", "train/start"): self._train_start,
            ("GET", "train/status"): self._train_status,
            ("GET", "pow/status"): self._pow_status,
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer any request. A network node may be set to put a segment of its own before `/api/v1/`."""
        path = _plain(request)
        if path is None:
            return refusal(400, "the path is not a path")
        if request.method == "GET" and path.endswith("/health") and path.count("/") <= 2:
            return await self._health(request)
        name = path.partition(_API)[2]
        if name.startswith(_UP + "/"):  # other ways to have a model loaded, such as without waiting for it
            name = _UP
        handler = self._routes.get((request.method, name))
        if handler is not None:
            return await handler(request)
        if request.method == "POST" and "pow" in name.split("/"):
            return await self._proof(request)
        return await self._other(request)

    async def _state(self, request: web.Request) -> web.StreamResponse:
        if self._sharing.trains:
            return web.json_response({"state": "TRAIN"})
        if self._behind is None:
            return web.json_response({"state": "STOPPED"})
        return await self._behind.forward(request)

    async def _health(self, request: web.Request) -> web.StreamResponse:
        if self._behind is None or self._sharing.trains:
            return web.json_response({"status": "OK"})
        return await self._behind.forward(request)

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        await self._sharing.stop()
        if self._behind is None:
            return web.json_response({"status": "OK"})
        return await self._behind.forward(request)

    async def _proof(self, request: web.Request) -> web.StreamResponse:
        if self._behind is None:
            return refusal(409, "a trainer stands here: it makes no proof of compute")
        await self._sharing.proof()
        return await self._behind.forward(request)

    async def _pow_status(self, request: web.Request) -> web.StreamResponse:
        if self._behind is None:
            return web.json_response({"status": "STOPPED", "is_model_initialized": False})
        return await self._behind.forward(request)

    async def _inference_up(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if await self._sharing.inference(request.raw_path, body) and self._behind is not None:
            return await self._behind.forward(request, body)
        if self._behind is None:
            return refusal(409, "a trainer stands here: it serves no inference")
        # Not an error: a network node that takes it for one says stop and asks again, and training would never go on.
        detail = "training has the GPUs: the model is loaded when it ends"
        return web.json_response({"status": "OK", "detail": detail})

    async def _train_start(self, request: web.Request) -> web.StreamResponse:
        status, answer = await self._train.start(await request.read())
        if status == 200 and not await self._sharing.train():
            return refusal(409, "proof of compute has the GPUs")
        return web.json_response(answer, status=status)

    async def _train_status(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response(self._train.status(self._sharing.trains))

    async def _other(self, request: web.Request) -> web.StreamResponse:
        if self._behind is None:
            return refusal(404, "a trainer stands here: it has no such call")
        return await self._behind.forward(request)


def _plain(request: web.Request) -> str | None:
    """Return the path as whoever it is handed on to may read it: no empty segments; None when it leads elsewhere."""
    segments = [each for each in request.path.split("/") if each not in {"", "."}]
    if ".." in segments or not request.raw_path.startswith("/"):
        return None
    return "/" + "/".join(segments)


@asynccontextmanager
async def serve_ml_node(
    operator: Operator, gpu: Gpu, bind: tuple[str, int], forward_to: str, patience: Patience
) -> AsyncIterator[int]:
    """Serve the surface while entered, at host and port (0: the system chooses), and give the port.

    `forward_to` is the URL of the real ML node behind, or empty. When this is entered, the GPUs are held if the ML
    node has them. ConfigError when the address cannot be bound.
    """
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(open_real_node(forward_to)) if forward_to else None
        sharing = Sharing(gpu, operator, behind, patience)
        await sharing.begin()
        surface = MlNodeSurface(sharing, TrainCalls(operator, gpu), behind)
        port = await _listen(surface, bind, stack)
        watching = asyncio.create_task(sharing.watch())
        stack.push_async_callback(_end, watching)
        _LOG.info("ML node's surface on port %d, %s", port, f"in front of {forward_to}" if forward_to else "alone")
        yield port


async def _listen(surface: MlNodeSurface, bind: tuple[str, int], stack: AsyncExitStack) -> int:
    application = web.Application(client_max_size=_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", surface.handle)
    application.on_response_prepare.append(keep_headers)
    # A compressed body is handed on as it came: unpacked, it would be longer than its Content-Length says.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, auto_decompress=False)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    try:
        await web.TCPSite(runner, *bind).start()
    except OSError as error:
        raise ConfigError(
            f"ml_node.bind: {bind[0]}:{bind[1]} cannot be bound: {error.strerror}", "choose a free address and port"
        ) from error
    return int(runner.addresses[0][1])


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
