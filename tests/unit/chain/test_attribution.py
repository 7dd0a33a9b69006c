from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer._pb.gonka_trainer.chain.v1 import tx_pb2
from gonka_trainer.chain.address import decode_address
from gonka_trainer.chain.attribution import (
    Carrier,
    KvCarrier,
    MemoCarrier,
    announced_task,
    attribute,
    block_records,
    claims,
)
from gonka_trainer.chain.transactions import Message, Ordering, body_bytes, exec_message
from gonka_trainer.ports import Block, TxResult
from gonka_trainer.round.records import Commit, encode_record
from gonka_trainer.types import Address, Digest, Height

VECTORS = Path(__file__).parents[2] / "vectors" / "attribution"
CONSTRUCTED = json.loads((VECTORS / "constructed.json").read_text())
RECORDED = json.loads((VECTORS / "recorded.json").read_text())
GOOD = TxResult(0, "", b"", b"")
TOPIC = Address(bytes.fromhex(CONSTRUCTED["topic"]))
CARRIERS: dict[str, Carrier] = {
    "memo": MemoCarrier(TOPIC, CONSTRUCTED["prefix"]),
    "kv": KvCarrier(CONSTRUCTED["task_id"], CONSTRUCTED["prefix"]),
}


def result(code: int) -> TxResult:
    return TxResult(code, "sdk" if code else "", b"", b"")


@pytest.mark.parametrize("case", CONSTRUCTED["cases"], ids=lambda case: f"{case['carrier']}-{case['name']}")
def test_constructed(case: dict[str, Any]) -> None:
    found = attribute(bytes.fromhex(case["transaction"]), result(case["code"]), CARRIERS[case["carrier"]])
    seen = [[each.message, each.author.hex(), encode_record(each.record).hex()] for each in found]
    assert seen == case["records"]


def test_vectors_accept_and_reject() -> None:
    for carrier in CARRIERS:
        cases = [case for case in CONSTRUCTED["cases"] if case["carrier"] == carrier]
        accepting = [case for case in cases if case["records"]]
        assert len(accepting) >= 5
        assert len(cases) - len(accepting) >= 8


TOPICS = sorted({entry["topic"] for case in RECORDED["cases"] for entry in case["memo"]})
TASKS = sorted({entry["task_id"] for case in RECORDED["cases"] for entry in case["kv"]})


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["name"])
def test_recorded(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["transaction"])
    assert len(TOPICS) == 2
    assert TASKS == [1, 99]
    for topic in TOPICS:
        carrier = MemoCarrier(decode_address(topic, "gonka"), "gonka")
        seen = [
            [each.message, each.author.hex(), each.text.hex()] for each in claims(raw, result(case["code"]), carrier)
        ]
        assert seen == [entry["claim"] for entry in case["memo"] if entry["topic"] == topic]
    for task_id in TASKS:
        kv = KvCarrier(task_id, "gonka")
        seen = [[each.message, each.author.hex(), each.text.hex()] for each in claims(raw, result(case["code"]), kv)]
        assert seen == [entry["claim"] for entry in case["kv"] if entry["task_id"] == task_id]


def test_recorded_failed_transactions_would_count_were_it_not_for_their_code() -> None:
    failed = next(case for case in RECORDED["cases"] if case["name"] == "included/execution_fails_insufficient_funds")
    topic = next(topic for topic in TOPICS if topic.startswith("gonka120a7"))
    carrier = MemoCarrier(decode_address(topic, "gonka"), "gonka")
    raw = bytes.fromhex(failed["transaction"])
    assert claims(raw, GOOD, carrier)
    assert not claims(raw, result(failed["code"]), carrier)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_nothing(raw: bytes) -> None:
    for carrier in CARRIERS.values():
        assert attribute(raw, GOOD, carrier) == ()


@given(st.sampled_from([case["transaction"] for case in CONSTRUCTED["cases"]]), st.data())
def test_flipped_bits_never_raise(transaction: str, data: st.DataObject) -> None:
    raw = bytearray.fromhex(transaction)
    if raw:
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    for carrier in CARRIERS.values():
        attribute(bytes(raw), GOOD, carrier)


def whole_block(*names: str, carrier: str) -> Block:
    by_name = {case["name"]: case for case in CONSTRUCTED["cases"] if case["carrier"] == carrier}
    raw = tuple(bytes.fromhex(by_name[name]["transaction"]) for name in names)
    results = tuple(result(by_name[name]["code"]) for name in names)
    return Block(Height(9), Digest(bytes(32)), Digest(bytes(32)), 0, raw, results)


def test_places_in_a_block() -> None:
    block = whole_block("a record", "failed in the block", "depth first", carrier="kv")
    places = [(placed.transaction, placed.message) for placed in block_records(block, CARRIERS["kv"])]
    assert places == [(0, 0), (2, 0), (2, 1), (2, 3), (2, 4)]
    assert isinstance(block_records(block, CARRIERS["kv"])[0].record, Commit)


def test_the_first_announcement_names_the_task() -> None:
    block = whole_block("a record", "another type URL", carrier="kv")
    assert announced_task(block, Digest(b"\x3a" * 32), "gonka") == CONSTRUCTED["task_id"]
    assert announced_task(block, Digest(b"\x3b" * 32), "gonka") is None
    assert announced_task(whole_block("a record", carrier="kv"), Digest(b"\x3a" * 32), "gonka") is None


def test_thousands_of_layers_end() -> None:
    message = Message(b"/x", b"")
    for _ in range(2000):
        message = exec_message("g", [message])
    raw = tx_pb2.TxRaw(body_bytes=body_bytes([message], b"", Ordering())).SerializeToString()
    assert attribute(raw, GOOD, CARRIERS["kv"]) == ()
