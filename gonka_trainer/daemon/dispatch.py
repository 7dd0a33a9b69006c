"""Turning the core's wanted set into running tasks: what is new starts, what has gone is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from gonka_trainer.errors import ChainError, WorkerError
from gonka_trainer.round import commands

_LOG: Final = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 5.0


class Wanted:
    """A command that stands, and its latest form: holders, deadlines and `finish` change while a task runs."""

    def __init__(self, command: Any) -> None:
        self.command = command
        self._changed = asyncio.Event()

    def update(self, command: Any) -> None:
        """Take the newer form and wake whoever waits for it."""
        if command != self.command:
            self.command = command
            self._changed.set()

    async def change(self, timeout_seconds: float | None = None) -> None:
        """Return when the command has changed since the last call, or after the timeout."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_seconds)
        except TimeoutError:
            return
        self._changed.clear()


Action = Callable[[Wanted], Awaitable[None]]


def identity(command: commands.Command) -> Hashable:
    """Return what makes two forms of a command the same task."""
    match command:
        case commands.Train():
            return ("train", command.round)
        case commands.Fetch():
            return ("fetch", command.round, command.participant)
        case commands.Publish():
            return ("publish", command.record)
        case commands.Sync():
            return ("sync", command.root)
        case commands.SendJoin():
            return ("join",)
        case _:
            return command


class Dispatcher:
    """Runs one task for each standing command. Errors that mend with time are logged and tried again; others end it."""

    def __init__(self, actions: Mapping[type, Action]) -> None:
        self._actions = actions
        self._tasks: dict[Hashable, tuple[Wanted, asyncio.Task[None]]] = {}
        self._fatal: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Dispatcher:
        self._fatal = asyncio.get_running_loop().create_future()
        return self

    async def __aexit__(self, *exc: object) -> None:
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    def update(self, wanted: Iterable[commands.Command]) -> None:
        """Start, update and cancel tasks so that they are those of `wanted`."""
        standing = {identity(command): command for command in wanted}
        for key in [key for key in self._tasks if key not in standing]:
            self._tasks.pop(key)[1].cancel()
        for key, command in standing.items():
            if key in self._tasks:
                self._tasks[key][0].update(command)
            else:
                box = Wanted(command)
                task = asyncio.create_task(self._run(box), name=str(key)[:80])
                task.add_done_callback(self._ended)
                self._tasks[key] = (box, task)

    async def failed(self) -> None:
        """Wait until a task has failed for good, and raise its error."""
        if self._fatal is not None:
            await asyncio.shield(self._fatal)

    async def _run(self, box: Wanted) -> None:
        action = self._actions[type(box.command)]
        while True:
            try:
                return await action(box)
            except (ChainError, WorkerError) as error:
                _LOG.error("%s: %s", type(box.command).__name__, error)
                await asyncio.sleep(_RETRY_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Take any other error of a task as the end of the host: a fault must not end one task in silence."""
        error = None if task.cancelled() else task.exception()
        if error is not None and self._fatal is not None and not self._fatal.done():
            self._fatal.set_exception(error)
