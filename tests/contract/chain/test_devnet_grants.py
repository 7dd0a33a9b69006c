"""Fee allowances and authorizations of every kind, used, used up, expired and revoked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from cosmpy.protos.cosmos.authz.v1beta1 import authz_pb2
from cosmpy.protos.cosmos.authz.v1beta1 import query_pb2 as authz_query
from cosmpy.protos.cosmos.authz.v1beta1 import tx_pb2 as authz
from cosmpy.protos.cosmos.bank.v1beta1 import authz_pb2 as bank_authz
from cosmpy.protos.cosmos.bank.v1beta1 import tx_pb2 as bank
from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import Coin
from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2 as fee
from cosmpy.protos.cosmos.feegrant.v1beta1 import query_pb2 as fee_query
from cosmpy.protos.cosmos.feegrant.v1beta1 import tx_pb2 as fee_tx
from devnet_process import Devnet, Key, devnet, golden_key, topic_address
from gonka_devnet._pb.wire import wire_pb2 as wire
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

ALICE, BOB, CAROL, DAVE = (golden_key(name) for name in ("alice", "bob", "carol", "dave"))
A, B, C, D = (key.address() for key in (ALICE, BOB, CAROL, DAVE))
TOPIC, OTHER = topic_address("grants"), topic_address("another topic")
SEND, MULTI_SEND = "/cosmos.bank.v1beta1.MsgSend", "/cosmos.bank.v1beta1.MsgMultiSend"
EXEC = "/cosmos.authz.v1beta1.MsgExec"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet(tmp_path_factory.mktemp("grants") / "home", "--index-lag-seconds", "0", block_seconds=0.1) as running:
        yield running


def url_of(message: Message) -> str:
    return "/" + message.DESCRIPTOR.full_name


def packed(message: Message) -> AnyMessage:
    return AnyMessage(type_url=url_of(message), value=message.SerializeToString())


def coins(amount: int) -> list[Coin]:
    return [Coin(denom="ngonka", amount=str(amount))]


def run(net: Devnet, key: Key, *messages: Message, **options: Any) -> tuple[str, int, str]:
    """Codespace, code and log of a transaction, from its block or from CheckTx."""
    raw = net.sign(key, [(url_of(message), message.SerializeToString()) for message in messages], **options)
    said = net.broadcast(raw)
    if said.code == 0:
        said = net.included_already(raw)
    return said.codespace.decode(), said.code, said.raw_log.decode("utf-8", "replace")


def ok(net: Devnet, key: Key, *messages: Message, **options: Any) -> None:
    found = run(net, key, *messages, **options)
    assert found[1] == 0, found


def send(frm: str, to: str = TOPIC, amount: int = 1) -> bank.MsgSend:
    return bank.MsgSend(from_address=frm, to_address=to, amount=coins(amount))


def execute(grantee: str, *messages: Message) -> authz.MsgExec:
    return authz.MsgExec(grantee=grantee, msgs=[packed(message) for message in messages])


def allow(net: Devnet, granter: Key, grantee: str, allowance: Message) -> tuple[str, int, str]:
    message = fee_tx.MsgGrantAllowance(granter=granter.address(), grantee=grantee, allowance=packed(allowance))
    return run(net, granter, message)


def end_allowance(net: Devnet, granter: Key, grantee: str) -> None:
    ok(net, granter, fee_tx.MsgRevokeAllowance(granter=granter.address(), grantee=grantee))


def authorize(
    net: Devnet, granter: Key, grantee: str, authorization: Message, expiration: Timestamp | None = None
) -> tuple[str, int, str]:
    grant = authz_pb2.Grant(authorization=packed(authorization), expiration=expiration)
    return run(net, granter, authz.MsgGrant(granter=granter.address(), grantee=grantee, grant=grant))


def grants_of(net: Devnet, granter: str, grantee: str) -> Sequence[Any]:
    raw = net.call(
        "/cosmos.authz.v1beta1.Query/Grants", authz_query.QueryGrantsRequest(granter=granter, grantee=grantee)
    )
    return list(authz_query.QueryGrantsResponse.FromString(raw).grants)


def events_of(net: Devnet, raw: bytes) -> list[str]:
    return [event.type.decode() for event in net.included(raw).events]


def test_allowance_for_some_messages_only(net: Devnet) -> None:
    inner = packed(fee.BasicAllowance(spend_limit=coins(300)))
    allowance = fee.AllowedMsgAllowance(allowance=inner, allowed_messages=[SEND, EXEC])
    assert allow(net, ALICE, B, allowance)[1] == 0
    refused = run(net, BOB, authz.MsgRevoke(granter=B, grantee=C, msg_type_url=SEND), fee=100, granter=A)
    assert refused[:2] == ("feegrant", 7)
    assert refused[2].endswith("message does not exist in allowed messages: message not allowed")
    mixed = (send(B), fee_tx.MsgRevokeAllowance(granter=B, grantee=C))
    assert run(net, BOB, *mixed, fee=100, granter=A)[:2] == ("feegrant", 7)
    ok(net, BOB, send(B), fee=100, granter=A)
    # a message inside an exec does not count: the exec is what is allowed
    ok(net, BOB, execute(B, send(B)), fee=100, granter=A)
    raw = net.call("/cosmos.feegrant.v1beta1.Query/Allowance", fee_query.QueryAllowanceRequest(granter=A, grantee=B))
    held = fee.AllowedMsgAllowance.FromString(
        fee_query.QueryAllowanceResponse.FromString(raw).allowance.allowance.value
    )
    assert fee.BasicAllowance.FromString(held.allowance.value).spend_limit[0].amount == "100"
    assert run(net, BOB, send(B), fee=101, granter=A)[:2] == ("feegrant", 2)
    last = net.sign(BOB, [(SEND, send(B).SerializeToString())], fee=100, granter=A)
    assert events_of(net, last)[:2] == ["revoke_feegrant", "use_feegrant"]
    assert run(net, BOB, send(B), fee=1, granter=A)[:2] == ("sdk", 38)


def test_periodic_allowance_fills_up_again(net: Devnet) -> None:
    allowance = fee.PeriodicAllowance(
        basic=fee.BasicAllowance(spend_limit=coins(250)), period=Duration(seconds=600), period_spend_limit=coins(100)
    )
    assert allow(net, ALICE, C, allowance)[1] == 0
    ok(net, CAROL, send(C), fee=100, granter=A)
    refused = run(net, CAROL, send(C), fee=1, granter=A)
    assert (refused[:2], "period limit" in refused[2]) == (("feegrant", 2), True)
    net.fault("clock", offset_seconds=601)
    net.next_block()
    net.next_block()
    ok(net, CAROL, send(C), fee=100, granter=A)
    net.fault("clock", offset_seconds=1300)
    net.next_block()
    net.next_block()
    refused = run(net, CAROL, send(C), fee=100, granter=A)
    assert (refused[:2], "period limit" in refused[2]) == (("feegrant", 2), True), "no more than the whole limit"
    ok(net, CAROL, send(C), fee=50, granter=A)
    assert run(net, CAROL, send(C), fee=1, granter=A)[:2] == ("sdk", 38)


def test_times_without_sense_hurt_nobody(net: Devnet) -> None:
    most = 2**63 - 1
    basic = fee.BasicAllowance(expiration=Timestamp(seconds=most, nanos=-1))
    allowance = fee.PeriodicAllowance(
        basic=basic,
        period=Duration(seconds=most, nanos=-5),
        period_spend_limit=coins(100),
        period_reset=Timestamp(seconds=-most),
    )
    assert allow(net, ALICE, D, allowance)[1] == 0
    ok(net, DAVE, send(D), fee=100, granter=A)
    assert run(net, DAVE, send(D), fee=1, granter=A)[:2] == ("feegrant", 2)
    end_allowance(net, ALICE, D)
    endless = Timestamp(seconds=most)
    assert authorize(net, ALICE, D, authz_pb2.GenericAuthorization(msg=SEND), endless)[1] == 0
    ok(net, ALICE, authz.MsgRevoke(granter=A, grantee=D, msg_type_url=SEND))
    assert net.next_block()


def test_allowance_expires_and_cannot_be_granted_wrongly(net: Devnet) -> None:
    now = net.block_time_ns()
    past, later = Timestamp(seconds=now // 10**9 - 10), Timestamp(seconds=now // 10**9 + 3600)
    assert allow(net, ALICE, D, fee.BasicAllowance(expiration=past))[:2] == ("sdk", 18)
    assert allow(net, ALICE, D, fee.AllowedMsgAllowance(allowed_messages=[SEND]))[:2] == ("feegrant", 5)
    nothing = fee.AllowedMsgAllowance(allowance=packed(fee.BasicAllowance()))
    assert allow(net, ALICE, D, nothing)[:2] == ("feegrant", 6)
    assert allow(net, ALICE, D, fee.BasicAllowance(spend_limit=coins(0)))[:2] == ("sdk", 10)
    assert allow(net, ALICE, D, fee.BasicAllowance(expiration=later))[1] == 0
    assert allow(net, ALICE, D, fee.BasicAllowance(expiration=later))[:2] == ("sdk", 18)
    ok(net, DAVE, send(D), fee=100, granter=A)
    net.fault("clock", offset_seconds=net.faults()["clock"] + 3700)
    net.next_block()
    net.next_block()
    assert run(net, DAVE, send(D), fee=100, granter=A)[:2] == ("sdk", 38)
    assert allow(net, ALICE, D, fee.BasicAllowance())[1] == 0
    end_allowance(net, ALICE, D)
    assert run(net, DAVE, send(D), fee=100, granter=A)[:2] == ("sdk", 38)


def test_send_authorization_has_a_limit_and_a_list(net: Devnet) -> None:
    limited = bank_authz.SendAuthorization(spend_limit=coins(100), allow_list=[TOPIC])
    assert authorize(net, ALICE, B, bank_authz.SendAuthorization())[:2] == ("sdk", 10)
    assert authorize(net, ALICE, B, limited)[1] == 0
    refused = run(net, BOB, execute(B, send(A, OTHER)))
    assert (refused[:2], f"cannot send to {OTHER} address" in refused[2]) == (("sdk", 4), True)
    refused = run(net, BOB, execute(B, send(A, amount=101)))
    assert (refused[:2], "requested amount is more than spend limit" in refused[2]) == (("sdk", 5), True)
    ok(net, BOB, execute(B, send(A, amount=40)))
    (grant,) = grants_of(net, A, B)
    left = bank_authz.SendAuthorization.FromString(grant.authorization.value)
    assert (left.spend_limit[0].amount, list(left.allow_list)) == ("60", [TOPIC])
    assert run(net, BOB, execute(B, send(A, amount=30), send(A, amount=31)))[:2] == ("sdk", 5)
    ok(net, BOB, execute(B, send(A, amount=30), send(A, amount=30)))
    assert not grants_of(net, A, B)
    assert run(net, BOB, execute(B, send(A)))[:2] == ("authz", 2)


def test_grants_expire_are_replaced_and_revoked(net: Devnet) -> None:
    second = net.block_time_ns() // 10**9
    generic = authz_pb2.GenericAuthorization(msg=SEND)
    assert authorize(net, ALICE, C, generic, Timestamp(seconds=second + 100))[1] == 0
    assert authorize(net, ALICE, C, generic, Timestamp(seconds=second + 1000))[1] == 0
    assert (
        authorize(net, ALICE, C, authz_pb2.GenericAuthorization(msg=MULTI_SEND), Timestamp(seconds=second + 100))[1]
        == 0
    )
    assert len(grants_of(net, A, C)) == 2
    net.fault("clock", offset_seconds=net.faults()["clock"] + 200)
    net.next_block()
    net.next_block()
    assert [grant.expiration.seconds for grant in grants_of(net, A, C)] == [second + 1000]
    ok(net, CAROL, execute(C, send(A)))
    ok(net, ALICE, authz.MsgRevoke(granter=A, grantee=C, msg_type_url=SEND))
    assert run(net, CAROL, execute(C, send(A)))[:2] == ("authz", 2)
    assert run(net, ALICE, authz.MsgRevoke(granter=A, grantee=C, msg_type_url=SEND))[:2] == ("authz", 2)
    assert run(net, ALICE, authz.MsgRevoke(granter=A, grantee=A, msg_type_url=SEND))[:2] == ("authz", 7)
    assert authorize(net, ALICE, C, generic, Timestamp(seconds=second))[:2] == ("authz", 3)


def test_exec_inside_exec_wants_a_grant_for_the_exec(net: Devnet) -> None:
    """Alice lets Bob send, Bob lets Carol exec for him: Carol reaches Alice's coins through both, never past one."""
    assert authorize(net, ALICE, B, authz_pb2.GenericAuthorization(msg=SEND))[1] == 0
    nested = execute(C, execute(B, send(A)))
    assert run(net, CAROL, nested)[:2] == ("authz", 2)
    assert authorize(net, BOB, C, authz_pb2.GenericAuthorization(msg=EXEC))[1] == 0
    ok(net, CAROL, nested)
    assert run(net, CAROL, execute(C, send(A)))[:2] == ("authz", 2)
    assert run(net, CAROL, execute(C, execute(B, send(D))))[:2] == ("authz", 2)
    # an exec of the grantee's own needs no grant
    ok(net, CAROL, execute(C, execute(C, send(C))))
    raw = net.sign(CAROL, [(EXEC, nested.SerializeToString())])
    (spent,) = [event for event in net.included(raw).events if event.type == b"coin_spent"]
    assert [part.key for part in spent.attributes] == [
        b"spender",
        b"amount",
        b"authz_msg_index",
        b"authz_msg_index",
        b"msg_index",
    ]


def test_signer_without_a_key_and_other_sign_modes_are_refused(net: Devnet) -> None:
    message = [(SEND, send(A).SerializeToString())]
    said = net.broadcast(net.sign(ALICE, message, with_key=False))
    assert (said.codespace, said.code) == (b"undefined", 111222)
    assert b"nil pointer dereference" in said.raw_log
    for mode, name in ((2, b"TEXTUAL"), (3, b"DIRECT_AUX"), (127, b"LEGACY_AMINO_JSON"), (191, b"EIP_191")):
        said = net.broadcast(net.sign(ALICE, message, mode=mode))
        assert (said.codespace, said.code) == (b"sdk", 4)
        assert b"unsupported sign mode SIGN_MODE_" + name in said.raw_log
    raw = wire.SimulateRequest(tx_bytes=net.sign(ALICE, message, with_key=False))
    assert net.call("/cosmos.tx.v1beta1.Service/Simulate", raw), "a simulation needs no key"
