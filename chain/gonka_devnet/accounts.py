"""Accounts as x/auth keeps them: address, number, key and sequence, with the gas that their storage costs there."""

from __future__ import annotations

from collections.abc import Iterator

from cosmpy.protos.cosmos.auth.v1beta1.auth_pb2 import BaseAccount
from google.protobuf.any_pb2 import Any as AnyMessage

from gonka_devnet import bech32
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.gas import has
from gonka_devnet.module import Context

PREFIX = b"\x01a"
NUMBERS = b"\x01n"
NEXT_NUMBER = b"\x01g"
UNORDERED = b"\x01u"
PARAMS = b"\x01p"
PARAMS_VALUE = bytes(13)
BASE_ACCOUNT = "/cosmos.auth.v1beta1.BaseAccount"
SECP256K1 = "/cosmos.crypto.secp256k1.PubKey"
UNORDERED_GAS = 2240


def pack(account: BaseAccount) -> bytes:
    """Return the account in an Any, as it is stored and answered."""
    return AnyMessage(type_url=BASE_ACCOUNT, value=account.SerializeToString()).SerializeToString()


def unpack(value: bytes) -> BaseAccount:
    """Return the account of an Any's bytes."""
    return BaseAccount.FromString(AnyMessage.FromString(value).value)


def get(context: Context, raw: bytes) -> BaseAccount | None:
    """Return the account of these address bytes, or None."""
    value = context.store.get(PREFIX + raw)
    return None if value is None else unpack(value)


def exists(context: Context, raw: bytes) -> bool:
    """Return whether there is such an account."""
    return has(context.store, PREFIX + raw)


def put(context: Context, raw: bytes, account: BaseAccount) -> None:
    """Write an account and the index of account numbers."""
    number = NUMBERS + account.account_number.to_bytes(8, "big")
    if context.store.get(PREFIX + raw) is not None:
        context.store.delete(number)
    has(context.store, number)
    context.store.set(number, raw)
    context.store.set(PREFIX + raw, pack(account))


def create(context: Context, raw: bytes) -> BaseAccount:
    """Make the account with the next number."""
    number = int.from_bytes(context.store.get(NEXT_NUMBER) or b"", "big")
    context.store.set(NEXT_NUMBER, (number + 1).to_bytes(8, "big"))
    account = BaseAccount(address=bech32.encode(context.prefix, raw), account_number=number)
    put(context, raw, account)
    return account


def everyone(context: Context) -> Iterator[BaseAccount]:
    """Yield all accounts in order of their address bytes."""
    for _, value in context.store.iterate(PREFIX):
        yield unpack(value)


def public_key(account: BaseAccount) -> bytes | None:
    """Return the account's compressed secp256k1 key, None before its first transaction."""
    if not account.HasField("pub_key"):
        return None
    return wire.PubKey.FromString(account.pub_key.value).key


def set_public_key(account: BaseAccount, key: bytes) -> None:
    """Give the account its key."""
    account.pub_key.type_url = SECP256K1
    account.pub_key.value = wire.PubKey(key=key).SerializeToString()


def read_params(context: Context) -> None:
    """Pay for a look at the module's parameters, as each ante rule does."""
    context.store.get(PARAMS)


def use_timestamp(context: Context, raw: bytes, timeout_ns: int) -> bool:
    """Remember an unordered transaction's timestamp for its signer; False when it is there already."""
    key = UNORDERED + timeout_ns.to_bytes(8, "big") + raw
    if has(context.store, key):
        return False
    context.store.set(key, b"\x01")
    return True


def forget_timestamps(context: Context) -> None:
    """Drop the unordered timestamps that are past at the block's time."""
    expired = []
    for key, _ in context.store.iterate(UNORDERED):
        if int.from_bytes(key[len(UNORDERED) : len(UNORDERED) + 8], "big") > context.time_ns:
            break
        expired.append(key)
    for key in expired:
        context.store.delete(key)
