"""x/bank: sending and the queries for balances and supply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import grpc
from cosmpy.protos.cosmos.bank.v1beta1 import query_pb2 as query
from cosmpy.protos.cosmos.bank.v1beta1 import tx_pb2 as strict

from gonka_devnet import balances, bech32, coins
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import invalid_argument, sdk_error, show
from gonka_devnet.module import Context, Message, QueryError
from gonka_devnet.paging import page

SERVICE = "/cosmos.bank.v1beta1.Query/"
MSG = "/cosmos.bank.v1beta1."


def address(context: Context, text: str, role: str) -> bytes:
    """Return an address's bytes for a handler; raise AbciError sdk 7."""
    try:
        return bech32.account_bytes(text, context.prefix)
    except ValueError as error:
        raise sdk_error(7, f"invalid {role} address: {error}") from error


def amounts_of(listed: Iterable[wire.Coin]) -> coins.Coins:
    """Return coins that can be moved; raise AbciError sdk 10."""
    try:
        amounts = coins.read(listed)
    except coins.CoinError as error:
        raise sdk_error(10, str(error)) from error
    if not amounts or not coins.valid(amounts):
        raise sdk_error(10, coins.text(amounts))
    return amounts


def send(context: Context, value: bytes) -> bytes:
    """Handle MsgSend."""
    message = wire.MsgSend.FromString(value)
    sender = address(context, show(message.from_address), "from")
    recipient = address(context, show(message.to_address), "to")
    amounts = amounts_of(message.amount)
    for denom, _ in amounts:
        context.store.get(balances.SEND_ENABLED + denom.encode())
        context.store.get(balances.PARAMS)
    balances.check_restriction(context)
    balances.send(context, sender, recipient, amounts)
    return b""


def multi_send(context: Context, value: bytes) -> bytes:
    """Handle MsgMultiSend: one sender, many recipients, equal sums."""
    message = wire.MsgMultiSend.FromString(value)
    if len(message.inputs) != 1:
        raise sdk_error(18, "multiple senders not allowed" if message.inputs else "no inputs to send transaction")
    sender, total = show(message.inputs[0].address), amounts_of(message.inputs[0].coins)
    parts = [(address(context, show(part.address), "output"), amounts_of(part.coins)) for part in message.outputs]
    sums: dict[str, int] = {}
    for _, amounts in parts:
        for denom, amount in amounts:
            sums[denom] = sums.get(denom, 0) + amount
    if sums != dict(total):
        raise sdk_error(18, "sum inputs != sum outputs")
    balances.check_restriction(context)
    balances.subtract(context, address(context, sender, "input"), total)
    for recipient, amounts in parts:
        balances.receive(context, recipient, amounts, sender)
    return b""


def account(context: Context, text: str) -> bytes:
    """Return an address's bytes for a query; raise QueryError."""
    try:
        return bech32.account_bytes(text, context.prefix)
    except ValueError as error:
        raise invalid_argument(f"invalid address: {error}") from error


def _coin(denom: str, amount: int) -> Any:
    return query.QueryBalanceResponse(balance={"denom": denom, "amount": str(amount)}).balance


def _balance(context: Context, request: Any) -> Any:
    if not request.denom:
        raise invalid_argument("empty denom")
    held = balances.get(context, account(context, request.address), request.denom)
    return query.QueryBalanceResponse(balance=_coin(request.denom, held))


def _spendable_by_denom(context: Context, request: Any) -> Any:
    held = balances.get(context, account(context, request.address), request.denom)
    return query.QuerySpendableBalanceByDenomResponse(balance=_coin(request.denom, held))


def _listed(response: Any, context: Context, request: Any) -> Any:
    held = [_coin(*pair) for pair in balances.all_of(context, account(context, request.address))]
    shown, pagination = page(held, request.pagination)
    return response(balances=shown, pagination=pagination)


def _supply(context: Context, request: Any) -> Any:
    shown, pagination = page([_coin(*pair) for pair in balances.supply(context)], request.pagination)
    return query.QueryTotalSupplyResponse(supply=shown, pagination=pagination)


def _supply_of(context: Context, request: Any) -> Any:
    total = dict(balances.supply(context)).get(request.denom, 0)
    return query.QuerySupplyOfResponse(amount=_coin(request.denom, total))


def _metadata(_context: Context, request: Any) -> Any:
    raise QueryError(grpc.StatusCode.NOT_FOUND, f"client metadata for denom {request.denom}")


def served(request_type: Any, answer: Callable[[Context, Any], Any]) -> Callable[[Context, bytes], bytes]:
    """Return a query handler over bytes for one over messages."""
    return lambda context, value: bytes(answer(context, request_type.FromString(value)).SerializeToString())


class Bank:
    """The module."""

    @property
    def messages(self) -> Mapping[str, Message]:
        """MsgSend and MsgMultiSend."""
        types = strict.DESCRIPTOR.message_types_by_name
        return {
            MSG + "MsgSend": Message(
                lambda value: show(wire.MsgSend.FromString(value).from_address),
                send,
                MSG + "MsgSendResponse",
                descriptor=types["MsgSend"],
            ),
            MSG + "MsgMultiSend": Message(
                lambda value: show(next(iter(wire.MsgMultiSend.FromString(value).inputs), wire.Input()).address),
                multi_send,
                MSG + "MsgMultiSendResponse",
                descriptor=types["MsgMultiSend"],
            ),
        }

    @property
    def queries(self) -> Mapping[str, Callable[[Context, bytes], bytes]]:
        """Balances, supply and parameters."""
        params = query.QueryParamsResponse(params={"default_send_enabled": True})
        table: dict[str, tuple[Any, Callable[[Context, Any], Any]]] = {
            "Balance": (query.QueryBalanceRequest, _balance),
            "AllBalances": (query.QueryAllBalancesRequest, lambda c, r: _listed(query.QueryAllBalancesResponse, c, r)),
            "SpendableBalances": (
                query.QuerySpendableBalancesRequest,
                lambda c, r: _listed(query.QuerySpendableBalancesResponse, c, r),
            ),
            "SpendableBalanceByDenom": (query.QuerySpendableBalanceByDenomRequest, _spendable_by_denom),
            "TotalSupply": (query.QueryTotalSupplyRequest, _supply),
            "SupplyOf": (query.QuerySupplyOfRequest, _supply_of),
            "Params": (query.QueryParamsRequest, lambda _c, _r: params),
            "DenomMetadata": (query.QueryDenomMetadataRequest, _metadata),
            "DenomsMetadata": (query.QueryDenomsMetadataRequest, lambda _c, _r: query.QueryDenomsMetadataResponse()),
        }
        return {SERVICE + name: served(*entry) for name, entry in table.items()}

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Give each of `balances` (address to amount of the chain's denomination) its coins.

        Until the height `restricted_until` (0: never) sends between users fail.
        """
        for text, amount in document.get("balances", {}).items():
            balances.mint(context, bech32.account_bytes(text, context.prefix), context.denom, int(amount))

        balances.restrict(context, int(document.get("restricted_until", 0)))

    def begin_block(self, context: Context) -> None:
        """Do nothing."""

    def end_block(self, context: Context) -> None:
        """Do nothing."""
