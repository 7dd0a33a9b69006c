"""The same node through clients that are not ours: cosmpy's, and one that is made of the node's own reflection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from cosmpy.aerial.client import LedgerClient
from cosmpy.aerial.config import NetworkConfig
from cosmpy.aerial.wallet import LocalWallet
from cosmpy.crypto.address import Address
from cosmpy.crypto.keypairs import PrivateKey
from node_world import Node, account, block_at, indexed, outcome, sender, signed
from reflected_client import Reflected

from gonka_trainer.chain.address import decode_address
from gonka_trainer.chain.attribution import MemoCarrier, block_records
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.transactions import send_message, tx_hash
from gonka_trainer.round.records import Commit, to_text
from gonka_trainer.types import Digest, Height, sha256

D = Digest(bytes(range(32)))


@pytest.fixture
def ledger(node: Node) -> LedgerClient:
    scheme, _, host = node.grpc.rpartition("://")
    config = NetworkConfig(
        chain_id=node.chain_id,
        url=f"grpc+{scheme or 'http'}://{host}",
        fee_minimum_gas_price=float(node.gas_price),
        fee_denomination=node.denom,
        staking_denomination=node.denom,
    )
    return LedgerClient(config, query_interval_secs=1, query_timeout_secs=90)


def wallet(node: Node, index: int) -> LocalWallet:
    return LocalWallet(PrivateKey(node.secrets[index]), prefix=node.prefix)


def test_cosmpy_asks_what_we_ask(node: Node, ledger: LedgerClient) -> None:
    own = wallet(node, 1).address()
    assert str(own) == node.text(node.key(1))
    assert ledger.query_chain_id() == node.chain_id
    assert ledger.query_bank_balance(own) == node.balance(str(own))
    assert ledger.query_latest_block().height > 0
    assert ledger.query_account(own).address == own


async def test_cosmpys_record_is_read_by_us(node: Node, chain: ChainClient, ledger: LedgerClient) -> None:
    node.need("sends", "index")
    topic = node.topic()
    own = wallet(node, 1)

    def send() -> tuple[int, str]:
        sent = ledger.send_tokens(Address(topic), 7, node.denom, own, memo=to_text(Commit(3, D)))
        sent.wait_to_complete()
        assert sent.response is not None
        return int(sent.response.height), str(sent.response.hash)

    height, digest = await asyncio.to_thread(send)
    block = await block_at(node, chain, height)
    (found,) = block_records(block, MemoCarrier(decode_address(topic, node.prefix), node.prefix))
    assert (found.author, found.record) == (node.key(1).address, Commit(3, D))
    assert digest in {tx_hash(raw) for raw in block.transactions}
    assert node.balance(topic) == 7


async def test_our_transaction_is_read_by_cosmpy(
    node: Node, chain: ChainClient, ledger: LedgerClient, tmp_path: Path
) -> None:
    key, topic = await account(node, chain, tmp_path), node.topic()
    message = send_message(node.text(key), topic, 2, node.denom)
    ours = sender(node, chain, key, tmp_path / "sent")
    receipt, _ = await ours.deliver(sha256(b"ours"), [message], b"by us")
    found = await asyncio.to_thread(ledger.wait_for_query_tx, receipt.tx_hash)
    assert (found.height, found.code, found.gas_used) == (receipt.height, 0, receipt.gas_used)
    assert found.events["transfer"]["recipient"] == topic
    assert ledger.query_bank_balance(Address(topic), node.denom) == 2


async def test_cosmpy_sees_what_failed(node: Node, chain: ChainClient, ledger: LedgerClient) -> None:
    node.need("index")
    message = send_message(node.text(node.key(1)), node.topic(), 10**30, node.denom)
    pending = await signed(node, chain, node.key(1), [message])
    assert (await chain.tx.broadcast(pending.transaction)).code == 0
    included = await outcome(node, chain, pending)
    await indexed(node, chain, pending.transaction)
    found = await asyncio.to_thread(ledger.query_tx, tx_hash(pending.transaction))
    assert (found.code, found.height) == (5, included.height)


# -- a client made of what the node says of itself ---------------------------------------------------------------------


@pytest.fixture
def reflected(node: Node) -> Reflected:
    made = Reflected(node.channel)
    try:
        made.services()
    except grpc.RpcError as error:
        pytest.skip(f"the node serves no standard reflection (v1alpha): {error}")
    return made


def test_the_node_lists_its_services(node: Node, reflected: Reflected) -> None:
    served = reflected.services()
    assert {"cosmos.bank.v1beta1.Query", "cosmos.tx.v1beta1.Service", "cosmos.auth.v1beta1.Query"} <= served
    assert ("inference.inference.Query" in served) or "epochs" in node.missing


def test_a_balance_by_reflection(node: Node, reflected: Reflected) -> None:
    own = node.text(node.key(1))
    answer = reflected.call("cosmos.bank.v1beta1.Query", "Balance", address=own, denom=node.denom)
    assert answer["balance"] == {"denom": node.denom, "amount": str(node.balance(own))}
    with pytest.raises(grpc.RpcError):
        reflected.call("cosmos.bank.v1beta1.Query", "Balance", address="xyz", denom=node.denom)
    with pytest.raises(LookupError):
        reflected.call("no.such.Service", "Thing")


async def test_our_records_transaction_by_reflection(
    node: Node, chain: ChainClient, reflected: Reflected, tmp_path: Path
) -> None:
    node.need("index")
    key, topic = await account(node, chain, tmp_path), node.topic()
    ours = sender(node, chain, key, tmp_path / "sent")
    message = send_message(node.text(key), topic, 1, node.denom)
    receipt, _ = await ours.deliver(sha256(b"reflected"), [message], to_text(Commit(4, D)).encode())
    block = await block_at(node, chain, receipt.height)
    (raw,) = [tx for tx in block.transactions if tx_hash(tx) == receipt.tx_hash]
    await indexed(node, chain, raw)
    answer = await asyncio.to_thread(reflected.call, "cosmos.tx.v1beta1.Service", "GetTx", hash=receipt.tx_hash)
    assert int(answer["tx_response"]["height"]) == receipt.height
    body = answer["tx"]["body"]
    assert (body["memo"], body["unordered"]) == (to_text(Commit(4, D)), True)


async def test_epochs_by_reflection(node: Node, chain: ChainClient, reflected: Reflected) -> None:
    node.need("epochs")
    answer = reflected.call("inference.inference.Query", "EpochInfo")
    environment = await chain.environment(Height(int(answer["block_height"])))
    length = int(answer["params"]["epoch_params"]["epoch_length"])
    assert environment.schedule.epoch_length_blocks == length
