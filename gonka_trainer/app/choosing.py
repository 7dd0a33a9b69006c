"""Which run to serve: of those that the list allows, the one with the lowest start height that is not over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.app.carriers import task_sources
from gonka_trainer.app.checkpoint_start import refuse_lost_history
from gonka_trainer.app.documents import Documents
from gonka_trainer.app.finding import Finder
from gonka_trainer.app.policy import Answer, of_requester
from gonka_trainer.app.standing import Standing, Standings
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sender import Sender
from gonka_trainer.config import Config
from gonka_trainer.errors import ChainError
from gonka_trainer.ports import FoundRun
from gonka_trainer.types import Address, Digest, Height

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0


class Chooser:
    """Looks at the chain until there is a run to serve, and gets the manifests that are missing."""

    def __init__(
        self,
        config: Config,
        chain: ChainClient,
        sender: Callable[[], Sender],
        participant: Address,
        runs: AcceptedRuns,
    ) -> None:
        self._runs = runs
        self._chain = chain
        self.standings = Standings(config, participant, chain, Finder(chain, task_sources(chain, None)), runs)
        self._documents = Documents(config, chain, sender)
        self._refused: dict[Digest, str] = {}
        self.idle = False
        """Whether the chain has answered, and there is no run to turn to; False while that is not known."""

    async def choose(self, over: Collection[Digest]) -> Accepted:
        """Return an allowed run that is on chain: one that is not over, else the last one, to serve it on."""
        said, self.idle = False, False
        while True:
            candidates = await self._candidates(over)
            going = [run for run in candidates if run.hash not in over]
            if going or candidates:
                return (going or candidates[-1:])[0]
            await self._refuse_lost_history()
            if not said:
                _LOG.info("no agreed run is on chain yet: waiting (`gonka-trainer join MANIFEST` agrees to one)")
                said = True
            await asyncio.sleep(_LOOK_SECONDS)

    async def _refuse_lost_history(self) -> None:
        """Stop with a remedy when a run that was agreed to begins with blocks that no node has any longer."""
        agreed = self._runs.hashes()
        for run in self._runs.all():
            if run.hash in agreed and not self.standings.needs_no_finding(run):
                await refuse_lost_history(self._chain, run.manifest.name, Height(run.manifest.log_height))

    async def another(self, served: Digest, over: Collection[Digest]) -> None:
        """Return when an allowed run other than the one served, and not over, is on chain."""
        self.idle = False
        while True:
            done = {served, *over}
            if any(run.hash not in done for run in await self._candidates(done)):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _candidates(self, done: Collection[Digest]) -> list[Accepted]:
        """Return the allowed runs that are on chain and whose manifests are here, in the order in which they start.

        Manifests that are missing are only fetched while there is no run to turn to but those that are `done`.
        """
        try:
            await self.standings.look()
            standings = await self.standings.standings()
            chosen = self._take(standings)
            if all(run.hash in done for run in chosen) and await self._fetch(standings):
                standings = await self.standings.standings()
                chosen = self._take(standings)
        except ChainError as error:
            _LOG.warning("looking for runs: %s", error.what)
            return []
        self._tell(standings)
        self.idle = all(run.hash in done for run in chosen)
        return sorted(chosen, key=lambda run: (run.manifest.start_height, run.hash))

    async def _fetch(self, standings: Collection[Standing]) -> bool:
        """Get a manifest that is missing; whether there was one. Nothing starts yet: the list is asked again."""
        missing: dict[Digest, list[FoundRun]] = {}
        for each in standings:
            if each.decision.answer is Answer.FETCH:
                missing.setdefault(each.found.manifest_hash, []).append(each.found)
        rules = self.standings.rules()
        for asked in missing.values():
            got = await self._documents.get(asked)
            if got is None:
                continue
            run, found = got
            if of_requester(found, rules):
                self._runs.take(run, found)
            else:
                self._runs.add(run)
            return True
        return False

    def _take(self, standings: Collection[Standing]) -> list[Accepted]:
        """Return the runs that start, and keep which of them start for a requester's sake."""
        rules, taken = self.standings.rules(), {each.manifest_hash for each in self._runs.taken()}
        chosen: dict[Digest, Accepted] = {}
        for each in standings:
            if each.decision.answer is not Answer.START or each.accepted is None or each.accepted.hash in chosen:
                continue
            chosen[each.accepted.hash] = each.accepted
            if of_requester(each.found, rules) and each.accepted.hash not in taken:
                self._runs.take(each.accepted, each.found)
        return list(chosen.values())

    def _tell(self, standings: Collection[Standing]) -> None:
        """Say once why a run whose manifest is here does not start."""
        allowed = {each.found.manifest_hash for each in standings if each.decision.answer is Answer.START}
        for each in standings:
            run, why = each.found.manifest_hash, each.decision.why
            if each.accepted is None or run in allowed or self._refused.get(run) == why:
                continue
            self._refused[run] = why
            _LOG.info("run %s (manifest %s) does not start here: %s", each.accepted.manifest.name, run.hex(), why)
