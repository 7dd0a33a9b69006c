"""Balances as x/bank keeps them: sending, events and the gas that storage costs there."""

from __future__ import annotations

from collections.abc import Iterator

from gonka_devnet import accounts, bech32, coins
from gonka_devnet.errors import sdk_error
from gonka_devnet.module import AbciError, Context

PREFIX = b"\x02b"
BY_DENOM = b"\x02d"
SUPPLY = b"\x02s"
PARAMS = b"\x02p"
SEND_ENABLED = b"\x02e"
RESTRICTIONS = b"\x02r"
RESTRICTED_UNTIL = 1_000_000
# What the chain spends on finding out that nobody is exempt, as measured on one recorded transaction.
RESTRICTION_GAS = 5_200
RESTRICTED = (
    "user-to-user transfers are restricted during bootstrap period. Restriction ends at block {end} "
    "(current: {now}, remaining: {left} blocks). Allowed transfers: gas payments, protocol interactions "
    "(inference, governance, staking), and module operations: transfer restricted during bootstrap period"
)


def _key(raw: bytes, denom: str) -> bytes:
    return PREFIX + bytes([len(raw)]) + raw + denom.encode("utf-8", "surrogateescape")


def get(context: Context, raw: bytes, denom: str) -> int:
    """Return the balance in the smallest unit."""
    return int(context.store.get(_key(raw, denom)) or b"0")


def all_of(context: Context, raw: bytes) -> Iterator[tuple[str, int]]:
    """Yield denomination and balance of an account, by denomination."""
    start = _key(raw, "")
    for key, value in context.store.iterate(start):
        yield key[len(start) :].decode(), int(value)


def supply(context: Context) -> Iterator[tuple[str, int]]:
    """Yield every denomination with its total."""
    for key, value in context.store.iterate(SUPPLY):
        yield key[len(SUPPLY) :].decode(), int(value)


def restrict(context: Context, until: int) -> None:
    """Forbid sends between users until a height; 0 lets them go."""
    if until:
        context.store.set(RESTRICTIONS, str(until).encode())
    else:
        context.store.delete(RESTRICTIONS)


def check_restriction(context: Context) -> None:
    """Raise AbciError where sends between users are forbidden still."""
    end = int(context.store.get(RESTRICTIONS) or b"0")
    if context.height < end:
        context.gas.consume(RESTRICTION_GAS, "restrictions")
        text = RESTRICTED.format(end=end, now=context.height, left=end - context.height)
        raise AbciError("restrictions", 1108, text)


def _put(context: Context, raw: bytes, denom: str, amount: int) -> None:
    key, index = _key(raw, denom), BY_DENOM + denom.encode() + b"\x00" + raw
    if amount:
        context.store.set(index, b"")
        context.store.set(key, str(amount).encode())
    else:
        context.store.delete(index)
        context.store.delete(key)


def mint(context: Context, raw: bytes, denom: str, amount: int) -> None:
    """Create coins at genesis: the account, its balance and the supply grow."""
    if not accounts.exists(context, raw):
        accounts.create(context, raw)
    _put(context, raw, denom, get(context, raw, denom) + amount)
    total = int(context.store.get(SUPPLY + denom.encode()) or b"0")
    context.store.set(SUPPLY + denom.encode(), str(total + amount).encode())


def subtract(context: Context, raw: bytes, amounts: coins.Coins) -> None:
    """Take coins from an account; raise AbciError sdk 10 or 5."""
    if not coins.valid(amounts):
        raise sdk_error(10, coins.text(amounts))
    accounts.get(context, raw)
    for denom, amount in amounts:
        balance = get(context, raw, denom)
        if balance < amount:
            raise sdk_error(5, f"spendable balance {balance}{denom} is smaller than {amount}{denom}")
        _put(context, raw, denom, balance - amount)
    spender = bech32.encode(context.prefix, raw)
    context.emit("coin_spent", spender=spender, amount=coins.text(amounts))


def add(context: Context, raw: bytes, amounts: coins.Coins) -> None:
    """Give coins to an account's bytes."""
    for denom, amount in amounts:
        _put(context, raw, denom, get(context, raw, denom) + amount)
    context.emit("coin_received", receiver=bech32.encode(context.prefix, raw), amount=coins.text(amounts))


def receive(context: Context, recipient: bytes, amounts: coins.Coins, sender: str) -> None:
    """Give coins that were taken from sender, and make the recipient's account if it is new."""
    add(context, recipient, amounts)
    if not accounts.exists(context, recipient):
        accounts.create(context, recipient)
    to = bech32.encode(context.prefix, recipient)
    context.emit("transfer", recipient=to, sender=sender, amount=coins.text(amounts))


def send(context: Context, sender: bytes, recipient: bytes, amounts: coins.Coins) -> None:
    """Move coins and make the recipient's account if it is new; raise AbciError sdk 10 or 5."""
    frm = bech32.encode(context.prefix, sender)
    subtract(context, sender, amounts)
    receive(context, recipient, amounts, frm)
    context.emit("message", sender=frm)
