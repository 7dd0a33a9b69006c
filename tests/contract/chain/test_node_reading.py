"""What every node must answer about itself, accounts, blocks and state at a height."""

from __future__ import annotations

import hashlib
import itertools
import json
import secrets
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from cosmpy.protos.cosmos.bank.v1beta1 import query_pb2 as bank
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from node_world import BANK, TM, TRAINING, Node, account, block_at, code_of, put, sender

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.transactions import send_message
from gonka_trainer.chain.transport import NotYetError
from gonka_trainer.errors import ChainError
from gonka_trainer.types import Height, sha256

SERVICE = TM + "tendermint.v1beta1.Service/"
FAR = 10_000_000


def rpc(node: Node, path: str) -> Any:
    with urllib.request.urlopen(f"{node.rpc}/{path}", timeout=30) as answer:
        return json.loads(answer.read())["result"]


async def test_both_doors_tell_of_one_chain(node: Node, chain: ChainClient) -> None:
    info = await chain.info()
    assert info.chain_id == node.chain_id == rpc(node, "status")["node_info"]["network"]
    assert not info.syncing
    assert 1 <= info.earliest_height <= info.height
    assert info.version
    latest = tendermint.GetLatestBlockResponse.FromString(node.call(SERVICE + "GetLatestBlock"))
    assert latest.block.header.height >= info.height
    assert info.training_module == ("training" not in node.missing)
    assert not tendermint.GetSyncingResponse.FromString(node.call(SERVICE + "GetSyncing")).syncing


async def test_accounts(node: Node, chain: ChainClient) -> None:
    first, second = [await chain.tx.account(node.key(index).address) for index in (0, 1)]
    assert first.number != second.number
    assert await chain.tx.balance(node.key(0).address, node.denom) == node.balance(node.text(node.key(0))) > 0
    assert await chain.tx.balance(node.key(0).address, "nosuchdenom") == 0
    stranger = AccountKey.from_bytes(secrets.token_bytes(32))
    with pytest.raises(ChainError, match="is not on chain") as caught:
        await chain.tx.account(stranger.address)
    assert encode_address(stranger.address, node.prefix) in caught.value.remedy
    assert await chain.tx.balance(stranger.address, node.denom) == 0


def test_addresses_that_are_none(node: Node) -> None:
    own = node.text(node.key(0))
    for address in ("", "xyz", own[:-1], own[:-1] + ("q" if own[-1] != "q" else "p"), own.upper().title()):
        with pytest.raises(grpc.RpcError) as caught:
            node.call(BANK + "Query/Balance", bank.QueryBalanceRequest(address=address, denom=node.denom))
        assert code_of(caught)[0] in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL}, address


async def test_a_block_has_its_transactions_and_their_results_by_position(
    node: Node, chain: ChainClient, tmp_path: Path
) -> None:
    node.need("sends")
    own, other = node.text(node.key(0)), node.topic()
    failing = send_message(own, other, 10**30, node.denom)
    bad = await put(node, chain, node.key(0), [failing])
    good, _ = await sender(node, chain, node.key(0), tmp_path).deliver(
        sha256(other.encode()), [send_message(own, other, 1, node.denom)]
    )
    for height, ok in ((bad.height, False), (good.height, True)):
        block = await block_at(node, chain, height)
        raw = tendermint.GetBlockByHeightResponse.FromString(
            node.call(SERVICE + "GetBlockByHeight", tendermint.GetBlockByHeightRequest(height=height))
        )
        assert list(block.transactions) == list(raw.block.data.txs)
        assert len(block.results) == len(block.transactions)
        assert block.block_hash == raw.block_id.hash
        assert any((result.code == 0) is ok for result in block.results)
    place = [hashlib.sha256(tx).hexdigest().upper() for tx in block.transactions].index(good.tx_hash)
    assert block.results[place].code == 0
    assert node.balance(other) == 1


async def test_blocks_form_a_chain_and_their_times_rise(node: Node, chain: ChainClient) -> None:
    tip = (await chain.info()).height
    blocks = [await block_at(node, chain, height) for height in range(max(1, tip - 3), tip + 2)]
    for former, block in itertools.pairwise(blocks):
        assert block.previous_hash == former.block_hash
        assert block.time_ns > former.time_ns


async def test_heights_that_are_not_there(node: Node, chain: ChainClient) -> None:
    tip = (await chain.info()).height
    with pytest.raises(NotYetError):
        await chain.block(Height(tip + FAR))
    request = bank.QueryBalanceRequest(address=node.text(node.key(0)), denom=node.denom)
    for height in (tip + FAR, -5):
        with pytest.raises(grpc.RpcError) as caught:
            node.call(BANK + "Query/Balance", request, height)
        assert code_of(caught)[0] is not grpc.StatusCode.UNAVAILABLE
    for height in (0, -1, tip + FAR):
        with pytest.raises(grpc.RpcError):
            node.call(SERVICE + "GetBlockByHeight", tendermint.GetBlockByHeightRequest(height=height))


async def test_state_at_a_height_is_that_of_the_height(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    receiver = await account(node, chain, tmp_path, 7)
    tip = (await chain.info()).height
    assert node.balance(node.text(receiver), tip) == 7
    await put(node, chain, node.key(0), [send_message(node.text(node.key(0)), node.text(receiver), 5, node.denom)])
    assert node.balance(node.text(receiver)) == 12
    assert node.balance(node.text(receiver), tip) == 7


@pytest.mark.parametrize("path", ["/no.such.Service/Thing", TRAINING + "NoSuchThing"])
def test_what_is_not_served(node: Node, path: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        node.call(path)
    status, text = code_of(caught)
    assert status is grpc.StatusCode.UNIMPLEMENTED
    assert "unknown" in text


def test_a_request_that_does_not_decode(node: Node) -> None:
    with pytest.raises(grpc.RpcError):
        node.call(SERVICE + "GetBlockByHeight", b"\xff\xff\xff")


async def test_epochs_and_weights(node: Node, chain: ChainClient) -> None:
    node.need("epochs")
    tip = (await chain.info()).height
    environment = await chain.environment(Height(tip - 1))
    assert environment == await chain.environment(Height(tip - 1))
    schedule = environment.schedule
    assert schedule.epoch_length_blocks > 0
    assert list(environment.weights) == sorted(environment.weights)
    assert all(weight > 0 for _, weight in environment.weights)
    assert (await chain.proof_of_compute()).height >= tip
    with pytest.raises(ChainError):
        await chain.environment(Height(tip + FAR))


async def test_a_chain_without_epochs_wants_no_gpus(node: Node, chain: ChainClient) -> None:
    if "epochs" not in node.missing:
        pytest.skip("the chain has epochs")
    tip = (await chain.info()).height
    assert (await chain.environment(tip)).weights == ()
