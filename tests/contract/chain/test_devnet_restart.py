from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cosmpy.protos.cosmos.bank.v1beta1 import query_pb2 as bank
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from devnet_process import TM, Devnet, devnet, eventually, golden_key, topic_address

TOPIC = topic_address("restart")
ALICE = golden_key("alice")


def balance(net: Devnet, address: str, height: int = 0) -> int:
    metadata = (("x-cosmos-block-height", str(height)),) if height else ()
    request = bank.QueryBalanceRequest(address=address, denom="ngonka")
    raw = net.call("/cosmos.bank.v1beta1.Query/Balance", request, metadata)
    return int(bank.QueryBalanceResponse.FromString(raw).balance.amount)


def block_bytes(net: Devnet, height: int) -> bytes:
    return net.call(TM + "GetBlockByHeight", tendermint.GetBlockByHeightRequest(height=height))


def test_stopped_chain_goes_on_at_the_next_height(tmp_path: Path) -> None:
    with devnet(tmp_path) as net:
        ordered = net.send(ALICE, TOPIC, 5)
        found = net.included(ordered)
        unordered = net.send(ALICE, TOPIC, 2, timeout_ns=time.time_ns() + 300 * 10**9)
        net.included(unordered)
        block = block_bytes(net, found.height)
        assert net.stop() == 0
    with devnet(tmp_path) as net:
        newest = net.height()
        assert block_bytes(net, found.height) == block
        assert balance(net, TOPIC) == 7
        assert balance(net, TOPIC, found.height) == 5
        assert balance(net, TOPIC, found.height - 1) == 0
        assert net.find(ordered) == found
        assert net.broadcast(ordered).code == 32
        assert net.broadcast(unordered).code == 18
        assert net.included(net.send(ALICE, TOPIC)).code == 0
        assert net.height() > newest


def test_killed_chain_has_whole_blocks_and_goes_on(tmp_path: Path) -> None:
    for generation in range(2):
        with devnet(tmp_path, block_seconds=0.05) as net:
            sent = [net.send(ALICE, TOPIC, timeout_ns=time.time_ns() + 300 * 10**9 + place) for place in range(20)]
            assert [net.broadcast(raw).code for raw in sent] == [0] * 20
            eventually(lambda net=net, first=sent[0]: net.find(first))
            net.kill()
        with devnet(tmp_path, block_seconds=0.05) as net:
            newest = net.next_block()
            for height in range(2, newest + 1):
                check_link(net, height)
            # every transaction of a block on disk is in the index again, and what it moved is there, once
            paid = sum(1 for raw in all_txs(net) if eventually(lambda net=net, raw=raw: net.find(raw)).code == 0)
            assert balance(net, TOPIC) == paid >= generation + 1


def check_link(net: Devnet, height: int) -> None:
    before, after = (
        tendermint.GetBlockByHeightResponse.FromString(block_bytes(net, at)) for at in (height - 1, height)
    )
    assert after.block.header.last_block_id == before.block_id


def all_txs(net: Devnet) -> list[bytes]:
    found = []
    for height in range(1, net.height() + 1):
        found += tendermint.GetBlockByHeightResponse.FromString(block_bytes(net, height)).block.data.txs
    assert len({hashlib.sha256(raw).digest() for raw in found}) == len(found)
    return list(found)


def test_another_chain_id_is_refused(tmp_path: Path) -> None:
    import subprocess
    import sys

    with devnet(tmp_path) as net:
        assert net.stop() == 0
    command = [
        sys.executable,
        "-m",
        "gonka_devnet",
        "--home",
        str(tmp_path),
        "--chain-id",
        "other",
        "--grpc",
        "127.0.0.1:0",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "the home belongs to chain gonka-devnet, not to other" in ended.stderr


@pytest.mark.parametrize("door", ["--grpc", "--rpc"])
def test_a_taken_port_is_said_in_one_line(tmp_path: Path, door: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        doors = {"--grpc": "127.0.0.1:0", "--rpc": "127.0.0.1:0", door: f"127.0.0.1:{taken.getsockname()[1]}"}
        flags = [word for pair in doors.items() for word in pair]
        ended = subprocess.run(
            [sys.executable, "-m", "gonka_devnet", "--home", str(tmp_path), *flags],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 1
    assert doors[door].rpartition(":")[2] in ended.stderr
    assert "Traceback" not in ended.stderr
