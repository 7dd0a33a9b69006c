"""The kinds of fee allowances: basic, periodic, and either of them for some messages only (x/feegrant)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2

from gonka_devnet import coins
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import sdk_error, show
from gonka_devnet.module import AbciError, Context
from gonka_devnet.timestamps import LATEST_SECONDS

PACKAGE = "/cosmos.feegrant.v1beta1."
BASIC, PERIODIC, ALLOWED_MSG = (
    f"{PACKAGE}{kind}" for kind in ("BasicAllowance", "PeriodicAllowance", "AllowedMsgAllowance")
)
CODESPACE = "feegrant"
LIMIT_EXCEEDED, EXPIRED, INVALID_DURATION, NO_ALLOWANCE, NO_MESSAGES, NOT_ALLOWED = 2, 3, 4, 5, 6, 7
DESCRIPTIONS = {
    LIMIT_EXCEEDED: "fee limit exceeded",
    EXPIRED: "fee allowance expired",
    INVALID_DURATION: "invalid duration",
    NO_ALLOWANCE: "no allowance",
    NO_MESSAGES: "allowed messages are empty",
    NOT_ALLOWED: "message not allowed",
}
MESSAGE_GAS = 10


def error(code: int, text: str) -> AbciError:
    """Return the module's error of that code."""
    return AbciError(CODESPACE, code, f"{text}: {DESCRIPTIONS[code]}")


def _read(allowance: wire.AnyValue) -> Any:
    """Return the allowance's message; raise AbciError sdk 29 for a kind that there is not."""
    kinds = {
        BASIC: feegrant_pb2.BasicAllowance,
        PERIODIC: feegrant_pb2.PeriodicAllowance,
        ALLOWED_MSG: feegrant_pb2.AllowedMsgAllowance,
    }
    url = show(allowance.type_url)
    if url not in kinds:
        raise AbciError("sdk", 29, f"{url} is no fee allowance: invalid type")
    return kinds[url].FromString(allowance.value)


def _inner(allowed: Any) -> wire.AnyValue:
    return wire.AnyValue(type_url=allowed.allowance.type_url.encode(), value=allowed.allowance.value)


def _coins(listed: Iterable[Any]) -> coins.Coins:
    return coins.read(wire.Coin(denom=coin.denom.encode(), amount=coin.amount.encode()) for coin in listed)


def _nanoseconds(moment: Any) -> int:
    """Return a Timestamp's or a Duration's nanoseconds, whatever it holds."""
    return int(moment.seconds) * 10**9 + int(moment.nanos)


def _write(listed: Any, amounts: coins.Coins) -> None:
    del listed[:]
    for denom, amount in amounts:
        listed.add(denom=denom, amount=str(amount))


def expires_ns(allowance: wire.AnyValue) -> int | None:
    """Return when it expires, in nanoseconds since 1970, or None."""
    message, url = _read(allowance), show(allowance.type_url)
    if url == ALLOWED_MSG:
        return expires_ns(_inner(message))
    basic = message.basic if url == PERIODIC else message
    return _nanoseconds(basic.expiration) if basic.HasField("expiration") else None


def check(allowance: wire.AnyValue) -> None:
    """Check an allowance that is to be granted; raise AbciError."""
    message, url = _read(allowance), show(allowance.type_url)
    if url == ALLOWED_MSG:
        if not message.HasField("allowance"):
            raise error(NO_ALLOWANCE, "allowance should not be empty")
        if not message.allowed_messages:
            raise error(NO_MESSAGES, "allowed messages shouldn't be empty")
        check(_inner(message))
    elif url == PERIODIC:
        _check_basic(message.basic)
        _check_period(message)
    else:
        _check_basic(message)


def _limit(listed: Iterable[Any], what: str) -> coins.Coins:
    """Return coins that may be empty; raise AbciError sdk 10 where they are no proper sum."""
    try:
        amounts = _coins(listed)
    except coins.CoinError as reason:
        raise sdk_error(10, str(reason)) from reason
    if not coins.valid(amounts):
        raise sdk_error(10, f"{what} amount is invalid: {coins.text(amounts)}")
    return amounts


def _check_basic(basic: Any) -> None:
    _limit(basic.spend_limit, "send")
    if basic.HasField("expiration") and basic.expiration.seconds < 0:
        raise error(INVALID_DURATION, "expiration time cannot be negative")


def _check_period(periodic: Any) -> None:
    limit, total = _limit(periodic.period_spend_limit, "spend"), dict(_coins(periodic.basic.spend_limit))
    if not limit:
        raise sdk_error(10, "spend limit must be positive")
    _limit(periodic.period_can_spend, "can spend")
    if total and not {denom for denom, _ in limit} <= total.keys():
        raise sdk_error(10, "period spend limit has different currency than basic spend limit")
    if periodic.period.seconds < 0:
        raise error(INVALID_DURATION, "negative clock step")


def spend(
    context: Context, allowance: wire.AnyValue, fee: coins.Coins, messages: Sequence[str]
) -> wire.AnyValue | None:
    """Take a fee out of an allowance; return what is left of it, None when it is used up; raise AbciError."""
    message, url = _read(allowance), show(allowance.type_url)
    if url == ALLOWED_MSG:
        return _spend_allowed(context, message, fee, messages)
    done = _spend_period(context, message, fee) if url == PERIODIC else _spend_basic(context, message, fee)
    return None if done else wire.AnyValue(type_url=allowance.type_url, value=message.SerializeToString())


def _spend_allowed(context: Context, allowed: Any, fee: coins.Coins, messages: Sequence[str]) -> wire.AnyValue | None:
    context.gas.consume(MESSAGE_GAS * len(allowed.allowed_messages), "check msg")
    for url in messages:
        context.gas.consume(MESSAGE_GAS, "check msg")
        if url not in allowed.allowed_messages:
            raise error(NOT_ALLOWED, "message does not exist in allowed messages")
    left = spend(context, _inner(allowed), fee, messages)
    if left is None:
        return None
    allowed.allowance.value = left.value
    return wire.AnyValue(type_url=ALLOWED_MSG.encode(), value=allowed.SerializeToString())


def _minus(amounts: coins.Coins, fee: coins.Coins) -> coins.Coins | None:
    """Return what is left, None if that is less than nothing."""
    left = dict(amounts)
    for denom, amount in fee:
        left[denom] = left.get(denom, 0) - amount
    return None if any(amount < 0 for amount in left.values()) else [pair for pair in left.items() if pair[1]]


def _check_alive(context: Context, basic: Any, what: str) -> None:
    if basic.HasField("expiration") and _nanoseconds(basic.expiration) < context.time_ns:
        raise error(EXPIRED, what)


def _spend_basic(context: Context, basic: Any, fee: coins.Coins) -> bool:
    _check_alive(context, basic, "basic allowance")
    if not basic.spend_limit:
        return False
    left = _minus(_coins(basic.spend_limit), fee)
    if left is None:
        raise error(LIMIT_EXCEEDED, "basic allowance")
    _write(basic.spend_limit, left)
    return not left


def _spend_period(context: Context, periodic: Any, fee: coins.Coins) -> bool:
    _check_alive(context, periodic.basic, "absolute limit")
    _begin_period(context, periodic)
    left = _minus(_coins(periodic.period_can_spend), fee)
    if left is None:
        raise error(LIMIT_EXCEEDED, "period limit")
    _write(periodic.period_can_spend, left)
    if not periodic.basic.spend_limit:
        return False
    left = _minus(_coins(periodic.basic.spend_limit), fee)
    if left is None:
        raise error(LIMIT_EXCEEDED, "absolute limit")
    _write(periodic.basic.spend_limit, left)
    return not left


def _begin_period(context: Context, periodic: Any) -> None:
    """Fill up what may be spent where a new period has begun; it never is more than the whole limit."""
    reset, period = _nanoseconds(periodic.period_reset), _nanoseconds(periodic.period)
    if context.time_ns < reset:
        return
    whole, limit = _coins(periodic.basic.spend_limit), _coins(periodic.period_spend_limit)
    _write(periodic.period_can_spend, whole if whole and _minus(whole, limit) is None else limit)
    following = reset + period if context.time_ns <= reset + period else context.time_ns + period
    seconds, periodic.period_reset.nanos = divmod(following, 10**9)
    periodic.period_reset.seconds = min(seconds, LATEST_SECONDS)
