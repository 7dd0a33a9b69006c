"""Blocks as CometBFT 0.38's RPC writes them, and the hashes that tie them together: pure.

Hashes follow CometBFT's specification (core/data_structures, core/encoding): RFC 6962 Merkle trees over SHA-256.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gonka_trainer._pb.gonka_trainer.chain.v1 import tx_pb2
from gonka_trainer.errors import DecodeError
from gonka_trainer.ports import Block, TxResult
from gonka_trainer.types import DIGEST_BYTES, ZERO_DIGEST, Digest, Height, sha256

_FRACTION_DIGITS: Final = 9
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class GasTxResult(TxResult):
    """A result with the gas that was allowed and used, which the chain's results hash covers too."""

    gas_wanted: int
    gas_used: int


@dataclass(frozen=True, slots=True)
class Header:
    """What of a block's header is used here; `fields` are its encoded fields in the order of the header's hash."""

    chain_id: str
    height: Height
    time_ns: int
    previous_hash: Digest
    data_hash: Digest
    last_results_hash: Digest
    fields: tuple[bytes, ...]


def merkle_root(items: Sequence[bytes]) -> Digest:
    """Return the root of the RFC 6962 tree over the items; of none, SHA-256 of nothing."""
    if not items:
        return sha256()
    level = [sha256(b"\x00", item) for item in items]
    while len(level) > 1:  # pairing neighbours and lifting an odd last one gives the same tree as splitting
        paired = [sha256(b"\x01", level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = paired + level[len(paired) * 2 :]
    return level[0]


def data_hash(transactions: Sequence[bytes]) -> Digest:
    """Return what a header's data_hash must be: the tree over the transactions' hashes."""
    return merkle_root([sha256(transaction) for transaction in transactions])


def results_hash(results: Sequence[GasTxResult]) -> Digest:
    """Return what the next header's last_results_hash must be."""
    return merkle_root(
        [
            tx_pb2.ExecTxResult(
                code=result.code, data=result.data, gas_wanted=result.gas_wanted, gas_used=result.gas_used
            ).SerializeToString()
            for result in results
        ]
    )


def header_hash(header: Header) -> Digest:
    """Return the block's hash, which is its header's."""
    return merkle_root(header.fields)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _bytes(field: int, value: bytes, always: bool = False) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value if value or always else b""


def _block_id(raw: dict[str, Any]) -> bytes:
    parts = _number(1, int(raw["parts"]["total"])) + _bytes(2, bytes.fromhex(raw["parts"]["hash"]))
    return _bytes(1, bytes.fromhex(raw["hash"])) + _bytes(2, parts, always=True)


def time_ns(text: str) -> int:
    """Return an RFC 3339 time in UTC as nanoseconds since 1970; ValueError for other forms."""
    if not text.endswith("Z"):
        raise ValueError("time is not in UTC")
    seconds, _, fraction = text[:-1].partition(".")
    if len(fraction) > _FRACTION_DIGITS or (fraction and not fraction.isdigit()):
        raise ValueError("fraction of a second is not a number of nanoseconds")
    whole = int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp())
    return whole * _NANOSECONDS + int(fraction.ljust(_FRACTION_DIGITS, "0"))


def _digest(text: str) -> Digest:
    data = bytes.fromhex(text)
    if len(data) not in {0, DIGEST_BYTES}:
        raise ValueError(f"hash of {len(data)} bytes")
    return Digest(data) if data else ZERO_DIGEST


_HASH_FIELDS: Final = (
    "last_commit_hash",
    "data_hash",
    "validators_hash",
    "next_validators_hash",
    "consensus_hash",
    "app_hash",
    "last_results_hash",
    "evidence_hash",
    "proposer_address",
)


def _header(raw: dict[str, Any]) -> Header:
    height, moment = int(raw["height"]), time_ns(raw["time"])
    version = _number(1, int(raw["version"]["block"])) + _number(2, int(raw["version"].get("app", 0)))
    seconds, nanos = divmod(moment, _NANOSECONDS)
    fields = (
        version,
        _bytes(1, raw["chain_id"].encode()),
        _number(1, height),
        _number(1, seconds) + _number(2, nanos),
        _block_id(raw["last_block_id"]),
        *(_bytes(1, bytes.fromhex(raw[name])) for name in _HASH_FIELDS),
    )
    previous = _digest(raw["last_block_id"]["hash"])
    data, results = _digest(raw["data_hash"]), _digest(raw["last_results_hash"])
    return Header(raw["chain_id"], Height(height), moment, previous, data, results, fields)


def _result(raw: dict[str, Any]) -> GasTxResult:
    return GasTxResult(
        code=int(raw.get("code") or 0),
        codespace=str(raw.get("codespace") or ""),
        log=str(raw.get("log") or "").encode("utf-8", "surrogatepass"),
        data=base64.b64decode(raw.get("data") or "", validate=True),
        gas_wanted=int(raw.get("gas_wanted") or 0),
        gas_used=int(raw.get("gas_used") or 0),
    )


def parse_block(block: Any, results: Any) -> tuple[Header, Block]:
    """Read the results of `block` and `block_results`; DecodeError when they do not fit each other or the form.

    Logs pass through JSON, which has no bytes that are not UTF-8: nothing may be decided by them.
    """
    try:
        header = _header(block["block"]["header"])
        transactions = [base64.b64decode(text, validate=True) for text in block["block"]["data"]["txs"] or ()]
        outcomes = [_result(raw) for raw in results["txs_results"] or ()]
        results_height, block_hash = int(results["height"]), _digest(block["block_id"]["hash"])
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        raise DecodeError(f"not a block of CometBFT 0.38: {type(error).__name__} {error}") from error
    if results_height != header.height:
        raise DecodeError(f"block is of height {header.height}, its results are of {results_height}")
    if len(transactions) != len(outcomes):
        raise DecodeError(f"block {header.height} has {len(transactions)} transactions and {len(outcomes)} results")
    whole = Block(header.height, block_hash, header.previous_hash, header.time_ns, tuple(transactions), tuple(outcomes))
    return header, whole


def check_block(header: Header, block: Block) -> None:
    """Check the transactions against data_hash and the header against the block's hash; DecodeError on a breach."""
    if data_hash(block.transactions) != header.data_hash:
        raise DecodeError(f"transactions of block {block.height} do not hash to its data_hash")
    if header_hash(header) != block.block_hash:
        raise DecodeError(f"header of block {block.height} does not hash to the block's hash")


def check_results(block: Block, next_header: Header) -> None:
    """Check a block's results against the next header; DecodeError on a breach."""
    results = [result for result in block.results if isinstance(result, GasTxResult)]
    if results_hash(results) != next_header.last_results_hash:
        raise DecodeError(f"results of block {block.height} do not hash to the next header's last_results_hash")
