"""x/auth: the queries for accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
from cosmpy.protos.cosmos.auth.v1beta1 import auth_pb2
from cosmpy.protos.cosmos.auth.v1beta1 import query_pb2 as query
from google.protobuf.any_pb2 import Any as AnyMessage

from gonka_devnet import accounts, bech32
from gonka_devnet.bank import served
from gonka_devnet.errors import invalid_argument, sdk_query_error
from gonka_devnet.module import Context, Message, QueryError
from gonka_devnet.paging import page

SERVICE = "/cosmos.auth.v1beta1.Query/"
MODULE_ACCOUNTS = {"fee_collector": (), "bonded_tokens_pool": ("burner", "staking")}
PARAMS = {
    "max_memo_characters": 256,
    "tx_sig_limit": 7,
    "tx_size_cost_per_byte": 10,
    "sig_verify_cost_ed25519": 590,
    "sig_verify_cost_secp256k1": 1000,
}


def _find(context: Context, text: str) -> Any:
    if not text:
        raise invalid_argument("Address cannot be empty")
    try:
        raw = bech32.account_bytes(text, context.prefix)
    except bech32.PrefixError as error:
        raise sdk_query_error(35, str(error)) from error
    except ValueError as error:
        raise QueryError(grpc.StatusCode.UNKNOWN, str(error)) from error
    account = accounts.get(context, raw)
    if account is None:
        raise QueryError(grpc.StatusCode.NOT_FOUND, f"account {text} not found")
    return account


def _any(account: Any) -> AnyMessage:
    return AnyMessage(type_url="/" + account.DESCRIPTOR.full_name, value=account.SerializeToString())


def _account(context: Context, request: Any) -> Any:
    return query.QueryAccountResponse(account=_any(_find(context, request.address)))


def _info(context: Context, request: Any) -> Any:
    return query.QueryAccountInfoResponse(info=_find(context, request.address))


def _accounts(context: Context, request: Any) -> Any:
    shown, pagination = page(list(accounts.everyone(context)), request.pagination)
    return query.QueryAccountsResponse(accounts=[_any(account) for account in shown], pagination=pagination)


def _by_number(context: Context, request: Any) -> Any:
    raw = context.store.get(accounts.NUMBERS + (request.account_id or max(request.id, 0)).to_bytes(8, "big"))
    if raw is None:
        raise QueryError(grpc.StatusCode.NOT_FOUND, f"account address not found with account number {request.id}")
    return query.QueryAccountAddressByIDResponse(account_address=bech32.encode(context.prefix, raw))


def _module_account(context: Context, request: Any) -> Any:
    if request.name not in MODULE_ACCOUNTS:
        raise QueryError(grpc.StatusCode.NOT_FOUND, f"account {request.name} not found")
    raw = bech32.module_account(request.name)
    base = accounts.get(context, raw) or auth_pb2.BaseAccount(address=bech32.encode(context.prefix, raw))
    found = auth_pb2.ModuleAccount(base_account=base, name=request.name, permissions=MODULE_ACCOUNTS[request.name])
    return query.QueryModuleAccountByNameResponse(account=_any(found))


def _prefix(context: Context, _request: Any) -> Any:
    return query.Bech32PrefixResponse(bech32_prefix=context.prefix)


class Auth:
    """The module; its rules for transactions are in ante.py."""

    @property
    def messages(self) -> Mapping[str, Message]:
        """None."""
        return {}

    @property
    def queries(self) -> Mapping[str, Callable[[Context, bytes], bytes]]:
        """Accounts and parameters."""
        table: dict[str, tuple[Any, Callable[[Context, Any], Any]]] = {
            "Account": (query.QueryAccountRequest, _account),
            "AccountInfo": (query.QueryAccountInfoRequest, _info),
            "Accounts": (query.QueryAccountsRequest, _accounts),
            "AccountAddressByID": (query.QueryAccountAddressByIDRequest, _by_number),
            "ModuleAccountByName": (query.QueryModuleAccountByNameRequest, _module_account),
            "Bech32Prefix": (query.Bech32PrefixRequest, _prefix),
            "Params": (query.QueryParamsRequest, lambda _c, _r: query.QueryParamsResponse(params=PARAMS)),
        }
        return {SERVICE + name: served(*entry) for name, entry in table.items()}

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Write the parameters and the fee collector's account."""
        context.store.set(accounts.PARAMS, accounts.PARAMS_VALUE)
        accounts.create(context, bech32.module_account("fee_collector"))

    def begin_block(self, context: Context) -> None:
        """Forget unordered timestamps that are past."""
        accounts.forget_timestamps(context)

    def end_block(self, context: Context) -> None:
        """Do nothing."""
