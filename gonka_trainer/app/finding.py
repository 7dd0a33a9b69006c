"""What is on chain: runs from every source, kept apart by who put them there, so that nobody can hide another's."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from gonka_trainer.errors import ChainError
from gonka_trainer.ports import Chain, FoundRun, TaskSource
from gonka_trainer.types import Address, Digest, Height

_LOG: Final = logging.getLogger(__name__)
_LOOK_BACK_BLOCKS: Final = 20  # what a lagging index may not have had at the last look
_MAX_FOREIGN: Final = 1000
_Name = tuple[Digest, Address, int, str]


@dataclass(frozen=True, slots=True)
class Sourced:
    """A found run, and where it was found."""

    run: FoundRun
    source: TaskSource


class Finder:
    """Looks from where the last look ended. Of runs that nobody here wants only the newest thousand are remembered."""

    def __init__(self, chain: Chain, sources: tuple[TaskSource, ...]) -> None:
        self._chain = chain
        self._sources = sources
        self._wanted: dict[_Name, Sourced] = {}
        self._foreign: OrderedDict[_Name, Sourced] = OrderedDict()
        self._looking = asyncio.Lock()  # the daemon looks, and whoever asks it for tasks
        self._looked = Height(1)
        self._sought: set[Digest] = set()
        self._vouched: dict[tuple[_Name, Height], bool] = {}
        self._said = ""

    def all(self) -> tuple[FoundRun, ...]:
        """Return all runs that were found, oldest first."""
        found = [each.run for each in (*self._wanted.values(), *self._foreign.values())]
        return tuple(sorted(found, key=lambda run: (run.height, run.task_id, run.manifest_hash, run.author)))

    def of(self, run: Digest) -> tuple[FoundRun, ...]:
        """Return what was found of one run: an announcement or task of each author, oldest first."""
        return tuple(found for found in self.all() if found.manifest_hash == run)

    async def look(self, hashes: Iterable[Digest], wanted: Callable[[FoundRun], bool]) -> None:
        """Look for what is new on chain. `hashes` are looked for from the beginning when they are named first."""
        async with self._looking:
            await self._look(hashes, wanted)

    async def _look(self, hashes: Iterable[Digest], wanted: Callable[[FoundRun], bool]) -> None:
        new = set(hashes) - self._sought - {name[0] for name in self._wanted}
        if new:
            self._looked, self._sought = Height(1), self._sought | new
        try:
            tip = (await self._chain.info()).height
            for source in self._sources:
                for run in await source.runs(self._looked if source.settled else Height(1)):
                    self._keep(Sourced(run, source), wanted(run))
            self._looked = Height(max(1, tip - _LOOK_BACK_BLOCKS))
            self._said = ""
        except ChainError as error:
            self._say(f"looking for runs: {error.what}")

    def _keep(self, found: Sourced, wanted: bool) -> None:
        """Remember it; a task that is seen again may name others by now."""
        name = _name(found.run)
        if wanted:
            self._wanted[name] = found
            self._foreign.pop(name, None)
        elif name in self._wanted:
            self._wanted[name] = found
        else:
            self._foreign[name] = found
            if len(self._foreign) > _MAX_FOREIGN:
                self._foreign.popitem(last=False)

    async def vouched(self, run: FoundRun) -> bool | None:
        """Whether its author signed it; None when that cannot be read now."""
        name = _name(run)
        found = self._wanted.get(name) or self._foreign.get(name)
        if (name, run.height) not in self._vouched and found is not None:
            try:
                self._vouched[name, run.height] = await found.source.vouched(run)
            except ChainError as error:
                self._say(f"who asked for manifest {run.manifest_hash.hex()}: {error.what}")
        return self._vouched.get((name, run.height))

    def _say(self, text: str) -> None:
        """Warn once, however often it is tried."""
        if text != self._said:
            _LOG.warning("%s", text)
            self._said = text


def _name(run: FoundRun) -> _Name:
    return run.manifest_hash, run.author, run.task_id, run.url
