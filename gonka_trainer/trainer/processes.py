"""Which processes are there, as the kernel tells it in /proc: those of the worker's sessions, and no zombies.

Every start of a worker is a session of its own, and torchrun gives each worker a further one. No process number is used
again as long as a session is named by it, so a session's members are the worker's own until none is left.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GONE: Final = frozenset("ZX")
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Entry:
    """A living process: its number, its parent's, and its session's."""

    pid: int
    parent: int
    session: int


def members(sessions: Iterable[int]) -> tuple[Entry, ...]:
    """Return the living processes of the sessions."""
    wanted = frozenset(sessions)
    return tuple(entry for entry in _table() if entry.session in wanted) if wanted else ()


def sessions_below(pid: int) -> frozenset[int]:
    """Return the sessions of a process and all its descendants, as far as they live."""
    table = tuple(_table())
    family, grown = {pid}, True
    while grown:
        more = {entry.pid for entry in table if entry.parent in family} - family
        family |= more
        grown = bool(more)
    return frozenset(entry.session for entry in table if entry.pid in family)


def is_zombie(pid: int) -> bool:
    """Whether the process has ended and its parent has not asked how."""
    try:
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(entry: Entry) -> None:
    """Send SIGKILL to the process, unless its number is another's by now."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(entry.pid)
        try:
            now = _read(entry.pid)
            if now is not None and now.session == entry.session:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _table() -> Iterator[Entry]:
    for path in _PROC.iterdir():
        entry = _read(int(path.name)) if path.name.isdigit() else None
        if entry is not None:
            yield entry


def _read(pid: int) -> Entry | None:
    """Read a process's line: its name stands in brackets and may hold anything, brackets included (proc(5))."""
    try:
        state, parent, _, session, *_ = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state.decode() in _GONE else Entry(pid, int(parent), int(session))
