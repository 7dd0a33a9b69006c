"""The refusals of the SDK that the application speaks (codespace "sdk"), as `msg: description`."""

from __future__ import annotations

import grpc

from gonka_devnet.module import AbciError, QueryError

SDK = "sdk"
DESCRIPTIONS = {
    2: "tx parse error",
    3: "invalid sequence",
    4: "unauthorized",
    5: "insufficient funds",
    6: "unknown request",
    7: "invalid address",
    8: "invalid pubkey",
    9: "unknown address",
    10: "invalid coins",
    11: "out of gas",
    12: "memo too large",
    13: "insufficient fee",
    14: "maximum number of signatures exceeded",
    15: "no signatures supplied",
    18: "invalid request",
    19: "tx already in mempool",
    20: "mempool is full",
    21: "tx too large",
    26: "invalid height",
    28: "invalid chain-id",
    30: "tx timeout height",
    31: "unknown extension options",
    32: "incorrect account sequence",
    35: "internal logic error",
    37: "feature not supported",
    38: "not found",
    41: "invalid gas limit",
    42: "tx timeout",
}


def sdk_error(code: int, text: str = "") -> AbciError:
    """Return the SDK's error of that code; its log is `text: description`, or the description alone."""
    description = DESCRIPTIONS[code]
    return AbciError(SDK, code, f"{text}: {description}" if text else description)


def sdk_query_error(code: int, text: str) -> QueryError:
    """Return the same as a query tells it: status UNKNOWN, codespace and code in the text."""
    return QueryError(grpc.StatusCode.UNKNOWN, f"codespace sdk code {code}: {DESCRIPTIONS[code]}: {text}")


def invalid_argument(text: str) -> QueryError:
    """Return an INVALID_ARGUMENT with this text."""
    return QueryError(grpc.StatusCode.INVALID_ARGUMENT, text)


def show(raw: bytes) -> str:
    """Return bytes as text from which the same bytes can be had again (surrogates stand for what is not UTF-8)."""
    return raw.decode("utf-8", "surrogateescape")


def raw_bytes(text: str) -> bytes:
    """Return the bytes of a text made by `show`."""
    return text.encode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Return the text with U+FFFD for each byte that is not UTF-8, as gRPC and JSON encoders write it."""
    return "".join("\ufffd" if "\udc80" <= letter <= "\udcff" else letter for letter in text)
