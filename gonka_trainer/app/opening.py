"""Opening the chain: client, sender and run log as the settings say."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path

from gonka_trainer.app.carriers import carrier_of, run_log
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.client import ChainClient, NodeAddress, TrustedBlock
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.runlog import NO_GRANT_ON_MEMO
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.config import ChainConfig, Config
from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.manifest import Manifest
from gonka_trainer.ports import RunLog
from gonka_trainer.types import Address, Digest, Height


def open_client(chain: ChainConfig) -> ChainClient:
    """Return the client over all nodes that the settings name, to be entered."""
    return ChainClient(
        NodeAddress(chain.grpc, chain.rpc, chain.trust == "verify"),
        others=[NodeAddress(other.grpc, other.rpc, other.trust == "verify") for other in chain.others],
        chain_id=chain.chain_id or None,
        prefix=chain.prefix,
        trusted=_trusted_block(chain.trusted_block),
    )


def _trusted_block(text: str) -> TrustedBlock | None:
    height, _, block_hash = text.partition(":")
    return TrustedBlock(Height(int(height)), Digest(bytes.fromhex(block_hash))) if text else None


def acting_for(config: Config, key: AccountKey) -> Address | None:
    """Return the account whose messages the key sends by its grants (keys.speaks_by = "authz"); None: its own."""
    named = config.keys.participant
    if config.keys.speaks_by != "authz" or not named:
        return None
    participant = parse_address(named, config.chain.prefix, "keys.participant")
    return None if participant == key.address else participant


def make_sender(
    client: ChainClient, chain: ChainConfig, key: AccountKey, folder: Path, acts_for: Address | None = None
) -> Sender:
    """Return a sender whose unfinished transactions are remembered in `folder`; `acts_for` as in `Sender`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}", "name files and folders that can be written") from error
    return Sender(client, key, FileSentLog(folder), send_settings(chain), acts_for=acts_for)


def send_settings(chain: ChainConfig) -> SendSettings:
    """Return how transactions are paid for and ordered; ConfigError for what is no decimal number."""
    return SendSettings(
        denom=chain.denom,
        gas_price=decimal_setting(chain.gas_price, "chain.gas_price"),
        gas_factor=float(decimal_setting(chain.gas_factor, "chain.gas_factor")),
        fee_cap=chain.fee_cap,
        granter=chain.fee_granter,
        ordered=chain.style == "ordered",
        timeout_seconds=chain.timeout_seconds,
        timeout_blocks=chain.timeout_blocks,
        poll_seconds=chain.poll_seconds,
    )


async def open_run_log(client: ChainClient, sender: Sender, manifest: Manifest, manifest_hash: Digest) -> RunLog:
    """Return the run's log over the manifest's carrier; on `kv` it waits until the run is announced.

    ConfigError when the sender acts by a grant and the carrier is `memo`.
    """
    if sender.by_grant and manifest.carrier == "memo":
        raise ConfigError(NO_GRANT_ON_MEMO, "set keys.speaks_by = 'delegate'")
    height = Height(manifest.log_height)
    carrier = await carrier_of(client, manifest.carrier, manifest.chain_id, manifest_hash, height)
    return run_log(sender, carrier)


def decimal_setting(text: str, where: str) -> Decimal:
    """Read a decimal of the settings; ConfigError when it is none, negative or not finite."""
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ConfigError(f"{where}: {text!r} is not a decimal number", "such as 0.25") from error
    if not value.is_finite() or value < 0:
        raise ConfigError(f"{where}: {text!r} is negative or not finite", "such as 0.25")
    return value
