from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from control_world import World, call

from gonka_trainer.control.client import open_control
from gonka_trainer.control.unix_socket import PATH_BYTES
from gonka_trainer.errors import ConfigError, StorageError, UserError


async def test_two_daemons_do_not_share_a_socket(tmp_path: Path) -> None:
    first, second = World(tmp_path), World(tmp_path)
    async with first.serving():
        with pytest.raises(StorageError, match="another process listens"):
            async with second.serving():
                pass
        async with first.channel() as channel:  # the first is not harmed
            assert (await call(channel, "Status")).standing == "waiting"


async def test_the_socket_of_a_dead_daemon_is_replaced(tmp_path: Path) -> None:
    world = World(tmp_path)
    code = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
        "print('bound', flush=True); sys.stdin.read()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        str(world.socket),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 30) == b"bound\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert world.socket.exists()
    async with world.serving(), world.channel() as channel:
        assert (await call(channel, "Status")).standing == "waiting"


async def test_a_file_in_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.socket.write_text("precious")
    with pytest.raises(StorageError, match="is no socket"):
        async with world.serving():
            pass
    assert world.socket.read_text() == "precious"


def folder_of(tmp_path: Path, socket_bytes: int) -> Path:
    """Return a folder in which `control.sock` has a path of exactly so many bytes."""
    rest = socket_bytes - len(os.fsencode(tmp_path)) - len("//control.sock")
    folder = tmp_path / ("x" * rest)
    folder.mkdir()
    return folder


async def test_the_longest_path_works_and_a_longer_one_is_named(tmp_path: Path) -> None:
    world = World(folder_of(tmp_path, PATH_BYTES))
    async with world.serving(), world.channel() as channel:
        assert (await call(channel, "Status")).standing == "waiting"
    for use in (World(folder_of(tmp_path, PATH_BYTES + 1)).serving, lambda: open_control(Path("/x" * 60))):
        with pytest.raises(ConfigError, match=r"107 at most(.|\n)*set control.socket"):
            async with use():
                pass


async def test_odd_characters_in_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c#d"
    folder.mkdir()
    world = World(folder)
    async with world.serving(), open_control(world.socket) as client:
        assert world.socket.is_socket()
        assert (await client.status()).standing == "waiting"


async def test_the_mask_of_the_process_is_as_before(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        async with World(tmp_path).serving():
            assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


async def test_a_client_without_a_daemon_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with pytest.raises(UserError, match=r"no daemon runs(.|\n)*gonka-trainer run"):
        async with open_control(path):
            pass
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with open_control(path) as client:
        with pytest.raises(UserError, match=r"no daemon answers(.|\n)*gonka-trainer run"):
            await client.status()
