"""Fee allowances as x/feegrant keeps them: who may have fees paid by whom, and their use by a transaction's fee."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gonka_devnet import accounts, allowances, bech32, coins
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import sdk_error
from gonka_devnet.module import Context

PREFIX = b"\x03f"
QUEUE = b"\x03q"
TIME_BYTES = 12


def _pair(granter: bytes, grantee: bytes) -> bytes:
    return bytes([len(grantee)]) + grantee + bytes([len(granter)]) + granter


def _queue_key(time_ns: int, granter: bytes, grantee: bytes) -> bytes:
    return QUEUE + time_ns.to_bytes(TIME_BYTES, "big", signed=True) + _pair(granter, grantee)


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
        yield granter, held_by, wire.MsgGrantAllowance.FromString(value).allowance


def get(context: Context, granter: bytes, grantee: bytes) -> wire.AnyValue | None:
    """Return the allowance in its Any, or None."""
    value = context.store.get(PREFIX + _pair(granter, grantee))
    return None if value is None else wire.MsgGrantAllowance.FromString(value).allowance


def _put(context: Context, granter: bytes, grantee: bytes, allowance: wire.AnyValue) -> None:
    """Write a Grant, which has the same form as the message that grants."""
    names = [bech32.encode(context.prefix, raw).encode() for raw in (granter, grantee)]
    grant = wire.MsgGrantAllowance(granter=names[0], grantee=names[1], allowance=allowance)
    context.store.set(PREFIX + _pair(granter, grantee), grant.SerializeToString())


def _emit(context: Context, kind: str, granter: bytes, grantee: bytes) -> None:
    names = (bech32.encode(context.prefix, raw) for raw in (granter, grantee))
    context.emit(kind, **dict(zip(("granter", "grantee"), names, strict=True)))


def give(context: Context, granter: bytes, grantee: bytes, allowance: wire.AnyValue) -> None:
    """Grant an allowance, and make the grantee's account if it is new; raise AbciError sdk 18."""
    for _ in ("the message's handler", "the keeper"):
        if get(context, granter, grantee) is not None:
            raise sdk_error(18, "fee allowance already exists")
    if accounts.get(context, grantee) is None:
        accounts.create(context, grantee)
    expires = allowances.expires_ns(allowance)
    if expires is not None:
        if expires < context.time_ns:
            raise sdk_error(18, "expiration is before current block time")
        context.store.set(_queue_key(expires, granter, grantee), b"\x01")
    _put(context, granter, grantee, allowance)
    _emit(context, "set_feegrant", granter, grantee)


def take_back(context: Context, granter: bytes, grantee: bytes) -> None:
    """Revoke an allowance; raise AbciError sdk 38."""
    allowance = get(context, granter, grantee)
    if allowance is None:
        raise sdk_error(38, "fee-grant not found")
    context.store.delete(PREFIX + _pair(granter, grantee))
    expires = allowances.expires_ns(allowance)
    if expires is not None:
        context.store.delete(_queue_key(expires, granter, grantee))
    _emit(context, "revoke_feegrant", granter, grantee)


def forget_expired(context: Context) -> None:
    """Drop the allowances that are past at the block's time."""
    end = context.time_ns.to_bytes(TIME_BYTES, "big", signed=True)
    expired = []
    for key, _ in context.store.iterate(QUEUE):
        if key[len(QUEUE) : len(QUEUE) + TIME_BYTES] > end:
            break
        expired.append(key)
    for key in expired:
        context.store.delete(key)
        context.store.delete(PREFIX + key[len(QUEUE) + TIME_BYTES :])


def use(context: Context, granter: bytes, grantee: bytes, fee: coins.Coins, messages: Sequence[str]) -> None:
    """Let the granter pay the fee of messages (type URLs); raise AbciError sdk 38 or one of feegrant's own."""
    allowance = get(context, granter, grantee)
    if allowance is None:
        raise sdk_error(38, "fee-grant not found")
    left = allowances.spend(context, allowance, fee, messages)
    if left is None:
        take_back(context, granter, grantee)
    _emit(context, "use_feegrant", granter, grantee)
    if left is not None:
        get(context, granter, grantee)
        _put(context, granter, grantee, left)
        _emit(context, "update_feegrant", granter, grantee)
