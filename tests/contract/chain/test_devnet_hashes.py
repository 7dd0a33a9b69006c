"""What a client can check by itself: hashes of blocks, results and commits, recorded and new."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from devnet_process import TM, Devnet, eventually, golden_key, topic_address
from gonka_devnet import headers, merkle
from gonka_devnet._pb.wire import wire_pb2 as wire

DATA = Path(__file__).parents[2] / "data" / "golden"
SETS = ("gonka", "sdk")


def recorded(folder: str, topic: str, name: str) -> Any:
    listed = json.loads((DATA / folder / f"{topic}.json").read_text())
    return next(case for case in listed if case["name"] == name)


@pytest.mark.parametrize("folder", SETS)
@pytest.mark.parametrize(
    ("topic", "name"),
    [("chain", "latest_block"), ("chain", "block_by_height"), ("not_utf8", "block_by_height_memo_ff")],
)
def test_recorded_block_hashes(folder: str, topic: str, name: str) -> None:
    raw = base64.b64decode(recorded(folder, topic, name)["answer_base64"])
    answer = tendermint.GetBlockByHeightResponse.FromString(raw)
    header = answer.block.header
    assert headers.header_hash(header) == answer.block_id.hash
    assert headers.data_hash(answer.block.data.txs) == header.data_hash
    assert headers.commit_hash(answer.block.last_commit) == header.last_commit_hash
    assert header.consensus_hash == headers.CONSENSUS_HASH
    made = headers.make_block(header, answer.block.data.txs, answer.block.last_commit)
    assert headers.block_id(made) == answer.block_id


@pytest.mark.parametrize("folder", SETS)
def test_recorded_validators_and_vote(folder: str) -> None:
    validator = recorded(folder, "chain", "validators")["answer"]["validators"][0]
    key = base64.b64decode(validator["pub_key"]["key"])
    raw = base64.b64decode(recorded(folder, "chain", "latest_block")["answer_base64"])
    block = tendermint.GetLatestBlockResponse.FromString(raw).block
    assert headers.validators_hash(key, int(validator["voting_power"])) == block.header.validators_hash
    vote = block.last_commit.signatures[0]
    time_ns = headers.nanoseconds(vote.timestamp)
    signed = headers.vote_bytes(block.header.chain_id, block.last_commit.height, block.last_commit.block_id, time_ns)
    Ed25519PublicKey.from_public_bytes(key).verify(vote.signature, signed)


def results_of(answer: Any) -> list[wire.ExecTxResult]:
    return [
        wire.ExecTxResult(
            code=result["code"],
            data=base64.b64decode(result["data"] or ""),
            gas_wanted=int(result["gas_wanted"]),
            gas_used=int(result["gas_used"]),
        )
        for result in answer["result"]["txs_results"] or []
    ]


@pytest.mark.parametrize("folder", SETS)
def test_recorded_results_hash(folder: str) -> None:
    results = recorded(folder, "rpc", "block_results_failed_tx")["rpc_answer"]
    header = recorded(folder, "rpc", "header_after_failed_tx")["rpc_answer"]["result"]["header"]
    assert headers.results_hash(results_of(results)).hex().upper() == header["last_results_hash"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 100])
def test_merkle_root_against_its_definition(count: int) -> None:
    def by_definition(items: list[bytes]) -> bytes:
        if len(items) <= 1:
            return hashlib.sha256(b"\x00" + items[0] if items else b"").digest()
        split = 1
        while split * 2 < len(items):
            split *= 2
        return hashlib.sha256(b"\x01" + by_definition(items[:split]) + by_definition(items[split:])).digest()

    items = [str(place).encode() for place in range(count)]
    assert merkle.root(items) == by_definition(items)


def test_new_blocks_can_be_verified(shared_devnet: Devnet) -> None:
    net, alice, topic = shared_devnet, golden_key("alice"), topic_address("hashes")
    sequence = net.account(alice.address()).sequence
    good, bad = net.send(alice, topic, sequence=sequence), net.send(alice, topic, 10**30, sequence=sequence + 1)
    assert [net.broadcast(raw).code for raw in (good, bad)] == [0, 0]
    assert [eventually(lambda raw=raw: net.find(raw)).code for raw in (good, bad)] == [0, 5]
    net.next_block()
    found, newest = [], net.next_block()
    for height in range(2, newest + 1):
        request = tendermint.GetBlockByHeightRequest(height=height)
        answer = tendermint.GetBlockByHeightResponse.FromString(net.call(TM + "GetBlockByHeight", request))
        before = net.get(f"block_results?height={height - 1}")
        check_block(answer, net.get(f"header?height={height}")["result"]["header"], before)
        found += answer.block.data.txs
    assert good in found
    assert bad in found


def check_block(answer: Any, header: Any, results_before: Any) -> None:
    block = answer.block
    assert headers.header_hash(block.header) == answer.block_id.hash
    assert headers.data_hash(block.data.txs) == block.header.data_hash
    assert headers.commit_hash(block.last_commit) == block.header.last_commit_hash
    assert block.last_commit.block_id == block.header.last_block_id
    assert headers.results_hash(results_of(results_before)) == block.header.last_results_hash
    assert header["data_hash"] == block.header.data_hash.hex().upper()
    assert header["last_block_id"]["hash"] == block.header.last_block_id.hash.hex().upper()
    assert base64.b64decode(results_before["result"]["app_hash"]) == block.header.app_hash
