"""How every run that is on chain stands with this host: what the list says of it, and why. Fetches and pays nothing."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.app.checkpoint_store import checkpoint_for
from gonka_trainer.app.corpus import Corpus
from gonka_trainer.app.finding import Finder
from gonka_trainer.app.host import has_begun, run_folder
from gonka_trainer.app.opening import decimal_setting
from gonka_trainer.app.policy import Answer, Decision, Facts, Rules, decide, may_start, of_requester
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.config import Config
from gonka_trainer.controls import TaskLine
from gonka_trainer.ports import Chain, FoundRun, NodeInfo
from gonka_trainer.text import printable
from gonka_trainer.types import Address, Digest, Height

_SHOWN_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class Standing:
    """A run, its manifest where it is here, and what is to be done with it. `found` may be of an earlier start."""

    found: FoundRun
    accepted: Accepted | None
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Here:
    """What this host has of a run. Read once a look: anybody can announce one run a thousand times."""

    accepted: Accepted | None
    begun: bool
    left: bool
    askers: frozenset[Address]


class Standings:
    """Asks the list about every run that was found. `participant` is for whom this host speaks."""

    def __init__(self, config: Config, participant: Address, chain: Chain, finder: Finder, runs: AcceptedRuns) -> None:
        self._config = config
        self._participant = participant
        self._chain = chain
        self._finder = finder
        self._runs = runs
        self._corpus = Corpus(Path(config.worker.data))
        self._requesters = requesters(config)
        self._gas_price = decimal_setting(config.chain.gas_price, "chain.gas_price") * decimal_setting(
            config.chain.gas_factor, "chain.gas_factor"
        )
        self._node: NodeInfo | None = None

    def rules(self) -> Rules:
        """Return the operator's list as it is now: `gonka-trainer join` may add to it while the daemon runs."""
        runs = self._config.runs
        accept = self._runs.hashes() | {Digest(bytes.fromhex(each)) for each in runs.accept}
        return Rules(
            accept=frozenset(each for each in accept if not self._runs.has_left(each)),
            accept_from=self._requesters,
            max_parameters=runs.max_parameters,
            max_fee=runs.max_fee,
            gas_price=self._gas_price,
        )

    async def look(self, everything: bool = False) -> None:
        """Look at the chain again if there is anything to find: a run that may start, or with `everything` any run."""
        rules = self.rules()
        missing = {run for run in rules.accept if not self._is_known(run)}
        if everything or missing or rules.accept_from:
            await self._finder.look(missing, lambda found: may_start(found, rules))

    def _is_known(self, run: Digest) -> bool:
        return bool(self._finder.of(run)) or self.needs_no_finding(self._runs.get(run))

    async def standings(self) -> tuple[Standing, ...]:
        """Return every run that is on chain or that this host is in, oldest first; several for one that several ask."""
        rules, found = self.rules(), self._finder.all()
        asked = (*found, *self._not_found(found, rules))
        taken = self._runs.taken()
        here = {run: self._here(run, taken) for run in {each.manifest_hash for each in asked}}
        return tuple([await self._standing(each, rules, here[each.manifest_hash]) for each in asked])

    def _here(self, run: Digest, taken: Collection[FoundRun]) -> _Here:
        accepted = self._runs.get(run)
        askers = frozenset(each.author for each in taken if each.manifest_hash == run)
        return _Here(accepted, self._has_begun(accepted), self._runs.has_left(run), askers)

    def _not_found(self, found: Collection[FoundRun], rules: Rules) -> tuple[FoundRun, ...]:
        """Return the runs that this host is in and that were not found: a node without an index hides old ones.

        Of those taken from a requester always what was found then: anybody can write over a task.
        """
        seen = {each.manifest_hash for each in found}
        taken = {each.manifest_hash: each for each in self._runs.taken()}
        nowhere = FoundRun(Digest(bytes(32)), "", Address(bytes(20)), Height(0), 0)
        return tuple(
            taken.get(run.hash, _with_hash(nowhere, run.hash))
            for run in self._runs.all()
            if (run.hash in taken or (run.hash in rules.accept and run.hash not in seen)) and self.needs_no_finding(run)
        )

    async def _standing(self, found: FoundRun, rules: Rules, here: _Here) -> Standing:
        manifest = None if here.accepted is None else here.accepted.manifest
        facts = await self._facts(found, here, rules)
        decision = decide(found, manifest, rules, facts)
        if decision.answer is Answer.START and manifest is not None and not facts.begun:
            facts = replace(facts, corpus=await self._corpus.fault(manifest.data))
            decision = decide(found, manifest, rules, facts)
        return Standing(found, here.accepted, decision)

    async def _facts(self, found: FoundRun, here: _Here, rules: Rules) -> Facts:
        node = await self._info()
        vouched: bool | None = None
        if of_requester(found, rules) and found.author in rules.accept_from:
            # This very request was taken before: its signature was read then.
            vouched = found.author in here.askers or await self._finder.vouched(found)
        return Facts(
            participant=self._participant,
            name=encode_address(self._participant, self._config.chain.prefix),
            chain_id=node.chain_id,
            training_module=node.training_module,
            left=here.left,
            begun=here.begun,
            by_grant=self._config.keys.speaks_by == "authz",
            vouched=vouched,
        )

    def needs_no_finding(self, accepted: Accepted | None) -> bool:
        """Whether this host is in the run, or has a checkpoint to enter it: its announcement may be lost."""
        return self._has_begun(accepted) or (
            accepted is not None and checkpoint_for(self._config, accepted) is not None
        )

    def _has_begun(self, accepted: Accepted | None) -> bool:
        return accepted is not None and has_begun(self._config, accepted)

    async def _info(self) -> NodeInfo:
        if self._node is None:
            self._node = await self._chain.info()
        return self._node

    async def lines(self, serving: Digest | None = None) -> tuple[TaskLine, ...]:
        """Return a line for each run on chain; of several askers for one run the one that counts, if one does."""
        rules, lines = self.rules(), dict[Digest, tuple[int, TaskLine]]()
        for each in await self.standings():
            run, worth = each.found.manifest_hash, _worth(each, rules)
            if run not in lines or worth > lines[run][0]:
                lines[run] = (worth, self._line(each, serving))
        absent = sorted(run for run in rules.accept if run not in lines)
        return (
            *(line for _, line in lines.values()),
            *(TaskLine(run, 0, "", 0, "", "agreed", "it is not on chain yet") for run in absent),
        )

    def _line(self, each: Standing, serving: Digest | None) -> TaskLine:
        found = each.found
        standing = "refused" if each.decision.answer is Answer.REFUSED else "agreed"
        if each.accepted is not None and standing == "agreed" and self._is_over(each.accepted):
            standing = "over"
        if found.manifest_hash == serving and standing == "agreed":
            standing = "serving"
        author = encode_address(found.author, self._config.chain.prefix) if found.height else ""
        why = printable(each.decision.why, _SHOWN_TEXT)
        return TaskLine(found.manifest_hash, found.task_id, author, found.height, found.url, standing, why)

    def _is_over(self, accepted: Accepted) -> bool:
        """Whether the run's status file says that it has ended; it may be missing or half written."""
        path = run_folder(self._config, accepted) / "status.json"
        try:
            return bool(json.loads(path.read_text()).get("phase") == "ended")
        except (OSError, ValueError):
            return False


def _worth(each: Standing, rules: Rules) -> int:
    """Return how much one asker's word says of a run: a requester on the list stands over a stranger's copy."""
    if each.decision.answer is Answer.REFUSED:
        return int(may_start(each.found, rules))
    return 3 if each.decision.answer is Answer.START else 2


def requesters(config: Config) -> frozenset[Address]:
    """Return the requesters on the list; ConfigError for one that is no address of the chain."""
    where = "runs.accept_from"
    return frozenset(parse_address(text, config.chain.prefix, where) for text in config.runs.accept_from)


def _with_hash(found: FoundRun, run: Digest) -> FoundRun:
    return replace(found, manifest_hash=run)
