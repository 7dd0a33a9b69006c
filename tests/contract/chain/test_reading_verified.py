"""A node that is not one's own, changed on its way: each change is refused, and what is unchanged is read."""

from __future__ import annotations

import base64
import copy
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devnet_process import Devnet, devnet, golden_key, topic_address
from reading_proxy import Alter, reader, rpc_proxy

from gonka_trainer.chain.transport import NotYetError
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.types import Height

ALICE = golden_key("alice")


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    """A devnet that stands still at a height above 10, with transactions of codes 0 and 5 in one block."""
    with devnet(tmp_path_factory.mktemp("still") / "home", block_seconds=0.1) as running:
        running.fault("blocks", on=False)
        topic = topic_address("verified")
        sequence = running.account(ALICE.address()).sequence
        for place, amount in enumerate((1, 10**30)):
            sent = running.send(ALICE, topic, amount, sequence=sequence + place)
            assert running.broadcast(sent).code == 0
        running.fault("blocks", make=10)
        yield running


def block_with_transactions(net: Devnet) -> int:
    for height in range(1, net.height() + 1):
        if net.get(f"block?height={height}")["result"]["block"]["data"]["txs"]:
            return height
    raise AssertionError("no block has transactions")


async def test_what_is_unchanged_is_read_one_block_behind(net: Devnet) -> None:
    tip, height = net.height(), block_with_transactions(net)
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url, verify=True) as client:
        assert (await client.info()).height == tip - 1
        blocks = [await client.block(Height(h)) for h in range(1, tip)]
        assert [result.code for result in blocks[height - 1].results] == [0, 5]
        with pytest.raises(NotYetError):
            await client.block(Height(tip))
    assert any(asked.startswith("commit") for asked in proxy.asked)


def at(height: int, method: str, change: Any) -> Alter:
    """Change the result of one method at one height."""

    def alter(asked: str, asked_height: int, result: Any) -> Any:
        if (asked, asked_height) == (method, height):
            result = copy.deepcopy(result)
            change(result)
        return result

    return alter


def transaction_byte(result: Any) -> None:
    raw = bytearray(base64.b64decode(result["block"]["data"]["txs"][0]))
    raw[10] ^= 1
    result["block"]["data"]["txs"][0] = base64.b64encode(raw).decode()


def swap_transactions(result: Any) -> None:
    result["block"]["data"]["txs"].reverse()


def app_hash(result: Any) -> None:
    result["block"]["header"]["app_hash"] = "11" * 32


def signed_app_hash(result: Any) -> None:
    result["signed_header"]["header"]["app_hash"] = "11" * 32


def result_code(result: Any) -> None:
    result["txs_results"][1]["code"] = 0


def result_data(result: Any) -> None:
    result["txs_results"][0]["data"] = base64.b64encode(b"other").decode()


def a_number_out_of_range(result: Any) -> None:
    result["txs_results"][0]["code"] = 2**40


def signature(result: Any) -> None:
    raw = bytearray(base64.b64decode(result["signed_header"]["commit"]["signatures"][0]["signature"]))
    raw[0] ^= 1
    result["signed_header"]["commit"]["signatures"][0]["signature"] = base64.b64encode(raw).decode()


def no_signature(result: Any) -> None:
    result["signed_header"]["commit"]["signatures"][0]["block_id_flag"] = 1


def no_commit(result: Any) -> None:
    result["signed_header"]["commit"] = None


def other_block_id(result: Any) -> None:
    result["block_id"]["hash"] = "22" * 32


@pytest.mark.parametrize(
    ("method", "offset", "change", "text"),
    [
        ("block", 0, transaction_byte, "transactions of block 1?\\d do not hash to its data_hash"),
        ("block", 0, swap_transactions, "do not hash to its data_hash"),
        ("block", 0, app_hash, "header of block 1?\\d does not hash to the block's hash"),
        ("block", 0, other_block_id, "header of block 1?\\d does not hash to the block's hash"),
        ("block_results", 0, result_code, "results of block 1?\\d do not hash to the next header's last_results_hash"),
        ("block_results", 0, result_data, "do not hash to the next header's last_results_hash"),
        ("block_results", 0, a_number_out_of_range, "a number out of its range"),
        ("commit", 1, signature, "signature of validator [0-9a-f]{40} over block 1?\\d is wrong"),
        ("commit", 1, no_signature, "signed by 0 of \\d+ of its validators' power: too little"),
        ("commit", 1, no_commit, "not a commit of CometBFT"),
        ("commit", 1, signed_app_hash, "commit of block 1?\\d is over another block than its header"),
    ],
)
async def test_each_change_is_refused(net: Devnet, method: str, offset: int, change: Any, text: str) -> None:
    height = block_with_transactions(net)
    first = max(height - 2, 1)
    async with (
        rpc_proxy(net.rpc, at(height + offset, method, change)) as proxy,
        reader(net, proxy.url, verify=True) as client,
    ):
        for before in range(first, height):
            await client.block(Height(before))
        with pytest.raises(ChainError, match=text) as caught:
            await client.block(Height(height))
        assert not isinstance(caught.value, ChainUnavailableError)
        assert proxy.url in caught.value.what
        assert caught.value.remedy


def drop(height: int) -> Alter:
    """Leave out a transaction and its result."""

    def alter(method: str, asked: int, result: Any) -> Any:
        if asked == height and method == "block":
            del result["block"]["data"]["txs"][1]
        if asked == height and method == "block_results":
            del result["txs_results"][1]
        return result

    return alter


async def test_a_transaction_left_out(net: Devnet) -> None:
    height = block_with_transactions(net)
    async with rpc_proxy(net.rpc, drop(height)) as proxy, reader(net, proxy.url, verify=True) as client:
        with pytest.raises(ChainError, match="do not hash to its data_hash"):
            await client.block(Height(height))
    async with rpc_proxy(net.rpc, drop(height)) as proxy, reader(net, proxy.url) as client:
        assert len((await client.block(Height(height))).transactions) == 1  # so it is believed of one's own node


def usurper(method: str, _height: int, result: Any) -> Any:
    """Another validator of the same power."""
    if method == "validators":
        key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"usurper").digest())
        public = key.public_key().public_bytes_raw()
        result["validators"][0]["pub_key"]["value"] = base64.b64encode(public).decode()
    return result


async def test_other_validators(net: Devnet) -> None:
    async with rpc_proxy(net.rpc, usurper) as proxy, reader(net, proxy.url, verify=True) as client:
        with pytest.raises(ChainError, match="validators of block 4 do not hash to its validators_hash"):
            await client.block(Height(3))


async def test_another_history_of_the_same_validator(net: Devnet) -> None:
    """The validator signs two histories: what was read before decides, and two nodes contradict each other."""
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url, verify=True) as client:
        await client.block(Height(4))
        net.fault("fork", height=4)
        try:
            with pytest.raises(ChainError, match=r"does not follow|the chain was reset|another than the one"):
                await client.block(Height(5))
        finally:
            net.fault("fork", height=0)
