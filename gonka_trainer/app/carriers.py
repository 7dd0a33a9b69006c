"""The one place where carriers of records and sources of runs are named. A third one (TrainShards) is added here.

A carrier is what the manifest's `carrier` names: how its records are read from blocks (`Carrier`) and brought into them
(`RunLog`). A source is where runs are found (`TaskSource`). docs/trainshards.md says what a new one has to bring.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from gonka_trainer.chain.attribution import Carrier, KvCarrier, MemoCarrier
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog, find_task
from gonka_trainer.chain.sender import Sender
from gonka_trainer.chain.sources import KvTaskSource, MemoTaskSource
from gonka_trainer.errors import ConfigError
from gonka_trainer.ports import FoundRun, RunLog, TaskSource
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.types import Digest, Height

OpenCarrier = Callable[[ChainClient, str, Digest, Height], Awaitable[Carrier]]
"""From the chain, its id, a manifest's hash and the height to read from, to the run's carrier; may wait for a block."""


async def _memo(chain: ChainClient, chain_id: str, run: Digest, _since: Height) -> Carrier:
    return MemoCarrier(topic(run_id(chain_id, run)), chain.prefix)


async def _kv(chain: ChainClient, _chain_id: str, run: Digest, since: Height) -> Carrier:
    return KvCarrier(await find_task(chain, run, since, chain.prefix), chain.prefix)


CARRIERS: Final[dict[str, OpenCarrier]] = {"memo": _memo, "kv": _kv}
"""By the manifest's `carrier`."""


async def carrier_of(chain: ChainClient, carrier: str, chain_id: str, run: Digest, since: Height) -> Carrier:
    """Return the carrier of the run with this manifest hash; on `kv`, waits for its announcement from `since` on."""
    if carrier not in CARRIERS:
        raise ConfigError(f"carrier {carrier!r} is not known", f"this version knows {', '.join(CARRIERS)}")
    return await CARRIERS[carrier](chain, chain_id, run, since)


def run_log(sender: Sender, carrier: Carrier) -> RunLog:
    """Return the log that brings records onto the carrier."""
    if isinstance(carrier, KvCarrier):
        return KvRunLog(sender, carrier.task_id, carrier.prefix)
    return MemoRunLog(sender, carrier.topic, carrier.prefix)


def task_sources(chain: ChainClient, accept: frozenset[Digest] | None) -> tuple[TaskSource, ...]:
    """Return where runs may be found; a chain without the training module has no tasks."""
    return (MemoTaskSource(chain, accept), KvTaskSource(chain, accept))


def carrier_name(found: FoundRun) -> str:
    """Return the carrier on which a run that was found there can only be: its manifest is not here yet."""
    return "kv" if found.task_id else "memo"
