"""Amounts of coins as text and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import raw_bytes, show

Coins = list[tuple[str, int]]
DENOM = re.compile(r"[a-zA-Z][a-zA-Z0-9/:._-]{2,127}\Z")
AMOUNT = re.compile(r"-?[0-9]{1,78}", re.ASCII)


class CoinError(ValueError):
    """Coins that cannot be read."""


def read(coins: Iterable[wire.Coin]) -> Coins:
    """Return the coins of a message in their order; raise CoinError where an amount is no whole number of 256 bits."""
    found = []
    for coin in coins:
        text = show(coin.amount)
        if not AMOUNT.fullmatch(text):
            raise CoinError(f"invalid amount: {text}")
        found.append((show(coin.denom), int(text)))
    return found


def write(coins: Coins) -> list[wire.Coin]:
    """Return the coins as messages."""
    return [wire.Coin(denom=raw_bytes(denom), amount=str(amount).encode()) for denom, amount in coins]


def text(coins: Coins) -> str:
    """Return them as the chain prints them: 3ngonka,5other."""
    return ",".join(f"{amount}{denom}" for denom, amount in coins)


def valid(coins: Coins) -> bool:
    """Return whether they are sorted by denomination, without repetition, each well named and above 0."""
    denoms = [denom for denom, _ in coins]
    well_named = all(DENOM.match(denom) for denom in denoms)
    return well_named and denoms == sorted(set(denoms)) and all(amount > 0 for _, amount in coins)
