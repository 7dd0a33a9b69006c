"""A Unix socket that its owner alone can open, in place of one that a dead process left behind."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gonka_trainer.errors import ConfigError, StorageError

PATH_BYTES: Final = 107
"""The longest path of a socket: `sun_path` of unix(7) has 108 bytes, the last of them zero."""

_PROBE_SECONDS: Final = 2.0


def check_length(path: Path) -> None:
    """ConfigError when the system cannot have a socket at this path."""
    if len(os.fsencode(path)) > PATH_BYTES:
        raise ConfigError(
            f"control.socket: {path} has {len(os.fsencode(path))} bytes, a socket's path has {PATH_BYTES} at most",
            "set control.socket to a shorter path, such as /run/gonka-trainer/control.sock",
        )


def grpc_target(path: Path) -> str:
    """Return the socket's address as gRPC reads it."""
    return f"unix:{quote(str(path))}"


def answers(path: Path) -> bool:
    """Whether a process listens at the socket now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except TimeoutError:
            return True  # somebody has it and is too busy to accept
    return True


@contextmanager
def own_socket(path: Path) -> Iterator[None]:
    """While entered, sockets that this process binds are its owner's alone; before, the path is made free.

    StorageError when another process listens there, when something else stands there, or when it cannot be made.
    """
    check_length(path)
    try:
        _make_free(path)
    except OSError as error:
        raise StorageError(
            f"control.socket: {path}: {error.strerror}", "name a path in a folder that can be written"
        ) from error
    # The mode must be right from the first moment: between bind and chmod anybody could connect.
    mask = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(mask)


def _make_free(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink() and not path.exists():
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise StorageError(f"control.socket: {path} is there and is no socket", "name another path")
    if answers(path):
        raise StorageError(
            f"control.socket: another process listens at {path}",
            "stop the other daemon, or give this one a control.socket of its own",
        )
    path.unlink()


def remove(path: Path) -> None:
    """Take the socket away; nothing happens when it is gone."""
    with suppress(OSError):
        path.unlink()
