"""A transaction's whole life at every node: simulation, CheckTx, the block, and what the same bytes do again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import pytest
from cosmpy.protos.cosmos.tx.v1beta1 import service_pb2 as tx_service
from node_world import (
    GAS,
    TX,
    Node,
    account,
    block_at,
    code_of,
    indexed,
    ordering,
    outcome,
    put,
    sender,
    signed,
    signer,
)

from gonka_trainer._pb.gonka_trainer.chain.v1 import tx_pb2
from gonka_trainer.chain import keys
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.refusals import Refusal, expected_sequence
from gonka_trainer.chain.transactions import Fee, Message, Ordering, Signer, build, send_message
from gonka_trainer.chain.transport import NodeAnswerError
from gonka_trainer.chain.watcher import Watcher
from gonka_trainer.types import sha256

Change = Callable[[Node, "Parts"], bytes]


class Parts:
    """What a good transaction of the second key is made of."""

    def __init__(self, node: Node, message: Message, fee: Fee, order: Ordering, sequence: int, who: Signer) -> None:
        self.node, self.message, self.fee, self.order, self.who = node, message, fee, order, who
        self.ordered = Ordering(sequence=sequence)

    def built(self, **changes: Any) -> bytes:
        """The transaction, changed."""
        messages = changes.get("messages", [self.message])
        order, who = changes.get("order", self.order), changes.get("who", self.who)
        return build(messages, changes.get("memo", b""), changes.get("fee", self.fee), order, who)

    def resigned(self, **fields: Any) -> bytes:
        """The transaction with other raw fields."""
        raw = tx_pb2.TxRaw.FromString(self.built())
        return tx_pb2.TxRaw(
            body_bytes=fields.get("body_bytes", raw.body_bytes),
            auth_info_bytes=fields.get("auth_info_bytes", raw.auth_info_bytes),
            signatures=fields.get("signatures", raw.signatures),
        ).SerializeToString()


async def parts(node: Node, chain: ChainClient) -> Parts:
    key = node.key(1)
    message = send_message(node.text(key), node.topic(), 1, node.denom)
    sequence = (await chain.tx.account(key.address)).sequence
    return Parts(node, message, node.fee(GAS), await ordering(chain), sequence, await signer(chain, key))


def tampered(_: Node, p: Parts) -> bytes:
    signature = tx_pb2.TxRaw.FromString(p.built()).signatures[0]
    return p.resigned(signatures=[signature[:-1] + bytes([signature[-1] ^ 1])])


def high_s(_: Node, p: Parts) -> bytes:
    signature = tx_pb2.TxRaw.FromString(p.built()).signatures[0]
    s = keys._ORDER - int.from_bytes(signature[32:], "big")
    return p.resigned(signatures=[signature[:32] + s.to_bytes(32, "big")])


def unknown_field(_: Node, p: Parts) -> bytes:
    return p.built(messages=[Message(p.message.type_url, p.message.value + b"\xf8?\x01")])


def without_timestamp(_: Node, p: Parts) -> bytes:
    body = tx_pb2.TxBody.FromString(tx_pb2.TxRaw.FromString(p.built()).body_bytes)
    body.ClearField("timeout_timestamp")
    return p.resigned(body_bytes=body.SerializeToString())


def with_sequence(_: Node, p: Parts) -> bytes:
    auth = tx_pb2.AuthInfo.FromString(tx_pb2.TxRaw.FromString(p.built()).auth_info_bytes)
    auth.signer_infos[0].sequence = 7
    return p.resigned(auth_info_bytes=auth.SerializeToString())


def of_another(n: Node, p: Parts) -> bytes:
    return p.built(messages=[send_message(n.text(n.key(0)), n.topic(), 1, n.denom)])


def moved(p: Parts, seconds: int) -> Ordering:
    return replace(p.order, timeout_ns=p.order.timeout_ns + seconds * 10**9)


REFUSED: dict[str, tuple[str, int, Change]] = {
    "bad signature": ("sdk", 4, tampered),
    "high s": ("sdk", 4, high_s),
    "chain id": ("sdk", 4, lambda _, p: p.built(who=replace(p.who, chain_id="other-1"))),
    "account number": ("sdk", 4, lambda _, p: p.built(who=replace(p.who, account_number=p.who.account_number + 1))),
    "sequence too high": ("sdk", 32, lambda _, p: p.built(order=Ordering(sequence=p.ordered.sequence + 5))),
    "no signature": ("sdk", 15, lambda _, p: p.resigned(signatures=[])),
    "no messages": ("sdk", 18, lambda _, p: p.built(messages=[])),
    "not the signer": (
        "sdk",
        8,
        lambda n, p: p.built(messages=[send_message(n.text(n.key(0)), n.topic(), 1, n.denom)]),
    ),
    "memo of 257 bytes": ("sdk", 12, lambda _, p: p.built(memo=b"x" * 257)),
    "memo of 129 letters": ("sdk", 12, lambda _, p: p.built(memo="é".encode() * 129)),
    "unknown type": ("sdk", 2, lambda _, p: p.built(messages=[Message(b"/no.such.Msg", b"")])),
    "unknown field": ("sdk", 2, unknown_field),
    "bytes": ("sdk", 2, lambda _, p: b"\x01\x02\x03"),
    "gas": ("sdk", 11, lambda n, p: p.built(fee=n.fee(1000))),
    "fee over balance": ("sdk", 5, lambda n, p: p.built(fee=n.fee(GAS, 10**30))),
    "unknown denomination": ("sdk", 5, lambda n, p: p.built(fee=Fee(GAS, 5, "nosuch"))),
    "height past": ("sdk", 30, lambda _, p: p.built(order=Ordering(p.ordered.sequence, timeout_height=1))),
    "unordered, past": ("sdk", 42, lambda _, p: p.built(order=moved(p, -120))),
    "unordered, eleven minutes": ("sdk", 18, lambda _, p: p.built(order=moved(p, 600))),
    "unordered, no timestamp": ("sdk", 18, without_timestamp),
    "unordered, with sequence": ("sdk", 18, with_sequence),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_checktx_refuses(node: Node, chain: ChainClient, name: str) -> None:
    codespace, code, change = REFUSED[name]
    if name == "unknown denomination":
        node.need("free")
    answer = await chain.tx.broadcast(change(node, await parts(node, chain)))
    assert (answer.codespace, answer.code) == (codespace, code), answer.log
    if name.startswith("sequence"):
        assert expected_sequence(Refusal(codespace, code, answer.log)) is not None


async def test_no_bytes_at_all(node: Node, chain: ChainClient) -> None:
    with pytest.raises(NodeAnswerError) as caught:
        await chain.tx.broadcast(b"")
    assert caught.value.status is grpc.StatusCode.INVALID_ARGUMENT


async def test_too_low_a_fee_says_what_is_required(node: Node, chain: ChainClient) -> None:
    node.need("price")
    good = await parts(node, chain)
    for amount in (0, int(GAS * node.gas_price) - 1):
        answer = await chain.tx.broadcast(good.built(fee=node.fee(GAS, amount)))
        assert (answer.codespace, answer.code) == ("sdk", 13)
        assert b"required: " in answer.log


async def test_no_fee_where_none_is_asked(node: Node, chain: ChainClient) -> None:
    node.need("free", "sends")
    key, topic = node.key(1), node.topic()
    before = node.balance(node.text(key))
    included = await put(node, chain, key, [send_message(node.text(key), topic, 3, node.denom)], fee=node.fee(GAS, 0))
    assert included.result.code == 0
    assert node.balance(node.text(key)) == before - 3


FAILING: dict[str, tuple[int, Callable[[Node, str], list[Message]]]] = {
    "no funds": (5, lambda n, own: [send_message(own, n.topic(), 10**30, n.denom)]),
    "bad recipient": (7, lambda n, own: [send_message(own, "xyz", 1, n.denom)]),
    "nothing": (10, lambda n, own: [send_message(own, n.topic(), 0, n.denom)]),
}


@pytest.mark.parametrize("name", FAILING)
async def test_what_checktx_lets_pass_and_the_block_fails(node: Node, chain: ChainClient, name: str) -> None:
    code, messages = FAILING[name]
    own = node.text(node.key(1))
    included = await put(node, chain, node.key(1), messages(node, own))
    assert (included.result.codespace, included.result.code) == ("sdk", code)
    assert included.result.log.startswith(b"failed to execute message; message index: 0")


async def test_all_of_it_or_nothing(node: Node, chain: ChainClient) -> None:
    own, topic = node.text(node.key(1)), node.topic()
    both = [send_message(own, topic, 1, node.denom), send_message(own, topic, 10**30, node.denom)]
    included = await put(node, chain, node.key(1), both)
    assert included.result.code == 5
    assert included.result.log.startswith(b"failed to execute message; message index: 1")
    assert node.balance(topic) == 0


async def test_a_failed_one_pays_its_fee(node: Node, chain: ChainClient) -> None:
    own = node.text(node.key(1))
    before = node.balance(own)
    failing = [send_message(own, node.topic(), 10**30, node.denom)]
    assert (await put(node, chain, node.key(1), failing, fee=node.fee(GAS, 200_000))).result.code == 5
    assert node.balance(own) == before - 200_000


async def test_simulation(node: Node, chain: ChainClient) -> None:
    node.need("sends")
    good = await parts(node, chain)
    gas = await chain.tx.simulate(good.built())
    assert 20_000 < gas < GAS
    assert abs(await chain.tx.simulate(good.resigned(signatures=[b""])) - gas) < 2000
    assert await chain.tx.simulate(good.built(memo=b"x" * 256)) > gas
    for change, phrase in (
        (good.built(order=Ordering(sequence=good.ordered.sequence + 90)), "incorrect account sequence"),
        (good.built(memo=b"x" * 257), "memo too large"),
        (good.built(messages=[Message(b"/no.such.Msg", b"")]), "unable to resolve type URL"),
        (good.resigned(signatures=[]), "no signatures supplied"),
        (FAILING["no funds"][1](node, node.text(node.key(1))), "insufficient funds"),
    ):
        raw = change if isinstance(change, bytes) else good.built(messages=change)
        with pytest.raises(NodeAnswerError, match=phrase):
            await chain.tx.simulate(raw)


async def test_out_of_gas_in_the_message(node: Node, chain: ChainClient) -> None:
    node.need("sends")
    own, topic = node.text(node.key(1)), node.topic()
    gas = await chain.tx.simulate((await parts(node, chain)).built())
    short = await put(node, chain, node.key(1), [send_message(own, topic, 1, node.denom)], fee=node.fee(gas - 8000))
    assert (short.result.codespace, short.result.code) == ("sdk", 11)
    assert node.balance(topic) == 0


async def test_the_same_bytes_again(node: Node, chain: ChainClient) -> None:
    node.need("sends")
    key, topic = node.key(1), node.topic()
    pending = await signed(node, chain, key, [send_message(node.text(key), topic, 1, node.denom)])
    assert (await chain.tx.broadcast(pending.transaction)).code == 0
    assert (await chain.tx.broadcast(pending.transaction)).code in {18, 19}
    included = await outcome(node, chain, pending)
    again = await chain.tx.broadcast(pending.transaction)
    assert again.code == 19 or (again.code == 18 and b"already used timeout" in again.log)
    await block_at(node, chain, included.height + 2)
    assert node.balance(topic) == 1


async def test_a_timestamp_serves_one_transaction_of_a_signer(node: Node, chain: ChainClient) -> None:
    node.need("sends")
    key, topic = node.key(1), node.topic()
    before = await chain.tx.account(key.address)
    message, order = send_message(node.text(key), topic, 1, node.denom), await ordering(chain)
    first = await signed(node, chain, key, [message], order=order)
    assert (await chain.tx.broadcast(first.transaction)).code == 0
    other = await signed(node, chain, key, [message], b"other", order=order)
    answer = await chain.tx.broadcast(other.transaction)
    assert (answer.codespace, answer.code) == ("sdk", 18)
    assert b"already used timeout" in answer.log
    assert (await outcome(node, chain, first)).result.code == 0
    next_one = await signed(node, chain, key, [message], order=replace(order, timeout_ns=order.timeout_ns + 1))
    assert (await chain.tx.broadcast(next_one.transaction)).code == 0
    assert (await outcome(node, chain, next_one)).result.code == 0
    third = await signed(node, chain, node.key(0), [send_message(node.text(node.key(0)), topic, 1, node.denom)])
    assert (await chain.tx.broadcast(third.transaction)).code == 0
    assert await chain.tx.account(key.address) == before, "an unordered one leaves the sequence as it was"


async def test_ordered_ones_count_while_they_wait(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    key = await account(node, chain, tmp_path)
    message = send_message(node.text(key), node.topic(), 1, node.denom)
    start = (await chain.tx.account(key.address)).sequence
    two = [await signed(node, chain, key, [message], order=Ordering(sequence=start + step)) for step in (0, 1)]
    for pending in two:
        assert (await chain.tx.broadcast(pending.transaction)).code == 0
    low = await signed(node, chain, key, [message], b"low", order=Ordering(sequence=start))
    answer = await chain.tx.broadcast(low.transaction)
    assert answer.code == 32
    assert expected_sequence(Refusal("sdk", 32, answer.log)) == start + 2
    for pending in two:
        assert (await outcome(node, chain, pending)).result.code == 0
    assert (await chain.tx.account(key.address)).sequence == start + 2


async def test_a_timeout_height_ahead(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    key = await account(node, chain, tmp_path)
    order = Ordering((await chain.tx.account(key.address)).sequence, (await chain.info()).height + 30)
    message = send_message(node.text(key), node.topic(), 1, node.denom)
    assert (await put(node, chain, key, [message], order=order)).result.code == 0


@pytest.mark.parametrize("memo", [b"", b"\xff\xfe", b"\x00", b"\xff" * 256, b"\x1b[2J\r\n", "é".encode() * 128])
async def test_memos_of_any_bytes(node: Node, chain: ChainClient, memo: bytes) -> None:
    node.need("sends")
    key = node.key(1)
    pending = await signed(node, chain, key, [send_message(node.text(key), node.topic(), 1, node.denom)], memo)
    assert (await chain.tx.broadcast(pending.transaction)).code == 0
    included = await outcome(node, chain, pending)
    assert included.result.code == 0
    block = await block_at(node, chain, included.height)
    (raw,) = [tx for tx in block.transactions if tx == pending.transaction]
    assert tx_pb2.TxBody.FromString(tx_pb2.TxRaw.FromString(raw).body_bytes).memo == memo
    if "index" not in node.missing:
        assert (await indexed(node, chain, raw)).height == included.height


async def test_a_log_with_raw_bytes_is_survived(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    """A missing fee grant's log has the raw bytes of two addresses."""
    key = await account(node, chain, tmp_path)
    fee = replace(node.fee(GAS, max(1, node.fee(GAS).amount)), granter=node.text(node.key(1)))
    send = [send_message(node.text(key), node.topic(), 1, node.denom)]
    answer = await chain.tx.broadcast((await signed(node, chain, key, send, fee=fee)).transaction)
    assert (answer.codespace, answer.code) == ("sdk", 38)
    assert b"does not allow to pay fees" in answer.log


def test_other_ways_to_broadcast(node: Node) -> None:
    for mode in (tx_service.BROADCAST_MODE_UNSPECIFIED, tx_service.BROADCAST_MODE_BLOCK):
        with pytest.raises(grpc.RpcError) as caught:
            node.call(TX + "BroadcastTx", tx_service.BroadcastTxRequest(tx_bytes=b"\x01", mode=mode))
        assert "unsupported return type" in code_of(caught)[1]
    asynchronous = tx_service.BroadcastTxRequest(tx_bytes=b"\x01", mode=tx_service.BROADCAST_MODE_ASYNC)
    answer = tx_service.BroadcastTxResponse.FromString(node.call(TX + "BroadcastTx", asynchronous))
    assert answer.tx_response.code == 0, "it does not wait for CheckTx"


@pytest.mark.parametrize("ordered", [False, True])
async def test_our_sender(node: Node, chain: ChainClient, tmp_path: Path, ordered: bool) -> None:
    key, topic = await account(node, chain, tmp_path), node.topic()
    alike = sender(node, chain, key, tmp_path / "sent", ordered=ordered, gas_factor=1.4)
    before = node.balance(node.text(key))
    message = send_message(node.text(key), topic, 1, node.denom)
    sent = (alike.deliver(sha256(bytes([step])), [message], bytes([step])) for step in range(5))
    receipts = [receipt for receipt, _ in await asyncio.wait_for(asyncio.gather(*sent), 120)]
    assert len({receipt.tx_hash for receipt in receipts}) == 5
    await block_at(node, chain, max(receipt.height for receipt in receipts) + 1)
    assert node.balance(topic) == 5
    assert node.balance(node.text(key)) == before - 5 - sum(receipt.fee for receipt in receipts)
    assert not list((tmp_path / "sent").iterdir())


async def test_a_receipt_has_the_fees_of_failed_tries_too(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    """What a run may cost is counted by receipts: one that ran out of gas in its block has paid as well."""
    price = max(node.gas_price, Decimal("0.5"))
    key = await account(node, chain, tmp_path, int(100 * GAS * price))
    before, message = node.balance(node.text(key)), send_message(node.text(key), node.topic(), 1, node.denom)
    mean = sender(node, chain, key, tmp_path / "sent", gas_price=price, gas_factor=0.9, fee_cap=10**12)
    receipt, _ = await asyncio.wait_for(mean.deliver(sha256(b"mean"), [message]), 120)
    await block_at(node, chain, receipt.height + 1)
    first = math.ceil(price * int(receipt.gas_used * 0.8))
    assert receipt.fee > 2 * first, "it was sent twice"
    assert node.balance(node.text(key)) == before - 1 - receipt.fee


async def test_what_is_simulated_cannot_be_sent(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    """A node is asked what it costs before the fee cap is looked at: what it is given for that must be of no use."""
    key, answers = await account(node, chain, tmp_path), []
    ask = chain.tx.simulate

    async def keep(transaction: bytes) -> int:
        gas = await ask(transaction)
        answers.append(await chain.tx.broadcast(transaction))
        return gas

    chain.tx.simulate = keep  # type: ignore[method-assign]
    message = send_message(node.text(key), node.topic(), 1, node.denom)
    await sender(node, chain, key, tmp_path / "sent").deliver(sha256(b"simulated"), [message])
    assert [(answer.codespace, answer.code) for answer in answers] == [("sdk", 4)]


async def test_one_that_timed_out_is_in_no_block(node: Node, chain: ChainClient) -> None:
    node.need("sends")
    key, topic = node.key(1), node.topic()
    order = await ordering(chain, ahead_ns=1)
    pending = await signed(node, chain, key, [send_message(node.text(key), topic, 1, node.denom)], order=order)
    await block_at(node, chain, (await chain.info()).height + 1)
    answer = await chain.tx.broadcast(pending.transaction)
    assert (answer.codespace, answer.code) in {("sdk", 42), ("sdk", 18)}
    assert await Watcher(chain, node.poll_seconds).outcome(pending) is None
    assert node.balance(topic) == 0
