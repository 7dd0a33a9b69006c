"""What a Gonka v0.2.0 node answered (recorded.json), and helpers for the tests beside."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from gonka_trainer.chain.keys import AccountKey

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())
ADDRESSES: dict[str, str] = RECORDED["keys"]["addresses"]


def key(name: str) -> AccountKey:
    """Return one of the recorded chain's test keys."""
    return AccountKey.from_bytes(bytes.fromhex(RECORDED["keys"]["private"][name]))


def rpc(name: str) -> Any:
    """Return an RPC answer's result."""
    return RECORDED["rpc"][name]["result"]


def grpc(name: str) -> bytes:
    """Return a gRPC answer's bytes."""
    return base64.b64decode(RECORDED["grpc"][name]["answer_base64"])
