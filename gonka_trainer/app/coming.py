"""What is coming: the next proof of compute, and the rounds of a run as far as the schedule lets them be foreseen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.app.host import run_folder
from gonka_trainer.app.opening import open_client
from gonka_trainer.app.yielding import SHARED
from gonka_trainer.config import Config
from gonka_trainer.daemon.poc import block_clock, look_seconds
from gonka_trainer.daemon.windows import Window, lead_blocks, poc_blocks, scheduled
from gonka_trainer.manifest.spec import WindowSpec
from gonka_trainer.ports import ProofOfCompute
from gonka_trainer.round.schedule import deadline
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.types import Height

RECORD_BLOCKS: Final = 2
"""How many blocks an attestation or a state record takes when all is well."""
_MOST_ROUNDS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """A round that all hosts are in time for: the first block, and the last block of each stage."""

    number: int
    opened: int
    trained: int
    attested: int
    ended: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run's rounds that open before `Coming.end`; `fewest` is how many if every window takes its full length."""

    name: str
    rounds: tuple[RoundPlan, ...]
    fewest: int


@dataclass(frozen=True, slots=True)
class Coming:
    """The epoch around `height`: blocks first <= h < end, with the proof of compute at its start and the next one.

    `lead_blocks` is how long before a proof of compute the worker is told to leave; 0 where it never is.
    """

    chain_id: str
    height: int
    epoch: int
    block_seconds: float
    first: int
    end: int
    windows: tuple[Window, ...]
    lead_blocks: int
    stop_seconds: float
    run: RunPlan | None

    def minutes(self, height: int) -> float:
        """Return how far away a block is, in minutes from now."""
        return (height - self.height) * self.block_seconds / 60


async def look_ahead(config: Config, manifest: Accepted | None) -> Coming:
    """Ask the chain, and plan the manifest's run, else the one that this host serves."""
    async with open_client(config.chain) as client:
        node = await client.info()
        block_seconds = (await block_clock(client)).seconds or 0.0
        poc = await client.proof_of_compute()
    stop_seconds = FileStops(config.data_path / "stops.json", config.gpu.stop_seconds).seconds
    lead = 0
    if config.gpu.mode in SHARED:
        look = look_seconds(block_seconds, config.chain.poll_seconds)
        lead = lead_blocks(poc.schedule, stop_seconds, look, block_seconds)
    windows = around(poc)
    first, end = (windows[0].start, windows[-1].end) if windows else (int(poc.height), int(poc.height) + 1000)
    accepted = manifest or served(config)
    run = None if accepted is None else plan(config, accepted, poc, end)
    epoch = poc.schedule.index
    return Coming(node.chain_id, int(poc.height), epoch, block_seconds, first, end, windows, lead, stop_seconds, run)


def around(poc: ProofOfCompute) -> tuple[Window, ...]:
    """Return the proof of compute that began this epoch (if there was one), the next one, and a confirmation."""
    following = scheduled(poc, poc.height)
    if following is None:
        return ()
    length, blocks = poc.schedule.epoch_length_blocks, poc_blocks(poc.schedule)
    start = following.start if following.start <= poc.height else following.start - length
    found = [Window(each, each + blocks) for each in (start, start + length) if each > 0]
    if poc.schedule.index == 0 and following.start > poc.height:
        found = [following]
    if poc.confirmation is not None:
        found.append(Window(poc.confirmation.generation_start, poc.confirmation.end, confirmation=True))
    return tuple(sorted(found, key=lambda window: window.start))


def served(config: Config) -> Accepted | None:
    """Return the run of this host that wrote its status last."""
    runs = [(_status(config, run), run) for run in AcceptedRuns(config.data_path).all()]
    there = [(path.stat().st_mtime, number) for number, (path, _) in enumerate(runs) if path.exists()]
    return runs[max(there)[1]][1] if there else None


def plan(config: Config, accepted: Accepted, poc: ProofOfCompute, end: int) -> RunPlan:
    """Foresee the run's rounds, from the one that this host is in; from the next block where it is in none."""
    manifest = accepted.manifest
    number, opened = _stands(_status(config, accepted).with_name("rounds.jsonl"))
    opened = opened or max(manifest.start_height, poc.height + 1)
    most = manifest.end.rounds or _MOST_ROUNDS
    plans = [foresee(poc, manifest.windows, number, opened, end, most, full=full) for full in (False, True)]
    return RunPlan(manifest.name, plans[0], len(plans[1]))


def foresee(
    poc: ProofOfCompute, windows: WindowSpec, number: int, opened: int, end: int, most: int, full: bool = False
) -> tuple[RoundPlan, ...]:
    """Return the rounds that open before `end`: everybody in time, or `full`: each window used to its last block.

    A round that is open is not over before now, however late it is.
    """
    commit = windows.commit_blocks if full else 0
    attest = windows.attest_blocks if full else min(RECORD_BLOCKS, windows.attest_blocks)
    state = windows.state_blocks if full else min(RECORD_BLOCKS, windows.state_blocks)
    found: list[RoundPlan] = []
    while opened < end and number < most and len(found) < _MOST_ROUNDS:
        trained = deadline(poc.schedule, windows.margin_blocks, Height(opened), windows.train_blocks) + commit
        ended = max(trained + attest + state, poc.height)
        found.append(RoundPlan(number, opened, trained, trained + attest, ended))
        number, opened = number + 1, found[-1].ended + 1
    return tuple(found)


def _status(config: Config, run: Accepted) -> Path:
    return run_folder(config, run) / "status.json"


def _stands(rounds: Path) -> tuple[int, int]:
    """Return the round that is open here and its first block; (0, 0) before the first has ended."""
    try:
        last = json.loads(rounds.read_text().splitlines()[-1])
        return int(last["round"]) + 1, int(last["heights"]["ended"]) + 1
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return 0, 0
