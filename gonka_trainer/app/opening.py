"""Opening the chain: client, sender and run log as the settings say."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path

from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog, find_task
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.chain.sources import KvTaskSource, MemoTaskSource
from gonka_trainer.config import ChainConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.manifest import Manifest
from gonka_trainer.ports import TaskSource
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.types import Digest, Height


def open_client(chain: ChainConfig) -> ChainClient:
    """Return the client, to be entered."""
    node = NodeAddress(chain.grpc, chain.rpc)
    return ChainClient(node, chain_id=chain.chain_id or None, prefix=chain.prefix, verify=chain.trust == "verify")


def make_sender(client: ChainClient, chain: ChainConfig, key: AccountKey, folder: Path) -> Sender:
    """Return a sender whose unfinished transactions are remembered in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = SendSettings(
        denom=chain.denom,
        gas_price=_decimal(chain.gas_price, "chain.gas_price"),
        gas_factor=float(_decimal(chain.gas_factor, "chain.gas_factor")),
        fee_cap=chain.fee_cap,
        granter=chain.fee_granter,
        ordered=chain.style == "ordered",
        timeout_seconds=chain.timeout_seconds,
        timeout_blocks=chain.timeout_blocks,
        poll_seconds=chain.poll_seconds,
    )
    return Sender(client, key, FileSentLog(folder), settings)


async def open_run_log(
    client: ChainClient, sender: Sender, manifest: Manifest, manifest_hash: Digest
) -> MemoRunLog | KvRunLog:
    """Return the run's log over the manifest's carrier; on `kv` it waits until the run is announced."""
    if manifest.carrier == "memo":
        return MemoRunLog(sender, topic(run_id(manifest.chain_id, manifest_hash)), client.prefix)
    task = await find_task(client, manifest_hash, Height(manifest.log_height), client.prefix)
    return KvRunLog(sender, task, client.prefix)


def task_sources(client: ChainClient, accept: frozenset[Digest] | None) -> tuple[TaskSource, ...]:
    """Return where runs may be found; a chain without the training module has no tasks."""
    return (MemoTaskSource(client, accept), KvTaskSource(client, accept))


def _decimal(text: str, where: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ConfigError(f"{where}: {text!r} is not a decimal number", "such as 0.25") from error
    if not value.is_finite() or value < 0:
        raise ConfigError(f"{where}: {text!r} is negative or not finite", "such as 0.25")
    return value
