"""x/authz: grants of generic authorizations, and messages run with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc
from cosmpy.protos.cosmos.authz.v1beta1 import authz_pb2
from cosmpy.protos.cosmos.authz.v1beta1 import query_pb2 as query
from cosmpy.protos.cosmos.authz.v1beta1 import tx_pb2 as strict

from gonka_devnet import accounts, bech32
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.bank import account, address, served
from gonka_devnet.errors import raw_bytes, sdk_error, show
from gonka_devnet.module import AbciError, Context, Event, Message, QueryError
from gonka_devnet.paging import page
from gonka_devnet.timestamps import rfc3339

SERVICE = "/cosmos.authz.v1beta1.Query/"
MSG = "/cosmos.authz.v1beta1."
GENERIC = "/cosmos.authz.v1beta1.GenericAuthorization"
PREFIX = b"\x04"
GRANT_KEY = b"\x01"
NOT_FOUND, EXPIRED, OUT_OF_GAS = 2, 3, 11
Routes = Callable[[], Mapping[str, Message]]


def _pair(granter: bytes, grantee: bytes) -> bytes:
    return GRANT_KEY + bytes([len(granter)]) + granter + bytes([len(grantee)]) + grantee


def _nanoseconds(moment: wire.Time) -> int:
    return moment.seconds * 10**9 + moment.nanos


def _alive(context: Context, grant: wire.Grant) -> bool:
    return not grant.HasField("expiration") or _nanoseconds(grant.expiration) > context.time_ns


def _entries(context: Context, prefix: bytes) -> Iterator[tuple[bytes, bytes, wire.Grant]]:
    """Yield granter, grantee and grant of all that have not expired."""
    for stored, value in context.store.iterate(PREFIX + prefix):
        key, grant = stored[len(PREFIX) + len(GRANT_KEY) :], wire.Grant.FromString(value)
        granter, rest = key[1 : 1 + key[0]], key[1 + key[0] :]
        if _alive(context, grant):
            yield granter, rest[1 : 1 + rest[0]], grant


class Authz:
    """The module; `routes` gives all messages of the application."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    def grant(self, context: Context, value: bytes) -> bytes:
        """Handle MsgGrant."""
        message = wire.MsgGrant.FromString(value)
        granter_text, grantee_text = show(message.granter), show(message.grantee)
        granter, grantee = address(context, granter_text, "granter"), address(context, grantee_text, "grantee")
        if granter == grantee:
            raise AbciError("authz", 7, "grantee and granter should be different")
        url = self._checked(context, message.grant)
        if not accounts.exists(context, grantee):
            accounts.create(context, grantee)
        context.store.set(PREFIX + _pair(granter, grantee) + raw_bytes(url), message.grant.SerializeToString())
        _emit(context, "EventGrant", grantee_text, granter_text, url)
        return b""

    def _checked(self, context: Context, grant: wire.Grant) -> str:
        """Return the type URL that a grant is for; raise AbciError."""
        if show(grant.authorization.type_url) != GENERIC:
            raise sdk_error(37, "only generic authorizations are served")
        if not _alive(context, grant):
            now, asked = rfc3339(context.time_ns), rfc3339(_nanoseconds(grant.expiration))
            what = f"expiration must be after the current block time ({now}), got {asked}"
            raise AbciError(
                "authz", EXPIRED, f"{what}: expiration time of authorization should be more than current time"
            )
        url = show(wire.GenericAuthorization.FromString(grant.authorization.value).msg)
        if url not in self._routes():
            raise AbciError("sdk", 29, f"{url} doesn't exist.: invalid type")
        return url

    def execute(self, context: Context, value: bytes) -> bytes:
        """Handle MsgExec: each inner message is its signer's, who must be the grantee or have granted it."""
        message = wire.MsgExec.FromString(value)
        grantee_text = show(message.grantee)
        grantee = address(context, grantee_text, "grantee")
        if not message.msgs:
            raise sdk_error(18, "messages cannot be empty")
        results = []
        for place, inner in enumerate(message.msgs):
            url, route = show(inner.type_url), self._routes().get(show(inner.type_url))
            if route is None:
                raise sdk_error(6, f"unrecognized message route: {url}")
            self._authorize(context, route.signer(inner.value), grantee_text, grantee, url)
            results.append(_run(context, route, inner.value, place))
        return wire.MsgExecResponse(results=results).SerializeToString()

    def _authorize(self, context: Context, granter_text: str, grantee_text: str, grantee: bytes, url: str) -> None:
        granter = address(context, granter_text, "granter")
        if granter == grantee:
            return
        stored = context.store.get(PREFIX + _pair(granter, grantee) + raw_bytes(url))
        if stored is None:
            who = f"granter: {granter_text}, grantee: {grantee_text} & msgType: {url} "
            raise AbciError("authz", NOT_FOUND, f"failed to get grant with given {who}: authorization not found")
        if not _alive(context, wire.Grant.FromString(stored)):
            raise AbciError("authz", 8, "authorization expired")

    def revoke(self, context: Context, value: bytes) -> bytes:
        """Handle MsgRevoke."""
        message = wire.MsgRevoke.FromString(value)
        granter_text, grantee_text = show(message.granter), show(message.grantee)
        granter, grantee = address(context, granter_text, "granter"), address(context, grantee_text, "grantee")
        key = _pair(granter, grantee) + message.msg_type_url
        if context.store.get(PREFIX + key) is None:
            text = f"failed to delete grant with key {show(key)}: authorization not found"
            raise AbciError("authz", NOT_FOUND, text)
        context.store.delete(PREFIX + key)
        _emit(context, "EventRevoke", grantee_text, granter_text, show(message.msg_type_url))
        return b""

    @property
    def messages(self) -> Mapping[str, Message]:
        """MsgGrant, MsgExec and MsgRevoke."""
        types = strict.DESCRIPTOR.message_types_by_name

        def message(name: str, signer: Callable[[bytes], bytes], handle: Callable[[Context, bytes], bytes]) -> Message:
            return Message(lambda value: show(signer(value)), handle, f"{MSG}{name}Response", descriptor=types[name])

        return {
            MSG + "MsgGrant": message("MsgGrant", lambda v: wire.MsgGrant.FromString(v).granter, self.grant),
            MSG + "MsgExec": message("MsgExec", lambda v: wire.MsgExec.FromString(v).grantee, self.execute),
            MSG + "MsgRevoke": message("MsgRevoke", lambda v: wire.MsgRevoke.FromString(v).granter, self.revoke),
        }

    @property
    def queries(self) -> Mapping[str, Callable[[Context, bytes], bytes]]:
        """Grants."""
        return {
            SERVICE + "Grants": served(query.QueryGrantsRequest, _grants),
            SERVICE + "GranterGrants": served(query.QueryGranterGrantsRequest, _granter_grants),
            SERVICE + "GranteeGrants": served(query.QueryGranteeGrantsRequest, _grantee_grants),
        }

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Do nothing."""

    def begin_block(self, context: Context) -> None:
        """Drop the grants that have expired."""
        store = context.store
        for stored, value in list(store.iterate(PREFIX)):
            if not _alive(context, wire.Grant.FromString(value)):
                store.delete(stored)

    def end_block(self, context: Context) -> None:
        """Do nothing."""


def _run(context: Context, route: Message, value: bytes, place: int) -> bytes:
    """Run an inner message; its events carry its place."""
    before = len(context.events)
    try:
        result = route.handle(context, value)
    except AbciError as error:
        if (error.codespace, error.code) == ("sdk", OUT_OF_GAS):
            raise
        text = f"failed to execute message; message {show(value)}: {error.log}"
        raise AbciError(error.codespace, error.code, text) from error
    mark = ("authz_msg_index", str(place))
    marked = [Event(event.kind, (*event.attributes, mark)) for event in context.events[before:]]
    context.events[before:] = marked
    return result


def _emit(context: Context, name: str, grantee: str, granter: str, url: str) -> None:
    """Emit a typed event: its values are JSON."""
    values = {"grantee": grantee, "granter": granter, "msg_type_url": url}
    context.emit(f"cosmos.authz.v1beta1.{name}", **{key: json.dumps(value) for key, value in values.items()})


def _plain(grant: wire.Grant) -> Any:
    return authz_pb2.Grant.FromString(grant.SerializeToString())


def _named(context: Context, granter: bytes, grantee: bytes, grant: wire.Grant) -> Any:
    plain = _plain(grant)
    return authz_pb2.GrantAuthorization(
        granter=bech32.encode(context.prefix, granter),
        grantee=bech32.encode(context.prefix, grantee),
        authorization=plain.authorization,
        expiration=plain.expiration if plain.HasField("expiration") else None,
    )


def _grants(context: Context, request: Any) -> Any:
    granter, grantee = account(context, request.granter), account(context, request.grantee)
    key = _pair(granter, grantee)
    if request.msg_type_url:
        stored = context.store.get(PREFIX + key + request.msg_type_url.encode())
        if stored is None:
            text = f"authorization not found for {request.msg_type_url} type"
            raise QueryError(grpc.StatusCode.UNKNOWN, f"codespace authz code 2: authorization not found: {text}")
        return query.QueryGrantsResponse(grants=[_plain(wire.Grant.FromString(stored))])
    shown, pagination = page([_plain(grant) for _, _, grant in _entries(context, key)], request.pagination)
    return query.QueryGrantsResponse(grants=shown, pagination=pagination)


def _granter_grants(context: Context, request: Any) -> Any:
    granter = account(context, request.granter)
    listed = [_named(context, *entry) for entry in _entries(context, GRANT_KEY + bytes([len(granter)]) + granter)]
    shown, pagination = page(listed, request.pagination)
    return query.QueryGranterGrantsResponse(grants=shown, pagination=pagination)


def _grantee_grants(context: Context, request: Any) -> Any:
    grantee = account(context, request.grantee)
    listed = [_named(context, *entry) for entry in _entries(context, GRANT_KEY) if entry[1] == grantee]
    shown, pagination = page(listed, request.pagination)
    return query.QueryGranteeGrantsResponse(grants=shown, pagination=pagination)
