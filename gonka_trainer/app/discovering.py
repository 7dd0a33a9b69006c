"""What the chain is and what this host will use of it, in words: for the log at the start and `gonka-trainer chain`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from gonka_trainer.app.keys import account_path
from gonka_trainer.app.opening import open_client, send_settings
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.discovery import LAST_KNOWN, Discovery, discover
from gonka_trainer.chain.keys import describe_key
from gonka_trainer.config import Config
from gonka_trainer.types import Address

_LOG: Final = logging.getLogger(__name__)
_MEMO_BYTES: Final = 256  # the longest record's text, and the limit that Cosmos SDK chains start with
_CONFIRMATION: Final = "confirmation of proof of compute"
_LINES: Final = (
    ("chain", "application", "Cosmos SDK", "CometBFT", "blocks kept", "block time", "transaction index"),
    ("training module", "allow lists", "epochs", _CONFIRMATION),
    ("carriers", "transactions", "minimum gas price", "memo limit", "sends between accounts"),
)
_COINS: Final = re.compile(r"([0-9.]+)([a-zA-Z][\w/:.-]*)")


async def discover_chain(config: Config) -> Discovery:
    """Ask the chain of a host's settings what it is; the account key stays closed."""
    async with open_client(config.chain) as chain:
        return await discover(chain, signer_of(config, describe_key(account_path(config.keys))[0].address))


def signer_of(config: Config, key: Address) -> Address:
    """Return the account that stands in training messages: the participant where the key acts by its grants."""
    named = config.keys.participant
    if config.keys.speaks_by == "authz" and named:
        return parse_address(named, config.chain.prefix, "keys.participant")
    return key


async def log_discovery(config: Config, chain: ChainClient, key: Address) -> None:
    """Log what was found, what will be used, and what to mind."""
    signer = signer_of(config, key)
    found = await discover(chain, signer)
    said = rows(config, found, signer)
    for names in _LINES:
        _LOG.info("%s", "; ".join(f"{name}: {said[name]}" for name in names))
    for text in warnings(config, found):
        _LOG.warning("%s", text)


def rows(config: Config, found: Discovery, signer: Address) -> Mapping[str, str]:
    """Return what was found and what will be used, name by name."""
    return {
        "chain": f"{found.chain_id}, block {found.height}" + (" (syncing)" if found.syncing else ""),
        "nodes": "\n".join(f"{name} ({words})" for name, words in found.nodes),
        "application": found.application,
        "Cosmos SDK": found.cosmos_sdk,
        "CometBFT": found.comet,
        "blocks kept": f"from {found.earliest_height} on",
        "block time": "unknown" if found.block_seconds is None else f"{found.block_seconds:.1f} s",
        "training module": "yes" if found.training_module else "no",
        "allow lists": _allowed(found, encode_address(signer, config.chain.prefix)),
        "epochs": _epochs(found),
        _CONFIRMATION: "known to this chain" if found.confirmation_known else "not on this chain",
        "minimum gas price": _unknown(found.minimum_gas_price, "none set by this node"),
        "memo limit": "unknown" if found.memo_limit_bytes is None else f"{found.memo_limit_bytes} bytes",
        "sends between accounts": _sends(found),
        "transaction index": {None: "unknown", True: "on", False: "off (not needed)"}[found.tx_index],
        "carriers": ", ".join(carriers(found)) or "none",
        "transactions": _transactions(config),
    }


def as_json(config: Config, found: Discovery, signer: Address) -> dict[str, Any]:
    """Return the same for programs: numbers as numbers, None for what is not known."""
    schedule = found.schedule
    return {
        "chain_id": found.chain_id,
        "height": found.height,
        "earliest_height": found.earliest_height,
        "syncing": found.syncing,
        "application": found.application,
        "cosmos_sdk": found.cosmos_sdk,
        "comet": found.comet,
        "nodes": [{"name": name, "standing": words} for name, words in found.nodes],
        "block_seconds": found.block_seconds,
        "training_module": found.training_module,
        "signer": encode_address(signer, config.chain.prefix),
        "may_execute": found.may_execute,
        "may_start": found.may_start,
        "epoch": None if schedule is None else schedule.index,
        "epoch_blocks": None if schedule is None else schedule.epoch_length_blocks,
        "poc_start": None if schedule is None else schedule.poc_start,
        "poc_blocks": None if schedule is None else poc_blocks(found),
        "confirmation_known": found.confirmation_known,
        "minimum_gas_price": found.minimum_gas_price,
        "memo_limit_bytes": found.memo_limit_bytes,
        "sends_restricted": found.sends_restricted,
        "restricted_until": found.restricted_until,
        "tx_index": found.tx_index,
        "carriers": list(carriers(found)),
        "style": config.chain.style,
        "gas_price": f"{config.chain.gas_price}{config.chain.denom}",
        "fee_granter": config.chain.fee_granter,
        "warnings": list(warnings(config, found)),
    }


def poc_blocks(found: Discovery) -> int:
    """Return for how many blocks proof of compute wants the GPUs in an epoch."""
    schedule = found.schedule
    if schedule is None:
        return 0
    return schedule.poc_stage_blocks + schedule.poc_validation_delay_blocks + schedule.poc_validation_blocks


def carriers(found: Discovery) -> tuple[str, ...]:
    """Return the carriers over which this host can publish here."""
    memo = ("memo",) if not found.sends_restricted and (found.memo_limit_bytes or _MEMO_BYTES) >= _MEMO_BYTES else ()
    return memo + (("kv",) if found.training_module and found.may_execute is not False else ())


def warnings(config: Config, found: Discovery) -> tuple[str, ...]:
    """Return what the operator should mind, each with what to do."""
    checks = (
        (found.is_later, f"{found.application} is later than {_dotted(LAST_KNOWN)}, the last that is known here"),
        (found.syncing, "the node is syncing: nothing is sent until it is done"),
        (bool(found.sends_restricted), _restricted(found)),
        (found.may_execute is False, "the signer is not on the chain's allow list for training: no run on carrier kv"),
        (_is_too_cheap(config, found), _too_cheap(config, found)),
        (not carriers(found), "no carrier can be used on this chain: this host can only read"),
    )
    return tuple(text for holds, text in checks if holds)


def _allowed(found: Discovery, signer: str) -> str:
    if not found.training_module:
        return "no training module"
    if found.may_execute is None:
        return "none: everybody may"
    words = {True: "yes", False: "no", None: "unknown"}
    return f"{signer} may write records: {words[found.may_execute]}, start tasks: {words[found.may_start]}"


def _epochs(found: Discovery) -> str:
    if found.schedule is None:
        return "none on this chain"
    text = f"{found.schedule.epoch_length_blocks} blocks{_minutes(found, found.schedule.epoch_length_blocks)}, "
    text += f"of them {poc_blocks(found)} blocks{_minutes(found, poc_blocks(found))} of proof of compute"
    if found.schedule.index == 0:
        return f"{text}; none has begun"
    return f"{text}; epoch {found.schedule.index} began at block {found.schedule.poc_start}"


def _minutes(found: Discovery, blocks: int) -> str:
    return "" if found.block_seconds is None else f" ({blocks * found.block_seconds / 60:.1f} min)"


def _unknown(value: str | None, empty: str) -> str:
    return "unknown" if value is None else value or empty


def _sends(found: Discovery) -> str:
    if found.sends_restricted is None:
        return "unknown whether restricted"
    return f"restricted until block {found.restricted_until}" if found.sends_restricted else "free"


def _restricted(found: Discovery) -> str:
    return f"sends are restricted until block {found.restricted_until}: no run on carrier memo until then"


def _transactions(config: Config) -> str:
    settings = send_settings(config.chain)
    price = f"{settings.gas_price:f} {settings.denom} a unit of gas" if settings.gas_price else "no fees"
    payer = f", paid by {settings.granter}" if settings.granter else ""
    return f"{config.chain.style}, {price}, at most {settings.fee_cap} {settings.denom} each{payer}"


def _minimum(config: Config, found: Discovery) -> Decimal:
    """Return the node's minimum gas price in the settings' denomination; 0 when it has none or is not understood."""
    prices = {denom: amount for amount, denom in _COINS.findall(found.minimum_gas_price or "")}
    try:
        return Decimal(prices.get(config.chain.denom, "0"))
    except InvalidOperation:
        return Decimal(0)


def _is_too_cheap(config: Config, found: Discovery) -> bool:
    return send_settings(config.chain).gas_price < _minimum(config, found)


def _too_cheap(config: Config, found: Discovery) -> str:
    least = f"{_minimum(config, found).normalize():f}"
    return f'the node takes no transaction below {least} {config.chain.denom} a unit of gas: set gas_price = "{least}"'


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
