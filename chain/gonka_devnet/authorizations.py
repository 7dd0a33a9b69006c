"""The kinds of authorizations that authz grants: generic, and sending up to a limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cosmpy.protos.cosmos.bank.v1beta1 import authz_pb2

from gonka_devnet import coins
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.bank import amounts_of
from gonka_devnet.errors import sdk_error, show
from gonka_devnet.module import AbciError, Context

GENERIC = "/cosmos.authz.v1beta1.GenericAuthorization"
SEND = "/cosmos.bank.v1beta1.SendAuthorization"
MSG_SEND = "/cosmos.bank.v1beta1.MsgSend"
LISTED_GAS = 10


@dataclass(frozen=True)
class Accepted:
    """What becomes of a grant that was used: it stays (None), changes, or is used up."""

    left: wire.AnyValue | None = None
    used_up: bool = False


def message_type(authorization: wire.AnyValue) -> str:
    """Return the type URL that it is for, after checking it; raise AbciError."""
    url = show(authorization.type_url)
    if url == GENERIC:
        return show(wire.GenericAuthorization.FromString(authorization.value).msg)
    if url == SEND:
        _check_send(authz_pb2.SendAuthorization.FromString(authorization.value))
        return MSG_SEND
    raise sdk_error(37, "only generic and send authorizations are served")


def accept(context: Context, authorization: wire.AnyValue, message: bytes) -> Accepted:
    """Use an authorization for a message of its type; raise AbciError where it does not go so far."""
    if show(authorization.type_url) != SEND:
        return Accepted()
    held, wanted = authz_pb2.SendAuthorization.FromString(authorization.value), wire.MsgSend.FromString(message)
    left = dict(_coins(held.spend_limit))
    for denom, amount in amounts_of(wanted.amount):
        left[denom] = left.get(denom, 0) - amount
    if any(amount < 0 for amount in left.values()):
        raise sdk_error(5, "requested amount is more than spend limit")
    _check_recipient(context, list(held.allow_list), show(wanted.to_address))
    rest = [pair for pair in left.items() if pair[1]]
    if not rest:
        return Accepted(used_up=True)
    del held.spend_limit[:]
    for denom, amount in rest:
        held.spend_limit.add(denom=denom, amount=str(amount))
    return Accepted(wire.AnyValue(type_url=SEND.encode(), value=held.SerializeToString()))


def _check_recipient(context: Context, allowed: list[str], recipient: str) -> None:
    for listed in allowed:
        context.gas.consume(LISTED_GAS, "send authorization")
        if listed == recipient:
            return
    if allowed:
        raise sdk_error(4, f"cannot send to {recipient} address")


def _coins(listed: Iterable[Any]) -> coins.Coins:
    return coins.read(wire.Coin(denom=coin.denom.encode(), amount=coin.amount.encode()) for coin in listed)


def _check_send(authorization: Any) -> None:
    if not authorization.spend_limit:
        raise sdk_error(10, "spend limit cannot be nil")
    try:
        amounts = _coins(authorization.spend_limit)
    except coins.CoinError as reason:
        raise sdk_error(10, str(reason)) from reason
    if any(amount <= 0 for _, amount in amounts):
        raise sdk_error(10, "spend limit must be positive")
    if len(set(authorization.allow_list)) < len(authorization.allow_list):
        raise AbciError("bank", 8, "duplicate entry")
