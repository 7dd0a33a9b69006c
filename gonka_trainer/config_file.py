"""Reading the daemon's configuration: a TOML file, environment variables over it, frozen settings out of it.

`GONKA_TRAINER_CHAIN_GRPC=host:port` sets `grpc` of `[chain]`, and so on for every key.
"""

from __future__ import annotations

import os
import string
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_type_hints
from urllib.parse import urlsplit

from gonka_trainer.config import ChainConfig, Config, ControlConfig, GpuConfig, MlNodeConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.manifest.strict import build

_PREFIX: Final = "GONKA_TRAINER_"
_REMEDY: Final = "docs/operating.md lists every key with an example"
_OTHER_VARIABLES: Final = ("GONKA_TRAINER_LEASH_PARENT",)  # of the worker's leash
_CREDENTIAL: Final = "credential:"
_HOST_CHARACTERS: Final = frozenset(
    string.ascii_letters + string.digits + ".-:"
)  # as a join may hold (docs/protocol.md)
SECTIONS: Final = ("chain", "keys", "exchange", "worker", "runs", "gpu", "control", "ml_node")


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
    keys, control = config.keys, config.control
    return replace(
        config,
        data_dir=str(folder / config.data_dir),
        keys=replace(
            keys,
            account_file=_path(folder, keys.account_file),
            passphrase_file=_path(folder, keys.passphrase_file),
        ),
        worker=replace(config.worker, data=str(folder / config.worker.data)),
        control=replace(
            control,
            socket=_path(folder, control.socket),
            token_file=_path(folder, control.token_file),
            tls_certificate=_path(folder, control.tls_certificate),
            tls_key=_path(folder, control.tls_key),
            tls_client_ca=_path(folder, control.tls_client_ca),
        ),
    )


def _path(folder: Path, text: str) -> str:
    return text if not text or text.startswith(_CREDENTIAL) else str(folder / text)


def endpoint(text: str, where: str) -> tuple[str, int]:
    """Split `host:port` (also `[v6]:port`); ConfigError says where it stands."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{where}: {text!r} is not host:port", _REMEDY)
    return host.strip("[]"), int(port)


def _overlay(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    starts = (f"{_PREFIX}DATA_DIR", *_OTHER_VARIABLES, *(f"{_PREFIX}{section.upper()}_" for section in SECTIONS))
    for name in environment:
        if name.startswith(_PREFIX) and not name.startswith(starts):
            raise ConfigError(f"{name}: names no section of the configuration", f"known: {', '.join(SECTIONS)}")
    if _PREFIX + "DATA_DIR" in environment:
        document["data_dir"] = environment[_PREFIX + "DATA_DIR"]
    for section in SECTIONS:
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
    """Refuse what no part of the daemon could work with; ConfigError names the key."""
    _check_chain(config.chain, where)
    endpoint(config.exchange.bind, f"{where}: exchange.bind")
    host, _ = endpoint(config.exchange.advertise, f"{where}: exchange.advertise")
    if any(c not in _HOST_CHARACTERS for c in host):
        raise ConfigError(f"{where}: exchange.advertise: {host!r} is no host name or address", "host:port, no scheme")
    if len(host.encode()) > 64:
        raise ConfigError(f"{where}: exchange.advertise: {host!r} is longer than 64 bytes", "use a shorter name")
    worker = config.worker
    ranges = (
        (1 <= config.exchange.streams_per_peer <= 1024, "exchange.streams_per_peer must be 1 to 1024"),
        (worker.processes == 1, "worker.processes must be 1 in this version"),
        (1 <= worker.threads <= 1024, "worker.threads must be 1 to 1024"),
        (worker.start_seconds > 0, "worker.start_seconds must be positive"),
        (config.runs.max_parameters >= 0, "runs.max_parameters must not be negative"),
        (config.runs.max_fee >= 0, "runs.max_fee must not be negative"),
    )
    _check_ranges(ranges, where)
    _check_choice(worker.rendezvous, ("standalone", "environment"), "worker.rendezvous", where)
    _check_choice(config.keys.speaks_by, ("delegate", "authz"), "keys.speaks_by", where)
    for number in config.runs.accept:
        if len(number) != 64 or any(c not in "0123456789abcdef" for c in number):
            raise ConfigError(f"{where}: runs.accept: {number!r} is not 64 lower-case hex digits", _REMEDY)
    _check_gpu(config.gpu, config, where)
    _check_control(config.control, where)
    _check_url(config.ml_node.forward_to, "ml_node.forward_to", where)
    if config.ml_node.bind:
        _check_ml_node(config.ml_node, where)


def _check_chain(chain: ChainConfig, where: str) -> None:
    for i, (node_grpc, node_rpc, trust) in enumerate(
        [(chain.grpc, chain.rpc, chain.trust)] + [(other.grpc, other.rpc, other.trust) for other in chain.others]
    ):
        name = f"chain.others[{i - 1}]" if i else "chain"
        endpoint(node_grpc, f"{where}: {name}.grpc")
        if not node_rpc.startswith(("http://", "https://")):
            raise ConfigError(f"{where}: {name}.rpc: {node_rpc!r} is not a URL", "such as http://127.0.0.1:26657")
        _check_choice(trust, ("own", "verify"), f"{name}.trust", where)
    ranges = (
        (0.01 <= chain.poll_seconds <= 3600, "chain.poll_seconds must be 0.01 to 3600"),
        (chain.fee_cap >= 0, "chain.fee_cap must not be negative"),
        (5 <= chain.timeout_seconds <= 590, "chain.timeout_seconds must be 5 to 590 (the chain takes ten minutes)"),
        (2 <= chain.timeout_blocks <= 10_000, "chain.timeout_blocks must be 2 to 10000"),
    )
    _check_ranges(ranges, where)
    _check_choice(chain.style, ("unordered", "ordered"), "chain.style", where)
    height, colon, block_hash = chain.trusted_block.partition(":")
    if chain.trusted_block and not (colon and height.isdigit() and _is_hash(block_hash)):
        raise ConfigError(f"{where}: chain.trusted_block: {chain.trusted_block!r} is not HEIGHT:HASH", _REMEDY)


def _check_gpu(gpu: GpuConfig, config: Config, where: str) -> None:
    modes = ("dedicated", "ml-node", "network-node-admin", "node-manager")
    _check_choice(gpu.mode, modes, "gpu.mode", where)
    _check_ranges(((0 < gpu.stop_seconds <= 3600, "gpu.stop_seconds must be above 0 and at most 3600"),), where)
    _check_url(gpu.state_url, "gpu.state_url", where)
    _check_url(gpu.admin_url, "gpu.admin_url", where)
    needs = {"network-node-admin": ("admin_url", "node"), "node-manager": ("manager", "model")}
    for key in needs.get(gpu.mode, ()):
        if not getattr(gpu, key):
            raise ConfigError(f"{where}: gpu.{key} is missing: gpu.mode {gpu.mode} needs it", _REMEDY)
    if gpu.manager:
        endpoint(gpu.manager, f"{where}: gpu.manager")
    if config.ml_node.bind and gpu.mode == "dedicated":
        raise ConfigError(
            f"{where}: ml_node.bind with gpu.mode dedicated: a network node would drive GPUs that it must not have",
            'set gpu.mode = "ml-node"',
        )


def _check_ml_node(settings: MlNodeConfig, where: str) -> None:
    host, port = endpoint(settings.bind, f"{where}: ml_node.bind")
    own = {host, "127.0.0.1", "localhost", "::1"} if host in {"0.0.0.0", "::"} else {host}  # noqa: S104 - compared only
    try:
        behind = urlsplit(settings.forward_to)
        circle = behind.port == port and behind.hostname in own
    except ValueError as error:
        raise ConfigError(f"{where}: ml_node.forward_to: {settings.forward_to!r} is not a URL", _REMEDY) from error
    if circle:
        raise ConfigError(
            f"{where}: ml_node.forward_to {settings.forward_to} is ml_node.bind itself: calls would go in circles",
            "name the real ML node, which listens elsewhere",
        )


def _check_control(control: ControlConfig, where: str) -> None:
    if not control.bind:
        return
    endpoint(control.bind, f"{where}: control.bind")
    tls = (control.tls_certificate, control.tls_key, control.tls_client_ca)
    if any(tls) and not all(tls):
        raise ConfigError(f"{where}: control: tls_certificate, tls_key and tls_client_ca go together", _REMEDY)
    if not any(tls) and not control.token_file:
        raise ConfigError(f"{where}: control.bind without token_file or TLS: anybody could drive the daemon", _REMEDY)


def _check_ranges(ranges: tuple[tuple[bool, str], ...], where: str) -> None:
    for holds, text in ranges:
        if not holds:
            raise ConfigError(f"{where}: {text}", _REMEDY)


def _check_choice(value: str, choices: tuple[str, ...], key: str, where: str) -> None:
    if value not in choices:
        raise ConfigError(f"{where}: {key}: {value!r} is none of {', '.join(choices)}", _REMEDY)


def _check_url(value: str, key: str, where: str) -> None:
    if value and not value.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: {key}: {value!r} is not a URL", "such as http://127.0.0.1:8080")


def _is_hash(text: str) -> bool:
    return len(text) == 64 and all(c in "0123456789abcdefABCDEF" for c in text)
