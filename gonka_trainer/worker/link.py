"""The worker's end of the job link. No torch here: the worker listens while torch is still being imported."""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gonka_trainer.errors import DecodeError, WorkerError
from gonka_trainer.jobs import (
    MAX_LINE_BYTES,
    Evaluate,
    Finish,
    FromWorker,
    Shutdown,
    Train,
    Yield,
    decode_line,
    encode_line,
)

EXIT_LINK_CLOSED: Final = 3
EXIT_LINK_BROKEN: Final = 4


@dataclass(frozen=True)
class Job:
    """One thing to do. `finish` is set when the daemon wants the round ended after the step in hand.

    `give_way` is set when it wants it kept for later then.
    """

    ask: Train | Evaluate
    finish: threading.Event = field(default_factory=threading.Event)
    give_way: threading.Event = field(default_factory=threading.Event)


def connect(path: Path) -> socket.socket:
    """Connect to a Unix socket whose path may be longer than the 108 bytes that an address holds; OSError if not."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


class JobLink:
    """Jobs in, answers out. A thread reads: `Finish` and `Yield` are seen in mid-round, a closed link ends the process.

    `on_closed` is called in the reading thread with an exit status when the daemon is gone (no half-finished file can
    be left behind: they are all written aside and renamed). None comes out of `next_job` after a Shutdown.
    """

    def __init__(self, connection: socket.socket, on_closed: Callable[[int], object] = os._exit) -> None:
        self._connection = connection
        self._on_closed = on_closed
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._rounds: dict[int, Job] = {}
        self._reader = threading.Thread(target=self._read, name="job-link", daemon=True)

    def __enter__(self) -> JobLink:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, message: FromWorker) -> None:
        """Send one message; ends the process when the daemon is gone."""
        try:
            self._connection.sendall(encode_line(message))
        except (BrokenPipeError, ConnectionResetError):
            self._on_closed(EXIT_LINK_CLOSED)

    def next_job(self) -> Job | None:
        """Wait for the next job, in the order in which the daemon asked."""
        return self._jobs.get()

    def _read(self) -> None:
        try:
            with self._connection.makefile("rb") as lines:
                while line := lines.readline(MAX_LINE_BYTES):
                    if self._take(line):
                        return
        except (DecodeError, WorkerError) as error:
            print(f"job link: {error}", file=sys.stderr, flush=True)
            self._on_closed(EXIT_LINK_BROKEN)
        except OSError as error:
            print(f"job link: {error}", file=sys.stderr, flush=True)
        self._on_closed(EXIT_LINK_CLOSED)

    def _take(self, line: bytes) -> bool:
        """Take one message; True after a Shutdown."""
        match decode_line(line):
            case Train() as train:
                job = Job(train)
                self._rounds = {train.round: job}
                self._jobs.put(job)
            case Evaluate() as evaluate:
                self._jobs.put(Job(evaluate))
            case Finish(number):
                self._set(number, lambda job: job.finish)
            case Yield(number):
                self._set(number, lambda job: job.give_way)
            case Shutdown():
                self._jobs.put(None)
                return True
            case message:
                raise WorkerError(f"{type(message).__name__} is not a message to a worker")
        return False

    def _set(self, number: int, which: Callable[[Job], threading.Event]) -> None:
        """Tell only the latest job for the round: an earlier one of the same number has its own events."""
        if number in self._rounds:
            which(self._rounds[number]).set()
