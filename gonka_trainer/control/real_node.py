"""The real ML node behind the surface: requests handed on as they came, and the few that the surface sends itself."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from gonka_trainer.text import printable

_LOG: Final = logging.getLogger(__name__)
_CONNECT_SECONDS: Final = 10.0
_ASK_SECONDS: Final = 10.0
_LOAD_SECONDS: Final = 1800.0
_PIECE_BYTES: Final = 64 * 1024
_ANSWER_BYTES: Final = 64 * 1024
_AUTOMATIC: Final = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.USER_AGENT, hdrs.CONTENT_TYPE)
_HOP_BY_HOP: Final = frozenset(
    name.lower()
    for name in (
        hdrs.CONNECTION,
        hdrs.KEEP_ALIVE,
        hdrs.PROXY_AUTHENTICATE,
        hdrs.PROXY_AUTHORIZATION,
        hdrs.TE,
        hdrs.TRAILER,
        hdrs.TRANSFER_ENCODING,
        hdrs.UPGRADE,
    )
)

NO_CONTENT_TYPE: Final = web.ResponseKey("no_content_type", bool)
"""Marks an answer that came without a Content-Type, so that none is added to it."""


class RealNode:
    """An ML node that is reached at `base` (a URL without a path, or with one that stands before every path)."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base.rstrip("/")

    async def forward(self, request: web.Request, body: bytes | None = None) -> web.StreamResponse:
        """Hand a request on, bodies streamed both ways, and its answer back; 502 when the ML node does not answer.

        `body` is given when it was read already. Nothing is added to headers or taken from them but what belongs to
        one connection, and Host.
        """
        data = body if body is not None else _content(request)
        headers = _kept(request.headers, hdrs.HOST)
        try:
            async with self._session.request(
                request.method,
                URL(self._base + request.raw_path, encoded=True),
                headers=headers,
                data=data,
                allow_redirects=False,
            ) as answer:
                return await _hand_back(request, answer)
        except (aiohttp.ClientError, TimeoutError, ConnectionResetError) as error:
            _LOG.warning("the ML node behind: %s %s: %s", request.method, printable(request.path), error)
            return refusal(502, "the ML node behind the trainer does not answer")

    async def state(self) -> str:
        """Return what its /api/v1/state says, such as POW; empty when it does not answer."""
        answer = await self._ask("GET", "/api/v1/state", None)
        state = answer.get("state") if isinstance(answer, dict) else None
        return state if isinstance(state, str) else ""

    async def stop(self) -> bool:
        """Have it free the GPUs; whether it answered."""
        return await self._ask("POST", "/api/v1/stop", b"") is not None

    async def inference_up(self, path: str, body: bytes) -> bool:
        """Have it load a model, by a request that came earlier; whether it did, which may take many minutes."""
        return await self._ask("POST", path, body, _LOAD_SECONDS) is not None

    async def _ask(self, method: str, path: str, body: bytes | None, seconds: float = _ASK_SECONDS) -> Any:
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.request(method, URL(self._base + path, encoded=True), data=body) as answer,
            ):
                data = await _whole(answer)
                return json.loads(data or b"{}") if answer.status < 400 else None
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError) as error:
            _LOG.debug("the ML node behind: %s %s: %s", method, path, error)
            return None


@asynccontextmanager
async def open_real_node(base: str) -> AsyncIterator[RealNode]:
    """Give the ML node at this URL. Answers may take as long as they like; a connection may not."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=0)  # a stop must not wait until requests for inference are done
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        skip_auto_headers=_AUTOMATIC,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield RealNode(session, base)


def refusal(status: int, why: str) -> web.Response:
    """Return a refusal in the form of an ML node's answers: JSON with a `status`, and the reason in `detail`."""
    return web.json_response({"status": "ERROR", "detail": why}, status=status)


async def keep_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Take back the Content-Type that aiohttp adds to an answer that came without one (a signal of the server)."""
    if response.get(NO_CONTENT_TYPE):
        response.headers.popall(hdrs.CONTENT_TYPE, None)


def _content(request: web.Request) -> AsyncIterator[bytes] | None:
    return request.content.iter_chunked(_PIECE_BYTES) if request.can_read_body else None


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    data = b""
    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
        data += piece
        if len(data) > _ANSWER_BYTES:
            raise ValueError(f"an answer of more than {_ANSWER_BYTES} bytes")
    return data


async def _hand_back(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_kept(answer.headers))
    response[NO_CONTENT_TYPE] = hdrs.CONTENT_TYPE not in answer.headers
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_chunked(_PIECE_BYTES):
            await response.write(piece)
        await response.write_eof()
    except (aiohttp.ClientError, ConnectionResetError):
        # Too late for a refusal: a connection that ends early says that the answer is not whole.
        if request.transport is not None:
            request.transport.close()
    return response


def _kept(headers: CIMultiDictProxy[str], *besides: str) -> CIMultiDict[str]:
    listed = ",".join(headers.getall(hdrs.CONNECTION, ()))
    named = {name.strip().lower() for name in listed.split(",")}
    dropped = _HOP_BY_HOP | named | {name.lower() for name in besides}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)
