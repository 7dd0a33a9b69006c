"""What one account has granted to another: authorizations to act for it (x/authz), and fee allowances (x/feegrant)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc
from google.protobuf.message import DecodeError as WireError

from gonka_trainer._pb.gonka_trainer.chain.v1 import grants_pb2, tx_pb2
from gonka_trainer.chain.service import TxService
from gonka_trainer.chain.transport import NodeAnswerError
from gonka_trainer.text import printable

_GENERIC: Final = b"/cosmos.authz.v1beta1.GenericAuthorization"
_SEND: Final = b"/cosmos.authz.v1beta1.SendAuthorization"
_BASIC: Final = b"/cosmos.feegrant.v1beta1.BasicAllowance"
_PERIODIC: Final = b"/cosmos.feegrant.v1beta1.PeriodicAllowance"
_ALLOWED: Final = b"/cosmos.feegrant.v1beta1.AllowedMsgAllowance"
_MAX_PAGES: Final = 20
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Authorization:
    """A grant to act: `message` is the type URL it is for ("" if not known), `kind` what sort of authorization it is.

    It ends at `expires_ns` (block time, nanoseconds; None: never). `limited`: it allows less than every such message.
    The chain lists grants that have ended until it cleans up.
    """

    kind: str
    message: str
    expires_ns: int | None
    limited: bool


@dataclass(frozen=True, slots=True)
class Allowance:
    """Whose fees are paid: `limits` (denomination -> smallest units left; None: no limit), for `messages` (None: all).

    It ends at `expires_ns` (block time, nanoseconds; None: never). The type of a MsgExec is its own, not what it holds.
    """

    kind: str
    limits: dict[str, int] | None
    messages: frozenset[str] | None
    expires_ns: int | None


async def authorizations(service: TxService, granter: str, grantee: str) -> list[Authorization]:
    """Return all that `granter` lets `grantee` do in its name; addresses are bech32 text. Errors as in `TxService`."""
    found: list[Authorization] = []
    page = b""
    for _ in range(_MAX_PAGES):
        request = grants_pb2.QueryGrantsRequest(granter=granter, grantee=grantee)
        request.pagination.key = page
        answer = await service.ask("/cosmos.authz.v1beta1.Query/Grants", request, grants_pb2.QueryGrantsResponse)
        found += [_authorization(grant) for grant in answer.grants]
        page = answer.pagination.next_key
        if not page:
            break
    return found


async def allowance(service: TxService, granter: str, grantee: str) -> Allowance | None:
    """Return the fee allowance that `granter` gives `grantee`, or None. Errors as in `TxService`."""
    request = grants_pb2.QueryAllowanceRequest(granter=granter, grantee=grantee)
    path = "/cosmos.feegrant.v1beta1.Query/Allowance"
    try:
        answer = await service.ask(path, request, grants_pb2.QueryAllowanceResponse)
    except NodeAnswerError as error:
        if error.status is grpc.StatusCode.NOT_FOUND or "not found" in error.details:  # SDK 0.53 says INTERNAL
            return None
        raise
    return _allowance(answer.allowance.allowance)


def _authorization(grant: grants_pb2.Grant) -> Authorization:
    expires = _time(grant.expiration) if grant.HasField("expiration") else None
    kind, value = grant.authorization.type_url, grant.authorization.value
    name = printable(kind).rpartition(".")[2]
    try:
        if kind == _GENERIC:
            return Authorization(name, printable(grants_pb2.GenericAuthorization.FromString(value).msg), expires, False)
    except WireError:
        return Authorization(name, "", expires, True)
    return Authorization(name, "/cosmos.bank.v1beta1.MsgSend" if kind == _SEND else "", expires, True)


def _allowance(value: tx_pb2.Any, messages: frozenset[str] | None = None) -> Allowance:
    name = printable(value.type_url).rpartition(".")[2]
    try:
        if value.type_url == _ALLOWED and messages is None:
            allowed = grants_pb2.AllowedMsgAllowance.FromString(value.value)
            return _allowance(allowed.allowance, frozenset(map(printable, allowed.allowed_messages)))
        if value.type_url == _PERIODIC:
            periodic = grants_pb2.PeriodicAllowance.FromString(value.value)
            left = _coins(periodic.period_can_spend) or {}
            return Allowance(name, left, messages, _end(periodic.basic))
        if value.type_url == _BASIC:
            basic = grants_pb2.BasicAllowance.FromString(value.value)
            return Allowance(name, _coins(basic.spend_limit), messages, _end(basic))
    except (WireError, ValueError):
        pass
    return Allowance(f"{name} (not known to this version)", None, messages, None)


def _end(basic: grants_pb2.BasicAllowance) -> int | None:
    return _time(basic.expiration) if basic.HasField("expiration") else None


def _coins(coins: object) -> dict[str, int] | None:
    """Return the amounts; None for no coins at all, which means no limit."""
    found = {printable(coin.denom): int(coin.amount or b"0") for coin in coins}  # type: ignore[attr-defined]
    return found or None


def _time(moment: tx_pb2.Timestamp) -> int:
    return moment.seconds * _NANOSECONDS + moment.nanos
