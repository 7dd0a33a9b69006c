from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

import grpc
import pytest
from devnet_process import Devnet, eventually, golden_key, topic_address
from gonka_devnet import headers
from gonka_devnet._pb.wire import wire_pb2 as wire
from grpc_reflection.v1alpha import reflection_pb2 as reflection

BOB = golden_key("bob")


def post(net: Devnet, body: Any) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{net.rpc}/", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def test_json_rpc_says_the_same_as_an_address(shared_devnet: Devnet) -> None:
    height = shared_devnet.next_block()
    asked = {"jsonrpc": "2.0", "id": 7, "method": "block", "params": {"height": str(height)}}
    answer = post(shared_devnet, asked)
    assert answer["id"] == 7
    assert answer["result"] == shared_devnet.get(f"block?height={height}")["result"]
    assert answer["result"] == shared_devnet.get(f'block?height="{height}"')["result"]
    assert post(shared_devnet, {**asked, "params": [height]})["result"] == answer["result"]


def test_json_rpc_refusals(shared_devnet: Devnet) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "nope"}
    assert post(shared_devnet, asked)["error"] == {"code": -32601, "message": "Method not found"}
    future = post(shared_devnet, {**asked, "method": "block_results", "params": {"height": "1000000"}})["error"]
    assert future["code"] == -32603
    assert future["data"].startswith("height 1000000 must be less than or equal to the current blockchain height")
    batch = post(shared_devnet, [{**asked, "method": "health"}, {**asked, "id": 2, "method": "status"}])
    assert [answer["id"] for answer in batch] == [1, 2]
    assert shared_devnet.get("header?height=abc")["error"]["code"] == -32602


def test_newest_commit_and_validators_can_be_checked(shared_devnet: Devnet) -> None:
    newest = shared_devnet.get("commit")["result"]
    height = int(newest["signed_header"]["header"]["height"])
    listed = shared_devnet.get(f"validators?height={height}")["result"]
    (validator,) = listed["validators"]
    key = base64.b64decode(validator["pub_key"]["value"])
    assert (listed["block_height"], listed["total"]) == (str(height), "1")
    shown = headers.validators_hash(key, int(validator["voting_power"]))
    assert shown.hex().upper() == newest["signed_header"]["header"]["validators_hash"]
    shared_devnet.next_block()
    later = shared_devnet.get(f"commit?height={height}")["result"]
    assert later["canonical"]
    assert later["signed_header"]["commit"] == newest["signed_header"]["commit"]
    assert shared_devnet.get("validators?height=1000000")["error"]["code"] == -32603


def test_results_by_position_tell_which_failed(shared_devnet: Devnet) -> None:
    net, topic = shared_devnet, topic_address("positions")
    sequence = net.account(BOB.address()).sequence
    sent = [net.send(BOB, topic, amount, sequence=sequence + place) for place, amount in enumerate((1, 10**30, 2))]
    assert [net.broadcast(raw).code for raw in sent] == [0, 0, 0]
    codes = {}
    for height in {eventually(lambda raw=raw: net.find(raw)).height for raw in sent}:
        txs = net.get(f"block?height={height}")["result"]["block"]["data"]["txs"]
        results = net.get(f"block_results?height={height}")["result"]["txs_results"]
        codes.update({base64.b64decode(raw): result["code"] for raw, result in zip(txs, results, strict=True)})
    assert [codes[raw] for raw in sent] == [0, 5, 0]


@pytest.mark.parametrize("version", ["v1alpha", "v1"])
def test_reflection_lists_what_is_served(shared_devnet: Devnet, version: str) -> None:
    call = shared_devnet.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection.ServerReflectionResponse.FromString,
    )
    listed = next(call(iter([reflection.ServerReflectionRequest(list_services="")]), timeout=20))
    names = [service.name for service in listed.list_services_response.service]
    assert {"cosmos.tx.v1beta1.Service", "cosmos.bank.v1beta1.Query", "inference.inference.Query"} <= set(names)
    asked = [reflection.ServerReflectionRequest(file_containing_symbol=name) for name in names if "cosmos" in name]
    for answer in call(iter(asked), timeout=20):
        assert answer.file_descriptor_response.file_descriptor_proto, answer.original_request


def test_unknown_methods_and_heights_are_named(shared_devnet: Devnet) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        shared_devnet.call("/cosmos.bank.v1beta1.Query/Nope", b"")
    assert caught.value.details() == "unknown method Nope for service cosmos.bank.v1beta1.Query"
    _, said = shared_devnet.call_with_headers(
        "/cosmos.bank.v1beta1.Query/Params", b"", [("x-cosmos-block-height", "1")]
    )
    assert said["x-cosmos-block-height"] == "1"


def test_garbage_is_refused_and_hurts_nobody(shared_devnet: Devnet) -> None:
    good = shared_devnet.send(BOB, topic_address("garbage"), sequence=shared_devnet.account(BOB.address()).sequence)
    cut = [good[:length] for length in range(1, len(good), 7)]
    flipped = [good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :] for place in range(0, len(good), 5)]
    for raw in [*cut, *flipped, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x00" * 5000]:
        assert shared_devnet.broadcast(raw).code != 0
    assert shared_devnet.included(good).code == 0
    too_large = wire.TxRaw(body_bytes=b"x" * 1_100_000).SerializeToString()
    assert shared_devnet.broadcast(too_large).code == 21
