from __future__ import annotations

import queue
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from support.tiny_run import TinyRun

from gonka_trainer.jobs import Evaluate, Failed, Finish, Shutdown, Train, Yield, decode_line, encode_line
from gonka_trainer.worker.link import EXIT_LINK_BROKEN, EXIT_LINK_CLOSED, JobLink, connect

TRAIN = Train(1, "11" * 20, "b", "o", 5, 0, "r", "s")


class Pair:
    """A link, the daemon's end of it, and the exit statuses that the link would have ended the process with."""

    def __init__(self) -> None:
        self.daemon, worker = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.exits: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.link = JobLink(worker, self.exits.put)


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    with pair.link, pair.daemon:
        yield pair


def test_jobs_come_in_order_and_none_after_a_shutdown(pair: Pair) -> None:
    for message in (TRAIN, Evaluate("x", "p"), Shutdown()):
        pair.daemon.sendall(encode_line(message))
    jobs = [pair.link.next_job() for _ in range(3)]
    assert [job.ask if job else None for job in jobs] == [TRAIN, Evaluate("x", "p"), None]


def test_a_finish_reaches_the_latest_job_of_its_round_alone(pair: Pair) -> None:
    for message in (Finish(1), TRAIN, Finish(2), TRAIN, Finish(1), Evaluate("x", "p")):
        pair.daemon.sendall(encode_line(message))
    first, second, last = (pair.link.next_job() for _ in range(3))
    assert first is not None
    assert second is not None
    assert last is not None
    assert [job.finish.is_set() for job in (first, second)] == [False, True]


def test_a_yield_reaches_the_latest_job_of_its_round_alone(pair: Pair) -> None:
    for message in (Yield(1), TRAIN, Yield(2), TRAIN, Yield(1), Evaluate("x", "p")):
        pair.daemon.sendall(encode_line(message))
    jobs = [pair.link.next_job() for _ in range(3)]
    assert [job.give_way.is_set() for job in jobs if job] == [False, True, False]
    assert not any(job.finish.is_set() for job in jobs if job)


def test_the_process_ends_when_the_daemon_goes(pair: Pair) -> None:
    pair.daemon.close()
    assert pair.exits.get(timeout=60) == EXIT_LINK_CLOSED
    pair.link.send(Failed("a", "b"))
    assert pair.exits.get(timeout=60) == EXIT_LINK_CLOSED


@pytest.mark.parametrize("line", [b"x\n", b"\xff\n", b"{}\n", encode_line(Failed("a", "b")), b" " * (1 << 20)])
def test_the_process_ends_when_the_daemon_breaks_the_rules(pair: Pair, line: bytes) -> None:
    pair.daemon.sendall(line)
    assert pair.exits.get(timeout=60) == EXIT_LINK_BROKEN


def test_a_worker_of_several_is_refused_before_torch_is_imported(run: TinyRun) -> None:
    path = run.folder / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        command = [sys.executable, "-X", "importtime", "-m", "gonka_trainer.worker", "--socket", str(path)]
        command += ["--manifest", str(run.manifest_path), "--data", str(run.data)]
        worker = subprocess.Popen(command, env={"WORLD_SIZE": "2"}, stderr=subprocess.PIPE, text=True)
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            answer = decode_line(lines.readline())
            _, imports = worker.communicate(timeout=60)
    assert worker.returncode == 1
    assert isinstance(answer, Failed)
    assert "one of 2 processes" in answer.what
    assert "| torch" not in imports


def test_no_socket_is_a_usage_error() -> None:
    done = subprocess.run([sys.executable, "-m", "gonka_trainer.worker"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--socket" in done.stderr


def test_a_long_path_connects(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with pytest.raises(FileNotFoundError):
        connect(folder / "s")
    with socket.socket(socket.AF_UNIX) as listener, chdir(folder):
        listener.bind("s")
        listener.listen()
        connect(folder / "s").close()
