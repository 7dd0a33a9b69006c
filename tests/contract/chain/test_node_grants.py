"""Acting and paying for another account: x/authz and x/feegrant, as our sender uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from cosmpy.protos.cosmos.authz.v1beta1 import query_pb2 as authz_query
from cosmpy.protos.cosmos.authz.v1beta1 import tx_pb2 as authz_tx
from cosmpy.protos.cosmos.authz.v1beta1.authz_pb2 import GenericAuthorization, Grant
from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import Coin
from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2 as allowances
from cosmpy.protos.cosmos.feegrant.v1beta1 import query_pb2 as feegrant_query
from cosmpy.protos.cosmos.feegrant.v1beta1 import tx_pb2 as feegrant_tx
from google.protobuf.any_pb2 import Any as WireAny
from google.protobuf.timestamp_pb2 import Timestamp
from node_world import GAS, Node, account, block_at, code_of, outcome, put, sender, signed

from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.transactions import EXEC_TYPE, SEND_TYPE, Message, exec_message, responses, send_message
from gonka_trainer.errors import ChainError
from gonka_trainer.types import sha256

AUTHZ, FEEGRANT = "/cosmos.authz.v1beta1.", "/cosmos.feegrant.v1beta1."
SECOND_NS = 10**9


def wire(type_url: str, message: Any) -> Message:
    return Message(type_url.encode(), message.SerializeToString())


def packed(type_url: str, message: Any) -> WireAny:
    return WireAny(type_url=type_url, value=message.SerializeToString())


def grant(node: Node, granter: AccountKey, grantee: AccountKey, what: bytes, until_ns: int | None = None) -> Message:
    authorization = packed(AUTHZ + "GenericAuthorization", GenericAuthorization(msg=what.decode()))
    expiration = Timestamp(seconds=until_ns // SECOND_NS, nanos=until_ns % SECOND_NS) if until_ns else None
    granted = Grant(authorization=authorization, expiration=expiration)
    message = authz_tx.MsgGrant(granter=node.text(granter), grantee=node.text(grantee), grant=granted)
    return wire(AUTHZ + "MsgGrant", message)


def revocation(node: Node, granter: AccountKey, grantee: AccountKey, what: bytes) -> Message:
    message = authz_tx.MsgRevoke(granter=node.text(granter), grantee=node.text(grantee), msg_type_url=what.decode())
    return wire(AUTHZ + "MsgRevoke", message)


def granted(node: Node, granter: AccountKey, grantee: AccountKey) -> list[str]:
    request = authz_query.QueryGrantsRequest(granter=node.text(granter), grantee=node.text(grantee))
    found = authz_query.QueryGrantsResponse.FromString(node.call(AUTHZ + "Query/Grants", request))
    return [GenericAuthorization.FromString(each.authorization.value).msg for each in found.grants]


async def test_a_grant_is_used_and_revoked(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    cold, warm, topic = node.key(1), await account(node, chain, tmp_path), node.topic()
    send = send_message(node.text(cold), topic, 2, node.denom)
    execution = [exec_message(node.text(warm), [send, send])]
    without = await put(node, chain, warm, execution)
    assert (without.result.codespace, without.result.code) == ("authz", 2)
    assert (await put(node, chain, cold, [grant(node, cold, warm, SEND_TYPE)])).result.code == 0
    assert granted(node, cold, warm) == [SEND_TYPE.decode()]
    done = await put(node, chain, warm, execution)
    assert (done.result.code, node.balance(topic)) == (0, 4)
    assert responses(done.result.data) == (b"", b"")
    assert (await put(node, chain, cold, [revocation(node, cold, warm, SEND_TYPE)])).result.code == 0
    after = await put(node, chain, warm, execution, memo=b"after")
    assert (after.result.codespace, after.result.code) == ("authz", 2)
    assert granted(node, cold, warm) == []


async def test_a_grant_is_for_one_kind_of_message(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    cold, warm = node.key(1), await account(node, chain, tmp_path)
    assert (await put(node, chain, cold, [grant(node, cold, warm, EXEC_TYPE)])).result.code == 0
    send = send_message(node.text(cold), node.topic(), 1, node.denom)
    refused = await put(node, chain, warm, [exec_message(node.text(warm), [send])])
    assert (refused.result.codespace, refused.result.code) == ("authz", 2)


async def test_a_grant_expires(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    cold, warm = node.key(1), await account(node, chain, tmp_path)
    until_ns = (await chain.info()).time_ns + (20 if "control" in node.missing else 2) * SECOND_NS
    assert (await put(node, chain, cold, [grant(node, cold, warm, SEND_TYPE, until_ns)])).result.code == 0
    assert granted(node, cold, warm) == [SEND_TYPE.decode()]
    height = (await chain.info()).height
    while (block := await block_at(node, chain, height)).time_ns <= until_ns:
        height = block.height + 1
    send = send_message(node.text(cold), node.topic(), 1, node.denom)
    late = await put(node, chain, warm, [exec_message(node.text(warm), [send])])
    assert (late.result.codespace, late.result.code) in {("authz", 2), ("authz", 6)}
    past = await put(node, chain, cold, [grant(node, cold, warm, SEND_TYPE, until_ns)], memo=b"past")
    assert (past.result.codespace, past.result.code) == ("authz", 3)


async def test_what_fails_inside_fails_outside(node: Node, chain: ChainClient) -> None:
    key = node.key(1)
    too_much = send_message(node.text(key), node.topic(), 10**30, node.denom)
    for inner, code in (([too_much], 5), ([], 18)):
        failed = await put(node, chain, key, [exec_message(node.text(key), inner)])
        assert (failed.result.codespace, failed.result.code) == ("sdk", code)


async def test_our_sender_acts_for_the_granter(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    cold, warm, topic = node.key(1), await account(node, chain, tmp_path), node.topic()
    acting = sender(node, chain, warm, tmp_path / "sent", acts_for=cold.address)
    assert (acting.text, acting.author_text, acting.by_grant) == (node.text(warm), node.text(cold), True)
    send = [send_message(acting.author_text, topic, 3, node.denom)]
    with pytest.raises(ChainError, match="authorization not found") as caught:
        await acting.deliver(sha256(b"without"), send)
    assert "keys grants" in caught.value.remedy
    assert (await put(node, chain, cold, [grant(node, cold, warm, SEND_TYPE)])).result.code == 0
    receipt, data = await acting.deliver(sha256(b"with"), send)
    assert (node.balance(topic), responses(data)) == (3, (b"",))
    assert receipt.gas_used > 0


# -- fees -------------------------------------------------------------------------------------------------------------


def allowance(node: Node, granter: AccountKey, grantee: AccountKey, allowed: WireAny) -> Message:
    message = feegrant_tx.MsgGrantAllowance(granter=node.text(granter), grantee=node.text(grantee), allowance=allowed)
    return wire(FEEGRANT + "MsgGrantAllowance", message)


def basic(node: Node, limit: int = 0, until_ns: int = 0) -> WireAny:
    made = allowances.BasicAllowance()
    if limit:
        made.spend_limit.append(Coin(denom=node.denom, amount=str(limit)))
    if until_ns:
        made.expiration.CopyFrom(Timestamp(seconds=until_ns // SECOND_NS, nanos=until_ns % SECOND_NS))
    return packed(FEEGRANT + "BasicAllowance", made)


def only_for(what: bytes, inside: WireAny) -> WireAny:
    made = allowances.AllowedMsgAllowance(allowance=inside, allowed_messages=[what.decode()])
    return packed(FEEGRANT + "AllowedMsgAllowance", made)


def amount(node: Node) -> int:
    """A fee that the node takes, and one that is not zero."""
    return max(1000, node.fee(GAS).amount)


async def paid(node: Node, chain: ChainClient, key: AccountKey, payer: AccountKey, messages: list[Message]) -> Any:
    """The broadcast's answer, and what became of it."""
    pending = await signed(node, chain, key, messages, fee=node.fee(GAS, amount(node), node.text(payer)))
    answer = await chain.tx.broadcast(pending.transaction)
    return answer, await outcome(node, chain, pending) if answer.code == 0 else None


async def test_an_allowance_pays_until_it_is_used_up(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    payer, poor, topic = node.key(1), await account(node, chain, tmp_path, 10), node.topic()
    send = [send_message(node.text(poor), topic, 1, node.denom)]
    limit = int(amount(node) * 1.5)
    assert (await put(node, chain, payer, [allowance(node, payer, poor, basic(node, limit))])).result.code == 0
    twice = await put(node, chain, payer, [allowance(node, payer, poor, basic(node, limit))], memo=b"twice")
    assert twice.result.code == 18
    before = node.balance(node.text(payer))
    _, included = await paid(node, chain, poor, payer, send)
    assert included.result.code == 0
    assert before - node.balance(node.text(payer)) == amount(node)
    assert (node.balance(topic), node.balance(node.text(poor))) == (1, 9)
    answer, _ = await paid(node, chain, poor, payer, send)
    assert (answer.codespace, answer.code) == ("feegrant", 2)
    revoke = feegrant_tx.MsgRevokeAllowance(granter=node.text(payer), grantee=node.text(poor))
    assert (await put(node, chain, payer, [wire(FEEGRANT + "MsgRevokeAllowance", revoke)])).result.code == 0
    answer, _ = await paid(node, chain, poor, payer, send)
    assert (answer.codespace, answer.code) == ("sdk", 38)
    request = feegrant_query.QueryAllowanceRequest(granter=node.text(payer), grantee=node.text(poor))
    with pytest.raises(grpc.RpcError) as caught:
        node.call(FEEGRANT + "Query/Allowance", request)
    assert "fee-grant not found" in code_of(caught)[1]


async def test_an_allowance_for_some_messages(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    payer, poor = node.key(1), await account(node, chain, tmp_path, 10)
    allowed = only_for(EXEC_TYPE, basic(node))
    assert (await put(node, chain, payer, [allowance(node, payer, poor, allowed)])).result.code == 0
    send = send_message(node.text(poor), node.topic(), 1, node.denom)
    answer, _ = await paid(node, chain, poor, payer, [send])
    assert (answer.codespace, answer.code) == ("feegrant", 7)
    assert b"message not allowed" in answer.log
    _, included = await paid(node, chain, poor, payer, [exec_message(node.text(poor), [send])])
    assert included.result.code == 0


async def test_an_allowance_expires(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    payer, poor = node.key(1), await account(node, chain, tmp_path, 10)
    until_ns = (await chain.info()).time_ns + (20 if "control" in node.missing else 2) * SECOND_NS
    made = await put(node, chain, payer, [allowance(node, payer, poor, basic(node, 0, until_ns))])
    assert made.result.code == 0
    height = made.height
    while (block := await block_at(node, chain, height)).time_ns <= until_ns:
        height = block.height + 1
    answer, _ = await paid(node, chain, poor, payer, [send_message(node.text(poor), node.topic(), 1, node.denom)])
    assert (answer.codespace, answer.code) in {("feegrant", 3), ("sdk", 38)}


async def test_our_senders_fees_are_paid_by_the_granter(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    payer, poor, topic = node.key(1), await account(node, chain, tmp_path, 10), node.topic()
    price = max(node.gas_price, 1) if node.gas_price else 1
    paying = sender(node, chain, poor, tmp_path / "sent", granter=node.text(payer), gas_price=price)
    send = [send_message(node.text(poor), topic, 1, node.denom)]
    with pytest.raises(ChainError, match="does not allow to pay fees") as caught:
        await paying.deliver(sha256(b"without"), send)
    assert "chain.fee_granter" in caught.value.remedy
    assert (await put(node, chain, payer, [allowance(node, payer, poor, basic(node))])).result.code == 0
    before = node.balance(node.text(payer))
    receipt, _ = await paying.deliver(sha256(b"with"), send)
    assert before - node.balance(node.text(payer)) == receipt.fee > 0
    assert node.balance(node.text(poor)) == 9
