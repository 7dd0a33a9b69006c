"""Reading a run from the chain alone: for those who take no part in it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Final

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.carriers import carrier_of
from gonka_trainer.app.rules import round_params
from gonka_trainer.chain.attribution import block_records
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.daemon.follower import Follower, Tip
from gonka_trainer.errors import ChainError
from gonka_trainer.ports import Block
from gonka_trainer.round import commands, events, machine
from gonka_trainer.round.params import Local
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Note
from gonka_trainer.types import Height

_LOG: Final = logging.getLogger(__name__)
_OBSERVER: Final = Local(None, None, wants_membership=False)


class RunReader:
    """Replays a run through the core, as an observer."""

    def __init__(self, chain: ChainClient, accepted: Accepted, poll_seconds: float = 0.5) -> None:
        self._chain = chain
        self._accepted = accepted
        self._poll_seconds = poll_seconds
        self.params = round_params(accepted.manifest, accepted.hash, chain.prefix)
        self.state = machine.initial(self.params, _OBSERVER)
        self.notes: list[Note] = []

    async def to_tip(self) -> AsyncIterator[tuple[Block, events.BlockSeen, CoreState]]:
        """Yield each block with its event and the state after it, up to the chain's tip.

        ChainError when an opening needs an environment that the node no longer has: nothing after it can be judged.
        """
        manifest = self._accepted.manifest
        start = Height(manifest.log_height)
        carrier = await carrier_of(self._chain, manifest.carrier, manifest.chain_id, self._accepted.hash, start)
        async for seen in Follower(self._chain, self._poll_seconds).follow(start):
            if isinstance(seen, Tip):
                self._check_whole()
                return
            event = events.BlockSeen(seen.height, seen.block_hash, block_records(seen, carrier))
            wanted = self._step(event)
            yield seen, event, self.state
            await self._answer(wanted)

    def _step(self, event: events.Event) -> tuple[commands.Command, ...]:
        self.state, wanted = machine.step(self.params, _OBSERVER, self.state, event)
        self.notes += self.state.notes
        return wanted

    def _check_whole(self) -> None:
        need = self.state.need
        if need is not None:
            raise ChainError(
                f"round {self.state.round} opens with the environment of block {need.height}, which the node has not",
                "use a node that keeps its state from the run's beginning (pruning = nothing)",
            )

    async def _answer(self, wanted: tuple[commands.Command, ...]) -> None:
        for command in wanted:
            if not isinstance(command, commands.ReadEnvironment):
                continue
            try:
                environment = await self._chain.environment(command.height)
            except ChainError as error:
                _LOG.warning("environment of block %d: %s", command.height, error)
                continue
            self._step(events.EnvironmentRead(command.height, environment))
