"""Blocks and results in CometBFT's JSON: 64-bit integers as text, hashes in hexadecimal, data in base64."""

from __future__ import annotations

import base64
from typing import Any

from gonka_devnet import headers
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.blocks import Block
from gonka_devnet.errors import printable, show
from gonka_devnet.timestamps import rfc3339_nano

CONSENSUS_PARAMS = {
    "block": {"max_bytes": str(headers.BLOCK_BYTES), "max_gas": str(headers.BLOCK_GAS)},
    "evidence": {"max_age_num_blocks": "100000", "max_age_duration": "172800000000000", "max_bytes": "1048576"},
    "validator": {"pub_key_types": ["ed25519"]},
    "version": {},
    "abci": {},
}


def in_base64(data: bytes) -> str | None:
    """Return data as base64; nothing is null."""
    return base64.b64encode(data).decode() if data else None


def in_hex(data: bytes) -> str:
    """Return a hash in upper-case hexadecimal."""
    return data.hex().upper()


def text(raw: bytes) -> str:
    """Return a text field; what is not UTF-8 becomes U+FFFD, as in Go's JSON."""
    return printable(show(raw))


def block_id(message: Any) -> dict[str, Any]:
    """Return a BlockID."""
    parts = message.part_set_header
    return {"hash": in_hex(message.hash), "parts": {"total": parts.total, "hash": in_hex(parts.hash)}}


def header(message: Any) -> dict[str, Any]:
    """Return a Header."""
    shown: dict[str, Any] = {
        "version": {"block": str(message.version.block)},
        "chain_id": message.chain_id,
        "height": str(message.height),
        "time": rfc3339_nano(headers.nanoseconds(message.time)),
        "last_block_id": block_id(message.last_block_id),
    }
    hashes = ("last_commit", "data", "validators", "next_validators", "consensus", "app", "last_results", "evidence")
    shown.update({f"{name}_hash": in_hex(getattr(message, f"{name}_hash")) for name in hashes})
    shown["proposer_address"] = in_hex(message.proposer_address)
    return shown


def commit(message: Any) -> dict[str, Any]:
    """Return a Commit."""
    signatures = [
        {
            "block_id_flag": signature.block_id_flag,
            "validator_address": in_hex(signature.validator_address),
            "timestamp": rfc3339_nano(headers.nanoseconds(signature.timestamp)),
            "signature": in_base64(signature.signature),
        }
        for signature in message.signatures
    ]
    shown = {"height": str(message.height), "round": message.round, "block_id": block_id(message.block_id)}
    return {**shown, "signatures": signatures}


def block(found: Block) -> dict[str, Any]:
    """Return a block with its id."""
    message = found.message
    return {
        "block_id": block_id(found.block_id),
        "block": {
            "header": header(message.header),
            "data": {"txs": [in_base64(raw) for raw in message.data.txs]},
            "evidence": {"evidence": []},
            "last_commit": commit(message.last_commit),
        },
    }


def events(listed: Any) -> list[dict[str, Any]]:
    """Return events with their attributes."""
    return [
        {
            "type": text(event.type),
            "attributes": [
                {"key": text(part.key), "value": text(part.value), "index": part.index} for part in event.attributes
            ],
        }
        for event in listed
    ]


def result(found: wire.ExecTxResult) -> dict[str, Any]:
    """Return a transaction's result."""
    return {
        "code": found.code,
        "data": in_base64(found.data),
        "log": text(found.log),
        "info": text(found.info),
        "gas_wanted": str(found.gas_wanted),
        "gas_used": str(found.gas_used),
        "events": events(found.events),
        "codespace": text(found.codespace),
    }


def results(found: Block) -> dict[str, Any]:
    """Return what a block did."""
    return {
        "height": str(found.height),
        "txs_results": [result(one) for one in found.results.results] or None,
        "finalize_block_events": events(found.results.events),
        "validator_updates": None,
        "consensus_param_updates": CONSENSUS_PARAMS,
        "app_hash": in_base64(found.results.app_hash),
    }
