"""The daemon's configuration: a TOML file, environment variables over it, frozen settings out of it.

`GONKA_TRAINER_CHAIN_GRPC=host:port` sets `grpc` of `[chain]`, and so on for every key. Secrets are never values here:
keys are named by file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_type_hints

from gonka_trainer.errors import ConfigError
from gonka_trainer.manifest.strict import build

_PREFIX: Final = "GONKA_TRAINER_"
_REMEDY: Final = "docs/operating.md lists every key with an example"


@dataclass(frozen=True)
class ChainConfig:
    """The chain node: gRPC `host:port`, CometBFT's RPC as URL, and what transactions pay.

    `chain_id` must be what the node says. `fee_granter` (bech32) pays the fees if it is given. `gas_price` is a decimal
    in `denom`; `fee_cap` the most that one transaction may cost. `style` is unordered or ordered. `verify` checks
    blocks against their hashes: for a node that is not your own.
    """

    grpc: str
    rpc: str
    chain_id: str
    prefix: str = "gonka"
    denom: str = "ngonka"
    gas_price: str = "0"
    gas_factor: str = "1.4"
    fee_cap: int = 1_000_000_000
    fee_granter: str = ""
    style: str = "unordered"
    verify: bool = False
    poll_seconds: float = 0.5


@dataclass(frozen=True)
class KeyConfig:
    """`account_file` holds the daemon's own account key; `participant` (bech32) is the account that it speaks for.

    Empty: the key's own account is the participant.
    """

    account_file: str
    participant: str = ""


@dataclass(frozen=True)
class ExchangeConfig:
    """`bind` is where the peer server listens, `advertise` the `host:port` at which other hosts reach it (NAT).

    `streams_per_peer` is how many streams one peer may have open here at once.
    """

    bind: str
    advertise: str
    streams_per_peer: int = 16


@dataclass(frozen=True)
class WorkerConfig:
    """The training process. `data` is the corpus file that the manifest pins; `command` replaces torchrun in tests."""

    data: str
    processes: int = 1
    threads: int = 1
    command: tuple[str, ...] = ()
    start_seconds: float = 180.0
    evaluate: bool = True


@dataclass(frozen=True)
class RunsConfig:
    """What the operator agrees to: manifest hashes (hex). `downloads` allows fetching a manifest from its https URL."""

    accept: tuple[str, ...] = ()
    downloads: bool = False


@dataclass(frozen=True)
class Config:
    """Everything the daemon is told."""

    data_dir: str
    chain: ChainConfig
    keys: KeyConfig
    exchange: ExchangeConfig
    worker: WorkerConfig
    runs: RunsConfig = field(default_factory=RunsConfig)

    @property
    def data_path(self) -> Path:
        """The data directory."""
        return Path(self.data_dir)


def load_config(path: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read a file and what the environment says over it; ConfigError names file, key and value."""
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "give --config FILE") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}", _REMEDY) from error
    _overlay(document, environment)
    config = build(Config, document, str(path), _REMEDY)
    _check(config, str(path))
    return _resolved(config, path.parent)


def _resolved(config: Config, folder: Path) -> Config:
    """Take relative paths as relative to the file in which they stand."""
    return replace(
        config,
        data_dir=str(folder / config.data_dir),
        keys=replace(config.keys, account_file=str(folder / config.keys.account_file)),
        worker=replace(config.worker, data=str(folder / config.worker.data)),
    )


def endpoint(text: str, where: str) -> tuple[str, int]:
    """Split `host:port` (also `[v6]:port`); ConfigError says where it stands."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{where}: {text!r} is not host:port", _REMEDY)
    return host.strip("[]"), int(port)


def _overlay(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    if _PREFIX + "DATA_DIR" in environment:
        document["data_dir"] = environment[_PREFIX + "DATA_DIR"]
    for section in ("chain", "keys", "exchange", "worker", "runs"):
        for name, text in environment.items():
            start = f"{_PREFIX}{section.upper()}_"
            if name.startswith(start):
                key = name.removeprefix(start).lower()
                document.setdefault(section, {})[key] = _value(text, _kind(section, key))


def _kind(section: str, key: str) -> object:
    hints = get_type_hints(get_type_hints(Config)[section])
    return hints.get(key)


def _value(text: str, kind: object) -> Any:
    """Return the text itself where text is wanted, else TOML's reading of it (numbers, booleans, lists)."""
    if kind is str:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _check(config: Config, where: str) -> None:
    endpoint(config.chain.grpc, f"{where}: chain.grpc")
    endpoint(config.exchange.bind, f"{where}: exchange.bind")
    host, _ = endpoint(config.exchange.advertise, f"{where}: exchange.advertise")
    if len(host.encode()) > 64:
        raise ConfigError(f"{where}: exchange.advertise: {host!r} is longer than 64 bytes", "use a shorter name")
    if not config.chain.rpc.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: chain.rpc: {config.chain.rpc!r} is not a URL", "such as http://127.0.0.1:26657")
    worker = config.worker
    ranges = (
        (0.01 <= config.chain.poll_seconds <= 3600, "chain.poll_seconds must be 0.01 to 3600"),
        (config.chain.fee_cap >= 0, "chain.fee_cap must not be negative"),
        (1 <= config.exchange.streams_per_peer <= 1024, "exchange.streams_per_peer must be 1 to 1024"),
        (worker.processes == 1, "worker.processes must be 1 in this version"),
        (1 <= worker.threads <= 1024, "worker.threads must be 1 to 1024"),
        (worker.start_seconds > 0, "worker.start_seconds must be positive"),
    )
    for holds, text in ranges:
        if not holds:
            raise ConfigError(f"{where}: {text}", _REMEDY)
    if config.chain.style not in {"unordered", "ordered"}:
        raise ConfigError(f"{where}: chain.style: {config.chain.style!r} is neither unordered nor ordered", _REMEDY)
    for number in config.runs.accept:
        if len(number) != 64 or any(c not in "0123456789abcdef" for c in number):
            raise ConfigError(f"{where}: runs.accept: {number!r} is not 64 lower-case hex digits", _REMEDY)
