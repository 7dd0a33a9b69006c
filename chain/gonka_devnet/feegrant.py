"""x/feegrant: messages and queries; the kinds of allowances are in allowances.py, their use in grants.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2
from cosmpy.protos.cosmos.feegrant.v1beta1 import query_pb2 as query
from cosmpy.protos.cosmos.feegrant.v1beta1 import tx_pb2 as strict
from google.protobuf.any_pb2 import Any as AnyMessage

from gonka_devnet import allowances, bech32, grants
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.bank import account, address, served
from gonka_devnet.errors import sdk_error, show
from gonka_devnet.module import Context, Message, QueryError
from gonka_devnet.paging import page

SERVICE = "/cosmos.feegrant.v1beta1.Query/"
MSG = "/cosmos.feegrant.v1beta1."


def grant_allowance(context: Context, value: bytes) -> bytes:
    """Handle MsgGrantAllowance."""
    message = wire.MsgGrantAllowance.FromString(value)
    granter_text, grantee_text = show(message.granter), show(message.grantee)
    if granter_text == grantee_text:
        raise sdk_error(7, "cannot self-grant fee authorization")
    granter, grantee = address(context, granter_text, "granter"), address(context, grantee_text, "grantee")
    allowances.check(message.allowance)
    grants.give(context, granter, grantee, message.allowance)
    return b""


def revoke_allowance(context: Context, value: bytes) -> bytes:
    """Handle MsgRevokeAllowance."""
    message = wire.MsgRevokeAllowance.FromString(value)
    granter_text, grantee_text = show(message.granter), show(message.grantee)
    granter, grantee = address(context, granter_text, "granter"), address(context, grantee_text, "grantee")
    grants.take_back(context, granter, grantee)
    return b""


def _grant(context: Context, granter: bytes, grantee: bytes, allowance: wire.AnyValue) -> Any:
    return feegrant_pb2.Grant(
        granter=bech32.encode(context.prefix, granter),
        grantee=bech32.encode(context.prefix, grantee),
        allowance=AnyMessage(type_url=show(allowance.type_url), value=allowance.value),
    )


def _allowance(context: Context, request: Any) -> Any:
    granter, grantee = account(context, request.granter), account(context, request.grantee)
    found = grants.get(context, granter, grantee)
    if found is None:
        raise QueryError(grpc.StatusCode.INTERNAL, "fee-grant not found: not found")
    return query.QueryAllowanceResponse(allowance=_grant(context, granter, grantee, found))


def _allowances(context: Context, request: Any) -> Any:
    listed = [_grant(context, *entry) for entry in grants.all_of(context, account(context, request.grantee))]
    shown, pagination = page(listed, request.pagination)
    return query.QueryAllowancesResponse(allowances=shown, pagination=pagination)


def _by_granter(context: Context, request: Any) -> Any:
    granter = account(context, request.granter)
    listed = [_grant(context, *entry) for entry in grants.all_of(context) if entry[0] == granter]
    shown, pagination = page(listed, request.pagination)
    return query.QueryAllowancesByGranterResponse(allowances=shown, pagination=pagination)


class Feegrant:
    """The module."""

    @property
    def messages(self) -> Mapping[str, Message]:
        """MsgGrantAllowance and MsgRevokeAllowance."""
        types = strict.DESCRIPTOR.message_types_by_name
        return {
            MSG + "MsgGrantAllowance": Message(
                lambda value: show(wire.MsgGrantAllowance.FromString(value).granter),
                grant_allowance,
                MSG + "MsgGrantAllowanceResponse",
                descriptor=types["MsgGrantAllowance"],
            ),
            MSG + "MsgRevokeAllowance": Message(
                lambda value: show(wire.MsgRevokeAllowance.FromString(value).granter),
                revoke_allowance,
                MSG + "MsgRevokeAllowanceResponse",
                descriptor=types["MsgRevokeAllowance"],
            ),
        }

    @property
    def queries(self) -> Mapping[str, Callable[[Context, bytes], bytes]]:
        """Allowances."""
        return {
            SERVICE + "Allowance": served(query.QueryAllowanceRequest, _allowance),
            SERVICE + "Allowances": served(query.QueryAllowancesRequest, _allowances),
            SERVICE + "AllowancesByGranter": served(query.QueryAllowancesByGranterRequest, _by_granter),
        }

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Do nothing."""

    def begin_block(self, context: Context) -> None:
        """Do nothing."""

    def end_block(self, context: Context) -> None:
        """Drop the allowances that have expired."""
        grants.forget_expired(context)
