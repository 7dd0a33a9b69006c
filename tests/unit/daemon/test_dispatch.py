"""The dispatcher keeps exactly the wanted tasks running, and says when one has failed for good."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gonka_trainer.daemon.dispatch import Dispatcher, Wanted
from gonka_trainer.errors import ProtocolError
from gonka_trainer.round.commands import Fetch, Halt, Keep, Train
from gonka_trainer.types import ZERO_DIGEST, Address, Height

TRAIN = Train(0, ZERO_DIGEST, (), Height(10), finish=False)
FETCH = Fetch(0, Address(bytes(20)), ZERO_DIGEST, ZERO_DIGEST, ())


class Log:
    """Actions that write down what happens to them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seen = asyncio.Event()

    async def stay(self, wanted: Wanted) -> None:
        name = type(wanted.command).__name__
        self.lines.append(f"{name} starts")
        try:
            while True:
                await wanted.change()
                self.lines.append(f"{name} changes: {getattr(wanted.command, 'finish', '')}")
                self.seen.set()
        finally:
            self.lines.append(f"{name} ends")

    async def fail(self, wanted: Wanted) -> None:
        raise ProtocolError(f"round {wanted.command.round}")

    async def stumble(self, wanted: Wanted) -> None:
        raise KeyError(type(wanted.command).__name__)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_new_starts_what_stands_goes_on_what_has_gone_ends() -> None:
    log = Log()
    async with Dispatcher({Train: log.stay, Fetch: log.stay}) as dispatcher:
        dispatcher.update([TRAIN])
        await settle()
        dispatcher.update([TRAIN, FETCH])
        await settle()
        assert log.lines == ["Train starts", "Fetch starts"]
        dispatcher.update([FETCH])
        await settle()
        assert log.lines == ["Train starts", "Fetch starts", "Train ends"]
    assert log.lines[-1] == "Fetch ends"


async def test_another_form_of_a_command_reaches_its_running_task() -> None:
    log = Log()
    async with Dispatcher({Train: log.stay}) as dispatcher:
        dispatcher.update([TRAIN])
        await settle()
        dispatcher.update([replace(TRAIN, finish=True)])
        async with asyncio.timeout(5):
            await log.seen.wait()
        assert log.lines == ["Train starts", "Train changes: True"]


async def test_a_task_that_is_done_is_not_started_again_while_its_command_stands() -> None:
    runs = []

    async def once(wanted: Wanted) -> None:
        runs.append(wanted.command)

    async with Dispatcher({Keep: once}) as dispatcher:
        for _ in range(3):
            dispatcher.update([Keep((ZERO_DIGEST,), 0)])
            await settle()
        dispatcher.update([])
        dispatcher.update([Keep((ZERO_DIGEST,), 0)])
        await settle()
    assert len(runs) == 2


@pytest.mark.parametrize(("action", "error"), [("fail", ProtocolError), ("stumble", KeyError)])
async def test_an_error_that_does_not_mend_ends_the_host(action: str, error: type[Exception]) -> None:
    async with Dispatcher({Halt: getattr(Log(), action)}) as dispatcher:
        dispatcher.update([Halt(3, ZERO_DIGEST, ZERO_DIGEST)])
        with pytest.raises(error):
            async with asyncio.timeout(5):
                await dispatcher.failed()
