"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.config import ChainConfig, Config
from gonka_trainer.config_file import load_config
from gonka_trainer.errors import ConfigError
from gonka_trainer.types import Digest

_T = TypeVar("_T")

ConfigPath = Annotated[Path, typer.Option("--config", "-c", help="The host's configuration, TOML.")]
Grpc = Annotated[str, typer.Option(envvar="GONKA_TRAINER_CHAIN_GRPC", help="The chain node's gRPC, HOST:PORT.")]
Rpc = Annotated[str, typer.Option(envvar="GONKA_TRAINER_CHAIN_RPC", help="CometBFT's RPC, a URL.")]
ChainId = Annotated[
    str, typer.Option(envvar="GONKA_TRAINER_CHAIN_CHAIN_ID", help="Refuse any other chain; empty: any.")
]
Prefix = Annotated[str, typer.Option(envvar="GONKA_TRAINER_CHAIN_PREFIX", help="Bech32 prefix of accounts.")]
Denom = Annotated[str, typer.Option(envvar="GONKA_TRAINER_CHAIN_DENOM", help="The smallest unit of money.")]
GasPrice = Annotated[str, typer.Option(envvar="GONKA_TRAINER_CHAIN_GAS_PRICE", help="Price of a unit of gas.")]
Key = Annotated[Path, typer.Option("--key", help="The file of the account key that signs.")]

DEFAULT_CONFIG = Path("gonka-trainer.toml")
DEFAULT_GRPC = "127.0.0.1:9090"
DEFAULT_RPC = "http://127.0.0.1:26657"


def chain_config(
    grpc: str, rpc: str, chain_id: str, prefix: str, denom: str = "ngonka", gas_price: str = "0"
) -> ChainConfig:
    """Return settings for a command that needs no host's configuration."""
    return ChainConfig(grpc, rpc, chain_id, prefix, denom, gas_price)


def host_config(path: Path) -> Config:
    """Read a host's configuration."""
    return load_config(path)


def parse_hash(text: str) -> Digest:
    """Read a manifest's hash; ConfigError when it is not 64 hex digits."""
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != 32:
        raise ConfigError(f"{text!r:.80} is neither a file nor a hash (64 hex digits)", "`spec hash FILE`")
    return Digest(value)


def read_manifest(path: Path) -> Accepted:
    """Read a run manifest; ConfigError when the file cannot be read or is none."""
    try:
        document = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "give the path of a manifest") from error
    return accept(document, str(path))


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end; SIGTERM and SIGINT cancel it, so that everything is closed in order."""
    return asyncio.run(_until_signal(work))


async def _until_signal(work: Coroutine[Any, Any, _T]) -> _T:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    raise typer.Exit(0)


def start_logging(verbose: bool) -> None:
    """Log to standard error: journald or a file keeps it."""
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("numba").setLevel(logging.WARNING)
