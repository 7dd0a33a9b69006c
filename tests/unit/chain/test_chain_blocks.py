from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from typing import Any

import pytest
from chain_recordings import rpc

from gonka_trainer.chain import blocks
from gonka_trainer.chain.headers import Header, merkle_root, parse_header, time_ns
from gonka_trainer.errors import DecodeError


def two() -> tuple[Header, Any]:
    return blocks.parse_block(rpc("block_two_txs"), rpc("block_results_two_txs"))


def test_a_recorded_block() -> None:
    header, block = two()
    assert block.height == 14
    assert block.block_hash.hex().upper() == "9412A6E64A828F97276966A631B98F8AC0B083D2287F117AF3E944C577B5F958"
    assert block.previous_hash.hex().upper().startswith("D8DDA8461AD8CA19")
    assert block.time_ns == 1796051295_937827956
    assert [result.code for result in block.results] == [0, 0]
    assert header.chain_id == "gonka-golden"
    blocks.check_block(header, block)


def test_an_empty_recorded_block_has_no_results() -> None:
    assert merkle_root([]).hex() == hashlib.sha256(b"").hexdigest()
    assert rpc("block_results_empty")["txs_results"] is None


def test_a_failed_transactions_result_hashes_into_the_next_header() -> None:
    results = [blocks._result(raw) for raw in rpc("block_results_failed_tx")["txs_results"]]
    header = parse_header(rpc("header_after_failed_tx")["header"])
    _, block = two()
    blocks.check_results(replace(block, results=tuple(results)), header)
    with pytest.raises(DecodeError):
        blocks.check_results(replace(block, results=(replace(results[0], code=0),)), header)


@pytest.mark.parametrize("change", ["swap", "drop", "alter"])
def test_other_transactions_do_not_hash_to_data_hash(change: str) -> None:
    header, block = two()
    first, second = block.transactions
    changed = {"swap": (second, first), "drop": (first,), "alter": (first, second[:-1] + b"x")}[change]
    with pytest.raises(DecodeError, match="data_hash"):
        blocks.check_block(header, replace(block, transactions=changed))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("time", "2026-11-30T15:08:15.937827957Z"),
        ("height", "15"),
        ("chain_id", "gonka-golden2"),
        ("app_hash", "00" * 32),
        ("proposer_address", "00" * 20),
        ("last_results_hash", "00" * 32),
    ],
)
def test_an_altered_header_does_not_hash_to_the_block(field: str, value: str) -> None:
    raw, results = copy.deepcopy(rpc("block_two_txs")), copy.deepcopy(rpc("block_results_two_txs"))
    raw["block"]["header"][field] = value
    if field == "height":
        results["height"] = value
    header, block = blocks.parse_block(raw, results)
    with pytest.raises(DecodeError, match="does not hash"):
        blocks.check_block(header, block)


def test_counts_and_heights_must_fit() -> None:
    short = copy.deepcopy(rpc("block_results_two_txs"))
    short["txs_results"].pop()
    with pytest.raises(DecodeError, match="2 transactions and 1 results"):
        blocks.parse_block(rpc("block_two_txs"), short)
    other = copy.deepcopy(rpc("block_results_two_txs"))
    other["height"] = "13"
    with pytest.raises(DecodeError, match="its results are of 13"):
        blocks.parse_block(rpc("block_two_txs"), other)


@pytest.mark.parametrize("bad", [None, [], {}, {"block": {}}, {"block": {"header": None}}, "x"])
def test_other_documents_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(DecodeError):
        blocks.parse_block(bad, rpc("block_results_two_txs"))
    with pytest.raises(DecodeError):
        blocks.parse_block(rpc("block_two_txs"), bad)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T15:08:15.937827956Z", 1796051295_937827956),
        ("2026-11-30T15:08:15Z", 1796051295_000000000),
        ("2026-11-30T15:08:15.5Z", 1796051295_500000000),
        ("1970-01-01T00:00:00.000000001Z", 1),
    ],
)
def test_times_keep_their_nanoseconds(text: str, expected: int) -> None:
    assert time_ns(text) == expected


@pytest.mark.parametrize("text", ["2026-11-30T15:08:15", "2026-11-30T15:08:15+01:00", "2026-11-30T15:08:15.-5Z", "Z"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        time_ns(text)


def split_root(items: list[bytes]) -> bytes:
    """RFC 6962's own recursive definition."""
    if not items:
        return hashlib.sha256(b"").digest()
    if len(items) == 1:
        return hashlib.sha256(b"\0" + items[0]).digest()
    k = 1
    while k * 2 < len(items):
        k *= 2
    return hashlib.sha256(b"\1" + split_root(items[:k]) + split_root(items[k:])).digest()


def test_merkle_root_is_rfc_6962s() -> None:
    for count in range(40):
        items = [bytes([i]) * (i % 5) for i in range(count)]
        assert merkle_root(items) == split_root(items)
