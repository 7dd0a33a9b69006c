"""Fee allowances as x/feegrant keeps them: who may have fees paid by whom, and their use by a transaction's fee."""

from __future__ import annotations

from collections.abc import Iterator

from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2

from gonka_devnet import bech32, coins
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import sdk_error
from gonka_devnet.module import AbciError, Context

PREFIX = b"\x03f"
BASIC = "/cosmos.feegrant.v1beta1.BasicAllowance"
LIMIT_EXCEEDED, EXPIRED = 2, 3


def key(granter: bytes, grantee: bytes) -> bytes:
    """Return where the allowance is kept: by grantee, then granter."""
    return PREFIX + bytes([len(grantee)]) + grantee + bytes([len(granter)]) + granter


def parties(stored: bytes) -> tuple[bytes, bytes]:
    """Return granter and grantee of a key."""
    length = stored[len(PREFIX)]
    grantee = stored[len(PREFIX) + 1 : len(PREFIX) + 1 + length]
    return stored[len(PREFIX) + 2 + length :], grantee


def all_of(context: Context, grantee: bytes | None = None) -> Iterator[tuple[bytes, bytes, wire.AnyValue]]:
    """Yield granter, grantee and allowance, of one grantee or of all."""
    prefix = PREFIX if grantee is None else PREFIX + bytes([len(grantee)]) + grantee
    for stored, value in context.store.iterate(prefix):
        granter, held_by = parties(stored)
        yield granter, held_by, wire.AnyValue.FromString(value)


def get(context: Context, granter: bytes, grantee: bytes) -> wire.AnyValue | None:
    """Return the allowance in its Any, or None."""
    value = context.store.get(key(granter, grantee))
    return None if value is None else wire.AnyValue.FromString(value)


def put(context: Context, granter: bytes, grantee: bytes, allowance: wire.AnyValue) -> None:
    """Write an allowance."""
    context.store.set(key(granter, grantee), allowance.SerializeToString())


def _emit(context: Context, kind: str, granter: bytes, grantee: bytes) -> None:
    names = (bech32.encode(context.prefix, raw) for raw in (granter, grantee))
    context.emit(kind, **dict(zip(("granter", "grantee"), names, strict=True)))


def _spend(context: Context, allowance: wire.AnyValue, fee: coins.Coins) -> wire.AnyValue | None:
    """Return what is left of a basic allowance, None when it is used up; raise AbciError feegrant 2 or 3."""
    basic = feegrant_pb2.BasicAllowance.FromString(allowance.value)
    if basic.HasField("expiration") and basic.expiration.ToNanoseconds() < context.time_ns:
        raise AbciError("feegrant", EXPIRED, "basic allowance: fee allowance expired")
    if not basic.spend_limit:
        return allowance
    left = {coin.denom: int(coin.amount) for coin in basic.spend_limit}
    for denom, amount in fee:
        left[denom] = left.get(denom, 0) - amount
    if any(amount < 0 for amount in left.values()):
        raise AbciError("feegrant", LIMIT_EXCEEDED, "basic allowance: fee limit exceeded")
    if not any(left.values()):
        return None
    del basic.spend_limit[:]
    for denom, amount in left.items():
        if amount:
            basic.spend_limit.add(denom=denom, amount=str(amount))
    return wire.AnyValue(type_url=BASIC.encode(), value=basic.SerializeToString())


def use(context: Context, granter: bytes, grantee: bytes, fee: coins.Coins) -> None:
    """Let the granter pay this fee; raise AbciError sdk 38 or feegrant 2, 3."""
    allowance = get(context, granter, grantee)
    if allowance is None:
        raise sdk_error(38, "fee-grant not found")
    if allowance.type_url != BASIC.encode():
        raise sdk_error(37, "only basic allowances are served")
    left = _spend(context, allowance, fee)
    _emit(context, "use_feegrant", granter, grantee)
    if left is None:
        context.store.delete(key(granter, grantee))
        _emit(context, "revoke_feegrant", granter, grantee)
    else:
        put(context, granter, grantee, left)
        _emit(context, "update_feegrant", granter, grantee)
