"""Signed transactions that strangers make by hand: each has its own end, and the chain goes on."""

from __future__ import annotations

import time

import pytest
from devnet_process import Devnet, eventually, golden_key, topic_address
from gonka_devnet._pb.wire import wire_pb2 as wire

DAVE = golden_key("dave")
ME, TOPIC = DAVE.address().encode(), topic_address("hostile").encode()
SEND, MULTI = "/cosmos.bank.v1beta1.MsgSend", "/cosmos.bank.v1beta1.MsgMultiSend"
EXEC, GRANT = "/cosmos.authz.v1beta1.MsgExec", "/cosmos.authz.v1beta1.MsgGrant"
ALLOW = "/cosmos.feegrant.v1beta1.MsgGrantAllowance"


def send(*amounts: bytes, to: bytes = TOPIC, denom: bytes = b"ngonka") -> tuple[str, bytes]:
    coins = [wire.Coin(denom=denom, amount=amount) for amount in amounts]
    return SEND, wire.MsgSend(from_address=ME, to_address=to, amount=coins).SerializeToString()


def multi(*outputs: bytes) -> tuple[str, bytes]:
    coin = wire.Coin(denom=b"ngonka", amount=b"1")
    total = wire.Coin(denom=b"ngonka", amount=str(len(outputs)).encode())
    message = wire.MsgMultiSend(inputs=[wire.Input(address=ME, coins=[total])])
    message.outputs.extend(wire.Input(address=output, coins=[coin]) for output in outputs)
    return MULTI, message.SerializeToString()


def nested(depth: int) -> tuple[str, bytes]:
    url, value = send(b"1")
    for _ in range(depth):
        inner = wire.AnyValue(type_url=url.encode(), value=value)
        url, value = EXEC, wire.MsgExec(grantee=ME, msgs=[inner]).SerializeToString()
    return url, value


def grant(seconds: int) -> tuple[str, bytes]:
    generic = wire.GenericAuthorization(msg=SEND.encode()).SerializeToString()
    message = wire.MsgGrant(granter=ME, grantee=TOPIC)
    message.grant.authorization.type_url = b"/cosmos.authz.v1beta1.GenericAuthorization"
    message.grant.authorization.value = generic
    message.grant.expiration.seconds = seconds
    return GRANT, message.SerializeToString()


def allowance(denom: bytes, amount: bytes) -> tuple[str, bytes]:
    basic = wire.BasicAllowance(spend_limit=[wire.Coin(denom=denom, amount=amount)])
    packed = wire.AnyValue(type_url=b"/cosmos.feegrant.v1beta1.BasicAllowance", value=basic.SerializeToString())
    return ALLOW, wire.MsgGrantAllowance(granter=ME, grantee=TOPIC, allowance=packed).SerializeToString()


def sign(net: Devnet, *messages: tuple[str, bytes], memo: bytes = b"") -> bytes:
    return net.sign(DAVE, messages, memo, timeout_ns=time.time_ns() + 120 * 10**9)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (send(b"1"), 0),
        (send(b"1", to=ME), 0),
        (send(b"-5"), 10),
        (send(b"9" * 77), 5),
        (send(b"9" * 100), 10),
        (send(b"1", b"1"), 10),
        (send(), 10),
        (send(b"1", denom=b"\xff\xfe"), 10),
        (send(b"1", denom=b"x" * 200), 10),
        (send(b"1", to=b"\xff" * 50), 7),
        (multi(TOPIC, ME), 0),
        (multi(TOPIC, b"nobody"), 7),
        (nested(1), 0),
        (nested(20), 0),
        (grant(-(10**17)), 3),
        (grant(10**17), 0),
        (allowance(b"\xff\xff", b"5"), 2),
        (allowance(b"ngonka", b"-5"), 10),
        (allowance(b"ngonka", b"many"), 10),
    ],
)
def test_message_by_hand(shared_devnet: Devnet, message: tuple[str, bytes], code: int) -> None:
    assert shared_devnet.included(sign(shared_devnet, message)).code == code
    shared_devnet.next_block()


@pytest.mark.parametrize("memo", [b"\xff" * 256, b"\x00" * 256, bytes(range(256)), b"\x1b[31mred\r\n"])
def test_any_memo_of_256_bytes_is_kept(shared_devnet: Devnet, memo: bytes) -> None:
    raw = sign(shared_devnet, send(b"1"), memo=memo)
    said = shared_devnet.included(raw)
    assert said.code == 0
    assert wire.Tx.FromString(said.tx.value).body.memo == memo


def test_what_cannot_be_decoded_is_refused(shared_devnet: Devnet) -> None:
    net = shared_devnet
    assert net.broadcast(sign(net, nested(100))).code == 2
    raw = wire.TxRaw.FromString(sign(net, send(b"1")))
    for seconds in (-(10**17), 10**17):
        body = wire.TxBody.FromString(raw.body_bytes)
        body.timeout_timestamp.seconds = seconds
        changed = wire.TxRaw(
            body_bytes=body.SerializeToString(), auth_info_bytes=raw.auth_info_bytes, signatures=raw.signatures
        )
        assert net.broadcast(changed.SerializeToString()).code == 2
    assert net.broadcast(sign(net, ("/cosmos.gov.v1.MsgVote", b""))).code == 2


def test_all_or_nothing(shared_devnet: Devnet) -> None:
    net, before = shared_devnet, shared_devnet.account(DAVE.address()).sequence
    raw = net.sign(DAVE, [send(b"7"), send(b"9" * 30)])
    assert net.included(raw).code == 5
    assert eventually(lambda: net.account(DAVE.address()).sequence - before or None) == 1
