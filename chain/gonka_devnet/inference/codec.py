"""Protobuf in and out: of messages, of queries, and of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Proto

from gonka_devnet.module import AbciError, Context, Message, QueryError, Store

PACKAGE = "inference.inference"

P = TypeVar("P", bound=Proto)
Query = Callable[[Context, bytes], bytes]


def type_url(kind: type[Proto]) -> str:
    """Return the type URL of a message, such as /inference.inference.MsgJoinTraining."""
    return f"/{kind.DESCRIPTOR.full_name}"


def message(
    kind: type[P],
    response: type[Proto],
    handle: Callable[[Context, P], Proto],
    validate: Callable[[P], None] = lambda _message: None,
) -> tuple[str, Message]:
    """Return the entry of a message whose field `creator` signs it."""
    return type_url(kind), Message(
        signer=lambda value: _creator(decode_message(kind, value)),
        handle=lambda context, value: handle(context, decode_message(kind, value)).SerializeToString(),
        response_type_url=type_url(response),
        validate=lambda value: validate(decode_message(kind, value)),
        descriptor=kind.DESCRIPTOR,
    )


def query(name: str, kind: type[P], answer: Callable[[Context, P], Proto]) -> tuple[str, Query]:
    """Return the entry of a query of the chain's Query service."""
    return f"/{PACKAGE}.Query/{name}", lambda context, value: answer(
        context, _decode_request(kind, value)
    ).SerializeToString()


def decode_message(kind: type[P], value: bytes) -> P:
    """Decode a transaction's message; bytes that are none are sdk 2 (the application refuses unknown fields)."""
    try:
        return kind.FromString(value)
    except DecodeError as error:
        raise AbciError("sdk", 2, f"{error}: tx parse error") from error


def load(store: Store, key: bytes, kind: type[P]) -> P | None:
    """Return the message under a key, or None."""
    value = store.get(key)
    return None if value is None else kind.FromString(value)


def load_all(store: Store, prefix: bytes, kind: type[P]) -> list[P]:
    """Return the messages under a prefix, in the order of their keys."""
    return [kind.FromString(value) for _, value in store.iterate(prefix)]


def save(store: Store, key: bytes, value: Proto) -> None:
    """Write a message under a key."""
    store.set(key, value.SerializeToString(deterministic=True))


def _creator(decoded: Any) -> str:
    creator: bytes = decoded.creator
    return creator.decode("utf-8", "surrogateescape")


def _decode_request(kind: type[P], value: bytes) -> P:
    try:
        return kind.FromString(value)
    except DecodeError as error:
        raise QueryError(grpc.StatusCode.INTERNAL, f"grpc: error unmarshalling request: {error}") from error
