"""x/authz: grants of generic and send authorizations, and messages run with them, nested ones too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import grpc
from cosmpy.protos.cosmos.authz.v1beta1 import authz_pb2
from cosmpy.protos.cosmos.authz.v1beta1 import query_pb2 as query
from cosmpy.protos.cosmos.authz.v1beta1 import tx_pb2 as strict

from gonka_devnet import accounts, authorizations, authz_store, bech32
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.bank import account, address, served
from gonka_devnet.errors import sdk_error, show
from gonka_devnet.module import AbciError, Context, Event, Message, QueryError
from gonka_devnet.paging import page
from gonka_devnet.timestamps import rfc3339

SERVICE = "/cosmos.authz.v1beta1.Query/"
MSG = "/cosmos.authz.v1beta1."
EXPIRED, OUT_OF_GAS = 3, 11
Routes = Callable[[], Mapping[str, Message]]


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
        url = authorizations.message_type(message.grant.authorization)
        if accounts.get(context, grantee) is None:
            accounts.create(context, grantee)
        if url not in self._routes():
            raise AbciError("sdk", 29, f"{url} doesn't exist.: invalid type")
        _check_expiration(context, message.grant)
        authz_store.save(context, granter, grantee, url, message.grant)
        return b""

    def execute(self, context: Context, value: bytes) -> bytes:
        """Handle MsgExec: each inner message is its signer's, who must be the grantee or have granted it."""
        message = wire.MsgExec.FromString(value)
        grantee_text = show(message.grantee)
        grantee = address(context, grantee_text, "grantee")
        if not message.msgs:
            raise sdk_error(18, "messages cannot be empty")
        self._validate(message.msgs)
        results = []
        for place, inner in enumerate(message.msgs):
            route = self._routes()[show(inner.type_url)]
            _authorize(context, address(context, route.signer(inner.value), "granter"), grantee, inner)
            results.append(_run(context, route, inner.value, place))
        return wire.MsgExecResponse(results=results).SerializeToString()

    def _validate(self, messages: Iterable[wire.AnyValue]) -> None:
        """Check all inner messages before the first is run; raise AbciError, naming the place."""
        for place, inner in enumerate(messages):
            route = self._routes().get(show(inner.type_url))
            if route is None:
                raise sdk_error(6, f"unrecognized message route: {show(inner.type_url)}")
            try:
                route.validate(inner.value)
            except AbciError as error:
                raise AbciError(error.codespace, error.code, f"msg {place}: {error.log}") from error

    def revoke(self, context: Context, value: bytes) -> bytes:
        """Handle MsgRevoke."""
        message = wire.MsgRevoke.FromString(value)
        granter_text, grantee_text = show(message.granter), show(message.grantee)
        granter, grantee = address(context, granter_text, "granter"), address(context, grantee_text, "grantee")
        if granter == grantee:
            raise AbciError("authz", 7, "grantee and granter should be different")
        if not message.msg_type_url:
            raise sdk_error(18, "missing msg method name")
        authz_store.delete(context, granter, grantee, show(message.msg_type_url))
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
        authz_store.forget_expired(context)

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


def _check_expiration(context: Context, grant: wire.Grant) -> None:
    if not authz_store.alive(context, grant):
        now, asked = rfc3339(context.time_ns), rfc3339(authz_store.expires_ns(grant) or 0)
        what = f"expiration must be after the current block time ({now}), got {asked}"
        raise AbciError("authz", EXPIRED, f"{what}: expiration time of authorization should be more than current time")


def _authorize(context: Context, granter: bytes, grantee: bytes, inner: wire.AnyValue) -> None:
    """Use the granter's grant, unless the message is the grantee's own; raise AbciError."""
    if granter == grantee:
        return
    url = show(inner.type_url)
    grant = authz_store.get(context, granter, grantee, url)
    if grant is None:
        names = [bech32.encode(context.prefix, raw) for raw in (granter, grantee)]
        who = f"granter: {names[0]}, grantee: {names[1]} & msgType: {url} "
        raise AbciError(
            "authz", authz_store.NOT_FOUND, f"failed to get grant with given {who}: authorization not found"
        )
    if not authz_store.alive(context, grant):
        raise AbciError("authz", 8, "authorization expired")
    accepted = authorizations.accept(context, grant.authorization, inner.value)
    if accepted.used_up:
        authz_store.delete(context, granter, grantee, url)
    elif accepted.left is not None:
        authz_store.update(context, granter, grantee, url, accepted.left)


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
    if request.msg_type_url:
        stored = authz_store.get(context, granter, grantee, request.msg_type_url)
        if stored is None or not authz_store.alive(context, stored):
            text = f"authorization not found for {request.msg_type_url} type"
            raise QueryError(grpc.StatusCode.UNKNOWN, f"codespace authz code 2: authorization not found: {text}")
        return query.QueryGrantsResponse(grants=[_plain(stored)])
    listed = authz_store.entries(context, authz_store.pair(granter, grantee))
    shown, pagination = page([_plain(grant) for _, _, grant in listed], request.pagination)
    return query.QueryGrantsResponse(grants=shown, pagination=pagination)


def _granter_grants(context: Context, request: Any) -> Any:
    granter = account(context, request.granter)
    listed = [
        _named(context, *entry)
        for entry in authz_store.entries(context, authz_store.GRANT_KEY + bytes([len(granter)]) + granter)
    ]
    shown, pagination = page(listed, request.pagination)
    return query.QueryGranterGrantsResponse(grants=shown, pagination=pagination)


def _grantee_grants(context: Context, request: Any) -> Any:
    grantee = account(context, request.grantee)
    listed = [
        _named(context, *entry) for entry in authz_store.entries(context, authz_store.GRANT_KEY) if entry[1] == grantee
    ]
    shown, pagination = page(listed, request.pagination)
    return query.QueryGranteeGrantsResponse(grants=shown, pagination=pagination)
