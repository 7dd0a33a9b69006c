"""The daemon's end of the job link: a Unix socket that the worker connects to."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from gonka_trainer.errors import DecodeError, WorkerError
from gonka_trainer.jobs import (
    MAX_LINE_BYTES,
    Done,
    Evaluated,
    Failed,
    FromWorker,
    Progress,
    Ready,
    ToWorker,
    decode_line,
    encode_line,
)

_FROM_WORKER: Final = (Ready, Progress, Done, Evaluated, Failed)
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid: Linux's SO_PEERCRED
_REMEDY: Final = "daemon and worker must be of the same version"


class LinkError(WorkerError):
    """The link is of no more use: the worker ended or was killed, or it broke the link's rules."""


class WorkerLink:
    """One connection from a worker. `receive` and `send` are for one task at a time.

    `owed` counts the answers that nobody waits for any more: they come before any later job's.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.owed = 0

    @property
    def pid(self) -> int:
        """The worker's process as the kernel knows it, whatever it says of itself."""
        connection = self._writer.get_extra_info("socket")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid: int = _CREDENTIALS.unpack(credentials)[0]
        return pid

    @property
    def closed(self) -> bool:
        """Whether nothing more can come."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def receive(self) -> FromWorker:
        """Wait for the next message; LinkError at the end, and for what is no message from a worker."""
        try:
            line = await self._reader.readuntil(b"\n")
            message = decode_line(line)
        except asyncio.LimitOverrunError as error:
            raise LinkError(f"the worker sent a line of more than {MAX_LINE_BYTES} bytes", _REMEDY) from error
        except DecodeError as error:
            raise LinkError(f"the worker sent what is no message: {error}", _REMEDY) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise LinkError("the worker has ended") from error
        if not isinstance(message, _FROM_WORKER):
            raise LinkError(f"the worker sent {type(message).__name__}, which is not its to send", _REMEDY)
        return message

    def send(self, message: ToWorker) -> None:
        """Send one message without waiting (they are small); LinkError when the worker is known to be gone."""
        if self.closed:
            raise LinkError("the worker has ended")
        self._writer.write(encode_line(message))

    async def close(self) -> None:
        """Close the connection, which ends the worker if it still lives."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return  # closed by the other side: closed


@asynccontextmanager
async def listen(path: Path) -> AsyncIterator[asyncio.Queue[WorkerLink]]:
    """Listen at a socket that only this user can open; every connection comes out of the queue.

    The path may be longer than a socket address: it is bound by way of its folder's handle.
    """
    arrivals: asyncio.Queue[WorkerLink] = asyncio.Queue()

    async def arrive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await arrivals.put(WorkerLink(reader, writer))

    server = await asyncio.start_unix_server(arrive, sock=_bind(path), limit=MAX_LINE_BYTES)
    try:
        yield arrivals
    finally:
        server.close()
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108


def _bind(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
    except OSError as error:
        listener.close()
        raise WorkerError(f"{path}: cannot listen: {error.strerror}", "is the data directory writable?") from error
    finally:
        os.close(folder)
    return listener
