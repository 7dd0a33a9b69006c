"""The run that is served, as those who drive the daemon see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from gonka_trainer.daemon.host import Host
from gonka_trainer.daemon.report import Reporter
from gonka_trainer.round.summary import Phase
from gonka_trainer.types import Address

_LOOK_SECONDS: Final = 0.2

Tell = Callable[[str, Mapping[str, Any]], None]


class ServedRun:
    """Nothing is known, trained or told before the run is live, and after."""

    def __init__(self, participant: Address, ended: asyncio.Event) -> None:
        self.ended = ended
        self._participant = participant
        self._host: Host | None = None
        self._reporter: Reporter | None = None
        self._tell: Tell | None = None

    @contextmanager
    def live(self, host: Host, reporter: Reporter) -> Iterator[None]:
        """The run is at work while this is entered."""
        self._host, self._reporter = host, reporter
        if self._tell is not None:
            reporter.tell = self._tell
        try:
            yield
        finally:
            self._host = None

    def listen(self, tell: Tell) -> None:
        """Have what happens in the run told here; to be called before it is live."""
        self._tell = tell

    @property
    def status(self) -> Mapping[str, Any]:
        """Return what `status.json` says."""
        return {} if self._reporter is None else self._reporter.status

    @property
    def over(self) -> bool | None:
        """Whether nothing is left to train: the run has ended, or was left. None before the journal is read."""
        host = self._host
        if host is None:
            return None
        state = host.state
        if self.ended.is_set() or (state.phase is Phase.ENDED and state.final_root in state.own.states):
            return True
        return not host.wants_membership and not state.membership.is_member(self._participant)

    async def finish_training(self) -> int | None:
        """End the round in hand with what there is, and return its number when its blob is made; None: no training."""
        host = self._host
        number = None if host is None else host.in_training
        if host is None or number is None:
            return None
        host.finish(number)
        while self._host is host and host.in_training == number:
            await asyncio.sleep(_LOOK_SECONDS)
        return number

    async def committed(self, round_number: int) -> None:
        """Wait until the round's commitment is in a block, or cannot be any more."""
        host = self._host
        while host is not None and self._host is host and self._commits(host, round_number):
            await asyncio.sleep(_LOOK_SECONDS)

    def _commits(self, host: Host, round_number: int) -> bool:
        current = host.state.current
        if current is None or current.number != round_number or current.closed is not None:
            return False
        return self._participant not in current.commits
