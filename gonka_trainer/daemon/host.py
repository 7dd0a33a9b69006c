"""One host in one run: the journal, the core and the tasks that it wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from gonka_trainer.daemon.dispatch import Action, Dispatcher
from gonka_trainer.daemon.follower import Follower, Tip
from gonka_trainer.ports import Block, Journal, RunLog
from gonka_trainer.round import events, machine
from gonka_trainer.round.commands import Command, Train
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import PlacedRecord
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Address, Digest, Height

Observer = Callable[[CoreState, CoreState, events.Event], None]
"""Called after each step with the former and the new state; for reports only."""


class Host:
    """Feeds the core with blocks and own deeds, journals each event first, and keeps the wanted tasks running."""

    def __init__(
        self, params: RoundParams, local: Local, journal: Journal, log: RunLog, follower: Follower, observer: Observer
    ) -> None:
        self._params = params
        self._local = local
        self._journal = journal
        self._log = log
        self._follower = follower
        self.observer = observer
        self.key: Callable[[], Address | None] = lambda: local.key
        self.reader: Callable[[Block, tuple[PlacedRecord, ...]], None] = lambda _block, _records: None
        self._queue: asyncio.Queue[events.Event] = asyncio.Queue()
        self.state = machine.initial(params, local)
        self.wants_membership = local.wants_membership
        self._last_hash: Digest | None = None
        self._finished = -1
        self._dispatcher: Dispatcher | None = None

    @property
    def in_training(self) -> int | None:
        """The round that is to be trained now; None when there is none."""
        wanted = machine.commands(self._params, self.local, self.state)
        return next((command.round for command in wanted if isinstance(command, Train)), None)

    def finish(self, round_number: int) -> None:
        """Have this round's training end now with what there is, however early."""
        self._finished = round_number
        if self._dispatcher is not None:
            self._dispatcher.update(shortened(machine.commands(self._params, self.local, self.state), self._finished))

    @property
    def local(self) -> Local:
        """Who this host is, and whether it wants to be a member now."""
        return Local(self._local.participant, self.key(), self.wants_membership)

    def emit(self, event: events.Event) -> None:
        """Hand in a fact of this host; it is journalled and acted on in turn."""
        self._queue.put_nowait(event)

    def replay(self) -> tuple[Command, ...]:
        """Bring the state to where the journal ends, and return what is wanted there."""
        for event in self._journal.replay():
            if isinstance(event, events.BlockSeen | events.Resumed):
                self._last_hash = event.block_hash if isinstance(event, events.BlockSeen) else None
            former = self.state
            self.state, _ = machine.step(self._params, self.local, former, event)
            self.observer(former, self.state, event)
        # Blocks may have passed meanwhile: nothing is begun on the old state before the tip is reached again.
        self.state = replace(self.state, own=replace(self.state.own, caught_up=False))
        return machine.commands(self._params, self.local, self.state)

    async def run(self, actions: Mapping[type, Action]) -> None:
        """Follow the chain and keep what is wanted running until cancelled, or until an error ends the host."""
        async with Dispatcher(actions) as dispatcher, asyncio.TaskGroup() as group:
            self._dispatcher = dispatcher
            dispatcher.update(machine.commands(self._params, self.local, self.state))
            group.create_task(self._follow())
            group.create_task(dispatcher.failed())
            while True:
                event = await self._queue.get()
                dispatcher.update(shortened(self._take(event), self._finished))

    def _take(self, event: events.Event) -> tuple[Command, ...]:
        self._journal.append(event)
        former, local = self.state, self.local
        self.state, wanted = machine.step(self._params, local, former, event)
        self.observer(former, self.state, event)
        if self.local != local:  # this block's opening names another of this host's keys, or the host has left
            wanted = machine.commands(self._params, self.local, self.state)
        return wanted

    async def _follow(self) -> None:
        seen_height = self.state.queue[-1].height if self.state.queue else self.state.height
        start = Height(max(self._params.log_height, seen_height + 1))
        async for seen in self._follower.follow(start, self._last_hash):
            match seen:
                case Block():
                    records = self._log.records(seen)
                    self.reader(seen, records)
                    self.emit(events.BlockSeen(seen.height, seen.block_hash, records))
                case Tip() if not self.state.own.caught_up:
                    self.emit(events.CaughtUp(seen.height))


def shortened(wanted: tuple[Command, ...], round_number: int) -> tuple[Command, ...]:
    """Return what is wanted, with this round's training to end at once."""
    return tuple(
        replace(each, finish=True) if isinstance(each, Train) and each.round == round_number else each
        for each in wanted
    )
