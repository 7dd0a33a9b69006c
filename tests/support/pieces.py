"""An HTTP server whose answers come in two pieces, as larger ones do over any network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Pieces:
    """Answers every request with `body`: its second half only some time after the first."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.answered = 0
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = self.body
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body[: len(body) // 2])
        await writer.drain()
        await asyncio.sleep(0.05)  # a piece of its own for whoever reads
        writer.write(body[len(body) // 2 :])
        writer.close()
        await writer.wait_closed()
        self.answered += 1


@asynccontextmanager
async def in_pieces(body: bytes) -> AsyncIterator[Pieces]:
    pieces = Pieces(body)
    server = await asyncio.start_server(pieces.answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        pieces.url = f"http://{host}:{port}"
        yield pieces
