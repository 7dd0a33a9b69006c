"""Faults of what a node says of the past and of itself: index, pruning, chain id, going back, forks, restarts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from cosmpy.protos.cosmos.bank.v1beta1 import query_pb2 as bank
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from devnet_process import TM, TX, Devnet, devnet, eventually, golden_key, topic_address
from gonka_devnet import headers
from gonka_devnet._pb.wire import wire_pb2 as wire
from recorded_outline import of_answer, words
from test_devnet_faults import recorded

ALICE = golden_key("alice")
TOPIC = topic_address("history")
BALANCE = "/cosmos.bank.v1beta1.Query/Balance"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet(tmp_path_factory.mktemp("history") / "home", "--index-lag-seconds", "0", block_seconds=0.1) as running:
        running.fault("blocks", make=60)
        yield running


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code().name, refused.value.details() or ""


def same_refusal(topic: str, name: str, call: Callable[[], Any]) -> None:
    real = recorded(topic, name)["error"]
    status, text = refusal(call)
    assert (status, words(text)) == (real["code"], words(real["details"]))


def grpc_block(net: Devnet, height: int) -> Any:
    raw = net.call(TM + "GetBlockByHeight", tendermint.GetBlockByHeightRequest(height=height))
    return tendermint.GetBlockByHeightResponse.FromString(raw)


def balance(net: Devnet, height: int) -> bytes:
    request = bank.QueryBalanceRequest(address=ALICE.address(), denom="ngonka")
    return net.call(BALANCE, request, (("x-cosmos-block-height", str(height)),))


def test_node_without_index_as_recorded(net: Devnet) -> None:
    found = net.included(net.send(ALICE, TOPIC))
    digest = found.txhash
    net.fault("index", on=False)
    query = wire.GetTxsEventRequest(query=f"transfer.recipient='{TOPIC}'".encode(), page=1, limit=5)
    same_refusal("no_index", "get_tx", lambda: net.call(TX + "GetTx", wire.GetTxRequest(hash=digest)))
    same_refusal("no_index", "search", lambda: net.call(TX + "GetTxsEvent", query))
    held = net.call(TX + "GetBlockWithTxs", wire.GetBlockWithTxsRequest(height=found.height))
    real = recorded("no_index", "block_that_holds_it")
    assert of_answer(real["method"], held, False)["txs"]
    assert net.get("status")["result"]["node_info"]["other"]["tx_index"] == "off"
    assert recorded("no_index", "rpc_status")["answer"]["result"]["node_info"]["other"]["tx_index"] == "off"
    assert net.get(f"block_results?height={found.height}")["result"]["txs_results"][0]["code"] == 0
    later = net.send(ALICE, TOPIC)
    assert net.broadcast(later).code == 0
    net.fault("index", on=True)
    assert eventually(lambda: net.find(later)).code == 0


def test_pruned_state_as_recorded_and_pruned_blocks(net: Devnet) -> None:
    newest = net.height()
    net.fault("prune", below=newest - 5, blocks=False)
    same_refusal("pruned", "state_at_an_old_height", lambda: balance(net, 3))
    assert balance(net, newest - 5)
    real = recorded("pruned", "block_at_an_old_height")
    kept = net.call(real["method"], tendermint.GetBlockByHeightRequest(height=3))
    assert of_answer(real["method"], kept, False).keys() == real["answer"].keys()
    assert net.get("block_results?height=3")["result"]["height"] == "3"
    net.fault("prune", below=newest - 5)
    gone = f"height 3 is not available, lowest height is {newest - 5}"
    assert refusal(lambda: grpc_block(net, 3)) == ("UNKNOWN", gone)
    for method in ("block", "header", "block_results", "commit"):
        assert net.get(f"{method}?height=3")["error"]["data"] == gone
    assert net.get("status")["result"]["sync_info"]["earliest_block_height"] == str(newest - 5)
    assert grpc_block(net, newest - 5).block.header.height == newest - 5
    net.fault("prune", below=0)
    assert grpc_block(net, 3).block.header.height == 3


def answers(net: Devnet) -> bool:
    """Whether the channel has found the node again."""
    try:
        return net.height() > 0
    except grpc.RpcError:
        return False


def check_history(net: Devnet, chain_id: str, first: int, last: int) -> None:
    """Check links, hashes and signatures of what both doors say of the blocks."""
    key = Ed25519PublicKey.from_public_bytes(
        wire.PubKey.FromString(
            tendermint.GetLatestValidatorSetResponse.FromString(net.call(TM + "GetLatestValidatorSet", b""))
            .validators[0]
            .pub_key.value
        ).key
    )
    before = None
    for height in range(first, last + 1):
        found = grpc_block(net, height)
        header, commit = found.block.header, found.block.last_commit
        assert header.chain_id == chain_id
        assert headers.header_hash(header) == found.block_id.hash
        shown = net.get(f"block?height={height}")["result"]
        assert shown["block_id"]["hash"] == found.block_id.hash.hex().upper()
        assert net.get(f"header?height={height}")["result"]["header"] == shown["block"]["header"]
        signed = net.get(f"commit?height={height}")["result"]["signed_header"]
        assert signed["commit"]["block_id"]["hash"] == shown["block_id"]["hash"]
        assert headers.data_hash(found.block.data.txs) == header.data_hash
        if before is not None:
            assert header.last_block_id == before == commit.block_id
            assert headers.commit_hash(commit) == header.last_commit_hash
            moment = headers.nanoseconds(commit.signatures[0].timestamp)
            key.verify(
                commit.signatures[0].signature, headers.vote_bytes(chain_id, height - 1, commit.block_id, moment)
            )
        before = found.block_id


def test_another_chain_id_everywhere(net: Devnet) -> None:
    net.fault("chain_id", value="another-chain")
    info = tendermint.GetNodeInfoResponse.FromString(net.call(TM + "GetNodeInfo", b""))
    assert info.default_node_info.network == "another-chain"
    assert net.get("status")["result"]["node_info"]["network"] == "another-chain"
    check_history(net, "another-chain", 1, 8)
    net.fault("chain_id", value=None)
    check_history(net, net.chain_id, 1, 8)


def test_fork_is_another_consistent_history_from_its_height_on(net: Devnet) -> None:
    before = [grpc_block(net, height).block_id for height in range(30, 40)]
    net.fault("fork", height=35)
    after = [grpc_block(net, height).block_id for height in range(30, 40)]
    assert before[:5] == after[:5]
    assert all(one != other for one, other in zip(before[5:], after[5:], strict=True))
    check_history(net, net.chain_id, 33, net.height())
    latest = tendermint.GetLatestBlockResponse.FromString(net.call(TM + "GetLatestBlock", b""))
    assert latest.block_id == grpc_block(net, latest.block.header.height).block_id
    net.fault("fork", height=0)
    assert [grpc_block(net, height).block_id for height in range(30, 40)] == before


def test_node_goes_back_until_it_made_as_many_blocks_again(net: Devnet) -> None:
    found = net.included(net.send(ALICE, TOPIC))
    net.fault("blocks", on=False)
    top = net.height()
    assert net.fault("rewind", blocks=top - found.height + 5)["height"] == found.height - 5
    assert net.height() == found.height - 5
    status = net.get("status")["result"]["sync_info"]
    assert status["latest_block_height"] == str(found.height - 5)
    assert refusal(lambda: grpc_block(net, top))[0] == "INVALID_ARGUMENT"
    assert "error" in net.get(f"block_results?height={top}")
    assert net.find_hash(found.txhash.decode()) is None
    assert refusal(lambda: balance(net, top))[0] == "UNKNOWN"
    net.fault("blocks", make=top - found.height + 4)
    assert net.height() == top - 1
    net.fault("blocks", make=1)
    assert net.height() == 2 * top - found.height + 5
    net.fault("rewind", blocks=3)
    net.fault("rewind", blocks=0)
    assert net.height() == 2 * top - found.height + 5
    net.fault("blocks", on=True)


def test_restart_refuses_connections_then_starts_and_has_forgotten_the_mempool(net: Devnet) -> None:
    known = net.send(ALICE, TOPIC, timeout_ns=time.time_ns() + 300 * 10**9)
    net.included(known)
    assert net.broadcast(known).code == 19
    net.fault("blocks", on=False)
    lost = net.send(ALICE, TOPIC)
    assert net.broadcast(lost).code == 0
    net.fault("restart", seconds=0.3, starting_seconds=5)
    assert net.faults()["restart"] == "away"
    with pytest.raises(OSError, match="refused"):
        net.get("status")
    assert refusal(net.height)[0] == "UNAVAILABLE"
    eventually(lambda: True if net.faults()["restart"] == "starting" else None)

    # a channel that was refused waits before it tries again, so a new one asks
    with grpc.insecure_channel(net.grpc, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        ask = channel.unary_unary(TM + "GetLatestBlock", request_serializer=bytes, response_deserializer=bytes)
        status, text = refusal(lambda: ask(b"", timeout=20, wait_for_ready=True))
        assert (status, "code 26" in text) == ("UNKNOWN", True), text
    eventually(lambda: True if net.faults()["restart"] is None else None)
    # what waited is gone, and what was seen too: the chain itself remembers the timestamp
    eventually(lambda: True if answers(net) else None)
    assert net.broadcast(known).code == 18
    net.fault("blocks", make=2)
    assert net.find_hash(hashlib.sha256(lost).hexdigest().upper()) is None
    net.fault("blocks", on=True)
    assert net.included(lost).code == 0
