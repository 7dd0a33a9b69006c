"""Blocks as CometBFT 0.38's RPC writes them, and what their headers say of them: pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gonka_trainer._pb.gonka_trainer.chain.v1 import tx_pb2
from gonka_trainer.chain.headers import Header, digest, header_hash, merkle_root, parse_header
from gonka_trainer.errors import DecodeError
from gonka_trainer.ports import Block, TxResult
from gonka_trainer.types import Digest, sha256


@dataclass(frozen=True, slots=True)
class GasTxResult(TxResult):
    """A result with the gas that was allowed and used, which the chain's results hash covers too."""

    gas_wanted: int
    gas_used: int


def data_hash(transactions: Sequence[bytes]) -> Digest:
    """Return what a header's data_hash must be: the tree over the transactions' hashes."""
    return merkle_root([sha256(transaction) for transaction in transactions])


def results_hash(results: Sequence[GasTxResult]) -> Digest:
    """Return what the next header's last_results_hash must be; DecodeError for numbers that no result has."""
    try:
        return merkle_root([_hashed(result) for result in results])
    except ValueError as error:
        raise DecodeError(f"a result has a number out of its range: {error}") from error


def _hashed(result: GasTxResult) -> bytes:
    """Encode what the chain's hash covers of a result: neither its codespace nor its log."""
    return tx_pb2.ExecTxResult(
        code=result.code, data=result.data, gas_wanted=result.gas_wanted, gas_used=result.gas_used
    ).SerializeToString()


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
        header = parse_header(block["block"]["header"])
        transactions = [base64.b64decode(text, validate=True) for text in block["block"]["data"]["txs"] or ()]
        outcomes = [_result(raw) for raw in results["txs_results"] or ()]
        results_height, block_hash = int(results["height"]), digest(block["block_id"]["hash"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, binascii.Error) as error:
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
