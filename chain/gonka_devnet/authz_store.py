"""Grants as x/authz keeps them: by granter, grantee and type, and a queue by the time at which they expire."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gonka_devnet import bech32
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import raw_bytes, show
from gonka_devnet.module import AbciError, Context

PREFIX = b"\x04"
GRANT_KEY = b"\x01"
QUEUE_KEY = b"\x02"
TIME_BYTES = 29
QUEUE_GAS = 20
NOT_FOUND = 2


def pair(granter: bytes, grantee: bytes) -> bytes:
    """Return the begin of the keys of what one granted another."""
    return GRANT_KEY + _parties(granter, grantee)


def _parties(granter: bytes, grantee: bytes) -> bytes:
    return bytes([len(granter)]) + granter + bytes([len(grantee)]) + grantee


def _split(key: bytes) -> tuple[bytes, bytes]:
    """Return granter and grantee, and whatever follows is dropped."""
    granter, rest = key[1 : 1 + key[0]], key[1 + key[0] :]
    return granter, rest[1 : 1 + rest[0]]


def expires_ns(grant: wire.Grant) -> int | None:
    """Return when a grant expires, in nanoseconds since 1970, or None."""
    return grant.expiration.seconds * 10**9 + grant.expiration.nanos if grant.HasField("expiration") else None


def alive(context: Context, grant: wire.Grant) -> bool:
    """Return whether a grant holds after the block's time."""
    expires = expires_ns(grant)
    return expires is None or expires > context.time_ns


def get(context: Context, granter: bytes, grantee: bytes, url: str) -> wire.Grant | None:
    """Return the grant, expired or not, or None."""
    value = context.store.get(PREFIX + pair(granter, grantee) + raw_bytes(url))
    return None if value is None else wire.Grant.FromString(value)


def entries(context: Context, prefix: bytes) -> Iterator[tuple[bytes, bytes, wire.Grant]]:
    """Yield granter, grantee and grant of all that have not expired."""
    for stored, value in context.store.iterate(PREFIX + prefix):
        grant = wire.Grant.FromString(value)
        if alive(context, grant):
            yield *_split(stored[len(PREFIX) + len(GRANT_KEY) :]), grant


def save(context: Context, granter: bytes, grantee: bytes, url: str, grant: wire.Grant) -> None:
    """Write a grant in place of one that is there."""
    old = get(context, granter, grantee, url)
    before, after = None if old is None else expires_ns(old), expires_ns(grant)
    if before is not None and before != after:
        _dequeue(context, before, granter, grantee, url)
    if after is not None and before != after:
        key = _queue_key(after, granter, grantee)
        _write_queue(context, key, [*_read_queue(context, key), raw_bytes(url)])
    context.store.set(PREFIX + pair(granter, grantee) + raw_bytes(url), grant.SerializeToString())
    _emit(context, "EventGrant", granter, grantee, url)


def update(context: Context, granter: bytes, grantee: bytes, url: str, authorization: wire.AnyValue) -> None:
    """Write what is left of an authorization."""
    grant = get(context, granter, grantee, url) or wire.Grant()
    grant.authorization.CopyFrom(authorization)
    context.store.set(PREFIX + pair(granter, grantee) + raw_bytes(url), grant.SerializeToString())


def delete(context: Context, granter: bytes, grantee: bytes, url: str) -> None:
    """Take a grant away; raise AbciError authz 2."""
    grant, key = get(context, granter, grantee, url), pair(granter, grantee) + raw_bytes(url)
    if grant is None:
        raise AbciError("authz", NOT_FOUND, f"failed to delete grant with key {show(key)}: authorization not found")
    expires = expires_ns(grant)
    if expires is not None:
        _dequeue(context, expires, granter, grantee, url)
    context.store.delete(PREFIX + key)
    _emit(context, "EventRevoke", granter, grantee, url)


def forget_expired(context: Context) -> None:
    """Drop the grants that are past at the block's time."""
    end, expired = _time_bytes(context.time_ns), []
    for key, value in context.store.iterate(PREFIX + QUEUE_KEY):
        rest = key[len(PREFIX) + len(QUEUE_KEY) :]
        if rest[:TIME_BYTES] > end:
            break
        expired.append(key)
        urls = wire.MsgExecResponse.FromString(value).results
        expired += [PREFIX + GRANT_KEY + rest[TIME_BYTES:] + url for url in urls]
    for key in expired:
        context.store.delete(key)


def _time_bytes(time_ns: int) -> bytes:
    return time_ns.to_bytes(TIME_BYTES, "big", signed=True)


def _queue_key(time_ns: int, granter: bytes, grantee: bytes) -> bytes:
    return PREFIX + QUEUE_KEY + _time_bytes(time_ns) + _parties(granter, grantee)


def _read_queue(context: Context, key: bytes) -> list[bytes]:
    """Return the types that wait there; a list of bytes has the same form on the wire as the SDK's list of text."""
    return list(wire.MsgExecResponse.FromString(context.store.get(key) or b"").results)


def _write_queue(context: Context, key: bytes, urls: list[bytes]) -> None:
    context.store.set(key, wire.MsgExecResponse(results=urls).SerializeToString())


def _dequeue(context: Context, time_ns: int, granter: bytes, grantee: bytes, url: str) -> None:
    key = _queue_key(time_ns, granter, grantee)
    urls = _read_queue(context, key)
    context.gas.consume(QUEUE_GAS, "grant queue")
    _write_queue(context, key, [each for each in urls if each != raw_bytes(url)])


def _emit(context: Context, name: str, granter: bytes, grantee: bytes, url: str) -> None:
    """Emit a typed event: its values are JSON."""
    shown = [bech32.encode(context.prefix, raw) for raw in (grantee, granter)]
    values = {"grantee": shown[0], "granter": shown[1], "msg_type_url": url}
    context.emit(f"cosmos.authz.v1beta1.{name}", **{key: json.dumps(value) for key, value in values.items()})
