"""The first state: accounts, modules and the validator's key."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gonka_devnet.app import App, At
from gonka_devnet.blocks import Validator
from gonka_devnet.database import Database
from gonka_devnet.store import Latest, Layer


class HomeError(ValueError):
    """A home that belongs to another chain."""


@dataclass(frozen=True)
class Genesis:
    """What a new chain starts from: `documents` are the modules' sections by the module's name."""

    documents: Mapping[str, Mapping[str, Any]]


def module_name(module: object) -> str:
    """Return the name under which a genesis file keeps a module's section: bank, auth, inference."""
    return type(module).__module__.split(".")[1]


def read_documents(path: Path | None, accounts: Mapping[str, int], allow_training: Sequence[str]) -> dict[str, Any]:
    """Return the genesis file's sections with what the flags add; raise ValueError or OSError."""
    documents: dict[str, Any] = json.loads(path.read_text()) if path else {}
    if not isinstance(documents, dict) or not all(isinstance(section, dict) for section in documents.values()):
        raise ValueError("a genesis file is a JSON object with one object for each module")
    bank = documents.setdefault("bank", {})
    bank["balances"] = {**bank.get("balances", {}), **accounts}
    inference = documents.setdefault("inference", {})
    inference["allow_training"] = [*inference.get("allow_training", []), *allow_training]
    return documents


def start(app: App, database: Database, documents: Mapping[str, Mapping[str, Any]]) -> tuple[Validator, int]:
    """Return validator and genesis time, after writing the first state if the home is new."""
    key = database.meta("validator_key")
    if key is None:
        return _write(app, database, documents)
    chain_id = (database.meta("chain_id") or b"").decode()
    if chain_id != app.chain.chain_id:
        raise HomeError(f"the home belongs to chain {chain_id}, not to {app.chain.chain_id}: choose another --home")
    validator = Validator(Ed25519PrivateKey.from_private_bytes(key))
    return validator, int(database.meta("genesis_time_ns") or b"0")


def _write(app: App, database: Database, documents: Mapping[str, Mapping[str, Any]]) -> tuple[Validator, int]:
    now, state = time.time_ns(), Layer(Latest({}))
    context = app.context(state, At(0, now))
    for module in app.modules:
        module.genesis(context, documents.get(module_name(module), {}))
    key = Ed25519PrivateKey.generate()
    meta = {
        "validator_key": key.private_bytes_raw(),
        "chain_id": app.chain.chain_id.encode(),
        "genesis_time_ns": str(now).encode(),
    }
    database.write_genesis(meta, {key: value for key, value in state.changes.items() if value is not None})
    return Validator(key), now
