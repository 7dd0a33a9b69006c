from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from devnet_process import TM, TX, Devnet, devnet, eventually, golden_key, topic_address
from gonka_devnet._pb.wire import wire_pb2 as wire

ALICE, BOB = golden_key("alice"), golden_key("bob")


def txs_by_height(net: Devnet) -> dict[int, list[bytes]]:
    found = {}
    for height in range(1, net.height() + 1):
        raw = net.call(TM + "GetBlockByHeight", tendermint.GetBlockByHeightRequest(height=height))
        found[height] = list(tendermint.GetBlockByHeightResponse.FromString(raw).block.data.txs)
    return found


def search(net: Devnet, query: str, order: int, limit: int) -> list[str]:
    """All hashes that a search gives, page by page."""
    found: list[str] = []
    for page in range(1, 1000):
        asked = wire.GetTxsEventRequest(query=query.encode(), order_by=order, page=page, limit=limit)
        answer = wire.GetTxsEventResponse.FromString(net.call(TX + "GetTxsEvent", asked))
        found += [said.txhash.decode() for said in answer.tx_responses]
        if len(found) >= answer.total:
            return found
    raise AssertionError("more pages than there can be")


def burst(net: Devnet, topic: str, count: int) -> list[bytes]:
    """Send half of them ordered by one account, half unordered by another."""
    number, base = net.account(ALICE.address()).account_number, time.time_ns() + 300 * 10**9
    sequence, other = net.account(ALICE.address()).sequence, net.account(BOB.address()).account_number
    sent = []
    for place in range(count // 2):
        sent.append(net.send(ALICE, topic, sequence=sequence + place, number=number))
        sent.append(net.send(BOB, topic, timeout_ns=base + place, number=other))
    for raw in sent:
        assert net.broadcast(raw).code == 0
    for raw in sent:
        eventually(lambda raw=raw: net.find(raw), 120)
    return sent


def check_order(net: Devnet, topic: str, sent: list[bytes]) -> None:
    blocks = txs_by_height(net)
    order = [hashlib.sha256(raw).hexdigest().upper() for height in sorted(blocks) for raw in blocks[height]]
    wanted = {hashlib.sha256(raw).hexdigest().upper() for raw in sent}
    mine = [digest for digest in order if digest in wanted]
    assert len(mine) == len(sent)
    query = f"transfer.recipient='{topic}'"
    assert search(net, query, 1, 7 if len(sent) < 500 else 100) == mine
    assert search(net, query, 2, 100) == mine[::-1]


def test_search_gives_block_order(shared_devnet: Devnet) -> None:
    topic = topic_address("order")
    check_order(shared_devnet, topic, burst(shared_devnet, topic, 120))


@pytest.mark.slow
def test_thousands_of_transfers(tmp_path: Path) -> None:
    topic = topic_address("thousands")
    with devnet(tmp_path, block_seconds=0.5) as net:
        check_order(net, topic, burst(net, topic, 5000))
