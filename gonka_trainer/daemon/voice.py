"""Under which account key this host speaks, and how the others reach it: both can change while a run goes on.

A host holds one account key, and two while it changes keys: the old one speaks until an opening names the new one
(docs/protocol.md 1). Which of them a round's roster names is what the chain says; nothing of it is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gonka_trainer.ports import Block, Endpoint, Receipt, RunLog
from gonka_trainer.round.records import PlacedRecord, Record
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Address


@dataclass
class Presence:
    """Where this host is reached and by which TLS key; put another endpoint here, and the host joins again."""

    endpoint: Endpoint


def speaking(state: CoreState, participant: Address | None, held: Sequence[Address]) -> Address:
    """Return which of the held keys speaks now: the round's, else the participant's speaker, delegate, or the first.

    A key that is not held, as another machine's of the same participant, counts for nothing here.
    """
    current = state.current
    if participant is None or len(held) == 1:
        return held[0]
    named = [key for key in held if current is not None and current.roster.keys.get(key) == participant]
    standing = state.membership.standing(participant)
    named += [key for key in (standing.speaker, standing.delegate) if key is not None and key in held]
    return [*named, *held][0]


class Voices:
    """The run's log under each account key that this host holds; implements `ports.RunLog` under the speaking one."""

    def __init__(self, participant: Address | None, key: Address, log: RunLog, state: Callable[[], CoreState]) -> None:
        self._participant = participant
        self._logs = {key: log}
        self._state = state

    @property
    def held(self) -> tuple[Address, ...]:
        """The keys, the oldest first."""
        return tuple(self._logs)

    @property
    def key(self) -> Address:
        """The key that speaks now."""
        return speaking(self._state(), self._participant, self.held)

    def take(self, key: Address, log: RunLog) -> None:
        """Hold one more key."""
        self._logs[key] = log

    def retire(self, key: Address) -> None:
        """Hold this key no longer; ValueError for the only one."""
        if self.held == (key,):
            raise ValueError("a host cannot be without a key")
        del self._logs[key]

    def records(self, block: Block) -> tuple[PlacedRecord, ...]:
        """Return the run's records of the block, whoever wrote them."""
        return self._logs[self.held[0]].records(block)

    async def publish(self, records: Sequence[Record]) -> Receipt:
        """Publish under the key that speaks now."""
        return await self.publish_as(self.key, records)

    async def publish_as(self, key: Address, records: Sequence[Record]) -> Receipt:
        """Publish under one of the held keys."""
        return await self._logs[key].publish(records)
