"""Faults of transactions and blocks, as a client sees them through gRPC and CometBFT's RPC."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from devnet_process import Devnet, FaultRefusedError, devnet, eventually, golden_key, topic_address
from gonka_devnet._pb.inference import inference_pb2 as pb
from recorded_outline import of_rpc, words

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "gonka"
EPOCH_INFO = "/inference.inference.Query/EpochInfo"
ALICE, BOB = golden_key("alice"), golden_key("bob")
TOPIC = topic_address("faults")
RECORDED_TOPIC = "gonka120a77848p7pq08w2wvedd9f9g0gpyklt35mw3t"


def recorded(topic: str, name: str) -> Any:
    return next(case for case in json.loads((GOLDEN / f"{topic}.json").read_text()) if case["name"] == name)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet(tmp_path_factory.mktemp("faults") / "home", "--index-lag-seconds", "0", block_seconds=0.1) as running:
        yield running


def results(net: Devnet, height: int) -> list[tuple[int, str]]:
    listed = net.get(f"block_results?height={height}")["result"]["txs_results"] or []
    return [(result["code"], result["log"]) for result in listed]


def epoch_info(net: Devnet) -> pb.QueryEpochInfoResponse:
    return pb.QueryEpochInfoResponse.FromString(net.call(EPOCH_INFO, b""))


def block_time(net: Devnet) -> float:
    return net.block_time_ns() / 10**9


def test_blocks_stop_go_on_and_are_made_at_once(net: Devnet) -> None:
    net.fault("blocks", on=False)
    raw, stopped, before = net.send(ALICE, TOPIC), net.height(), block_time(net)
    assert net.broadcast(raw).code == 0
    assert net.height() == stopped
    assert net.fault("blocks", make=200)["height"] == stopped + 200
    assert net.height() == stopped + 200
    # the times are as far apart as those of blocks that are made in time
    assert block_time(net) - before >= 200 * 0.1 - 1
    assert eventually(lambda: net.find(raw)).height == stopped + 1
    net.fault("blocks", on=True)
    assert net.next_block() > stopped + 200
    assert net.included(net.send(ALICE, TOPIC)).code == 0


def test_dropped_transaction_never_comes_and_may_come_again(net: Devnet) -> None:
    ordered, unordered = net.send(ALICE, TOPIC), net.send(BOB, TOPIC, timeout_ns=time.time_ns() + 300 * 10**9)
    net.fault("drop", count=2)
    assert [net.broadcast(raw).code for raw in (ordered, unordered)] == [0, 0]
    net.next_block()
    net.next_block()
    assert net.find(ordered) is net.find(unordered) is None
    assert [net.included(raw).code for raw in (ordered, unordered)] == [0, 0]
    assert net.broadcast(unordered).code == 19


def test_next_broadcasts_are_refused(net: Devnet) -> None:
    raw = net.send(ALICE, TOPIC)
    net.fault("refuse", count=2, code=13)
    assert [net.broadcast(raw).raw_log for _ in range(2)] == [b"insufficient fee"] * 2
    net.fault("refuse", count=1, codespace="inference", code=1139, log="training not allowed")
    said = net.broadcast(raw)
    assert (said.code, said.codespace, said.raw_log) == (1139, b"inference", b"training not allowed")
    net.fault("refuse", count=5)
    net.fault("refuse", count=0)
    assert net.included(raw).code == 0


def test_undecodable_bytes_and_one_transaction_twice_in_a_block(net: Devnet) -> None:
    ordered, unordered = net.send(ALICE, TOPIC), net.send(BOB, TOPIC, timeout_ns=time.time_ns() + 300 * 10**9)
    net.fault("blocks", on=False)
    assert net.broadcast(ordered).code == 0
    for raw, count in ((b"\xff\xfe no transaction", 1), (ordered, 2), (unordered, 2)):
        net.fault("inject", tx_base64=base64.b64encode(raw).decode(), count=count)
    height = net.fault("blocks", make=1)["height"]
    net.fault("blocks", on=True)
    listed = net.get(f"block?height={height}")["result"]["block"]["data"]["txs"]
    assert [base64.b64decode(raw) for raw in listed[:1]] == [b"\xff\xfe no transaction"]
    assert listed[1:] == [base64.b64encode(raw).decode() for raw in (ordered, ordered, unordered, unordered)]
    (garbage, first, again, other, other_again) = results(net, height)
    assert (first[0], other[0]) == (0, 0)
    assert garbage == (2, "tx parse error")
    assert (again[0], other_again[0]) == (32, 18)
    assert "account sequence mismatch" in again[1]
    assert "already used timeout" in other_again[1]
    # the index keeps the last of the two
    assert eventually(lambda: net.find(ordered)).code == 32


def test_restricted_send_fails_in_the_block_as_recorded(tmp_path: Path) -> None:
    with devnet(tmp_path, block_seconds=0.1) as net:
        net.fault("restrict", on=True)
        raw = net.send(ALICE, RECORDED_TOPIC)
        assert recorded("restricted", "send_to_topic")["answer"]["tx_response"].keys() == {"txhash"}
        found = net.included(raw)
        real = recorded("no_index", "rpc_block_results")["answer"]
        ours = net.get(f"block_results?height={found.height}")
        assert of_rpc(ours) == of_rpc(real)
        (one,), (other,) = (answer["result"]["txs_results"] for answer in (ours, real))
        assert (one["code"], one["codespace"], words(one["log"])) == (1108, "restrictions", words(other["log"]))
        assert int(one["gas_used"]) == pytest.approx(int(other["gas_used"]), rel=0.03)
        net.fault("restrict", on=False)
        assert net.included(net.send(ALICE, RECORDED_TOPIC)).code == 0


def test_block_times_jump(net: Devnet) -> None:
    raw = net.send(BOB, TOPIC, timeout_ns=time.time_ns() + 300 * 10**9)
    net.fault("clock", offset_seconds=3600)
    net.next_block()
    net.next_block()
    assert block_time(net) - time.time() > 3500
    assert net.broadcast(raw).code == 42
    net.fault("clock", offset_seconds=0)
    before = block_time(net)
    net.next_block()
    assert 0 < block_time(net) - before < 1, "times never go back"


def test_confirmation_of_proof_of_compute(tmp_path: Path) -> None:
    with devnet(tmp_path, block_seconds=0.2) as net:
        net.fault("blocks", on=False)
        assert not epoch_info(net).is_confirmation_poc_active
        trigger = net.fault("confirmation_poc", grace_blocks=2)["height"]
        phases = []
        for _ in range(13):
            net.fault("blocks", make=1)
            said = epoch_info(net)
            phases.append(said.active_confirmation_poc_event.phase if said.is_confirmation_poc_active else 0)
        # grace 2, generation 4 and its delay 1, validation 4, as the epoch's parameters say
        assert phases == [1] * 2 + [2] * 5 + [3] * 4 + [0] * 2
        net.fault("confirmation_poc", grace_blocks=0)
        net.fault("blocks", make=1)
        event = epoch_info(net).active_confirmation_poc_event
        assert (event.event_sequence, event.trigger_height) == (1, trigger + 13)
        assert event.generation_start_height == event.trigger_height


def test_what_cannot_be_switched_says_why(net: Devnet, tmp_path: Path) -> None:
    for name, keys, why in (
        ("challenge", {}, "there is no such fault"),
        ("drop", {}, "count is missing"),
        ("drop", {"count": -1}, "count must be a whole number from 0"),
        ("drop", {"count": True}, "count must be a whole number"),
        ("drop", {"count": 1, "often": 2}, "unknown: often"),
        ("index", {"on": "no"}, "on must be true or false"),
        ("inject", {"tx_base64": "?"}, "tx_base64: "),
        ("clock", {"offset_seconds": "1"}, "offset_seconds must be a number"),
        ("chain_id", {"value": ""}, "value must not be empty"),
        ("prune", {"below": 10**9}, "below must be a whole number from 0 to"),
        ("rewind", {"blocks": 10**9}, "blocks must be a whole number from 0 to"),
    ):
        with pytest.raises(FaultRefusedError) as refused:
            net.fault(name, **keys)
        assert why in str(refused.value), name
    with (
        devnet(tmp_path, "--chain-version", "0.2.0") as old,
        pytest.raises(FaultRefusedError, match=r"0\.2\.0 has no confirmation"),
    ):
        old.fault("confirmation_poc")
