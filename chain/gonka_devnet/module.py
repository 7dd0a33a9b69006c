"""What a module of the devnet is: handlers over a key-value store, as Cosmos SDK modules are.

The application (ante rules, transactions, blocks, storage) knows modules only through this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import grpc


class AbciError(Exception):
    """A refusal as the chain says it: codespace, code (never 0) and the log's text without stack positions."""

    def __init__(self, codespace: str, code: int, log: str) -> None:
        super().__init__(log)
        self.codespace = codespace
        self.code = code
        self.log = log


class QueryError(Exception):
    """A query's refusal: the gRPC status and its details."""

    def __init__(self, status: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.status = status
        self.details = details


@dataclass(frozen=True)
class Event:
    """An ABCI event: its type and its attributes in order (key, value)."""

    kind: str
    attributes: tuple[tuple[str, str], ...] = ()


class Store(Protocol):
    """A view of the chain's state; writes of a failed transaction never reach the state below."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value, or None."""

    def set(self, key: bytes, value: bytes) -> None:
        """Write the value."""

    def delete(self, key: bytes) -> None:
        """Remove the key if it is there."""

    def iterate(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys that start with prefix, ascending by bytes, with their values."""


class Gas(Protocol):
    """The meter of one transaction."""

    def consume(self, amount: int, why: str) -> None:
        """Count gas; raise AbciError sdk 11 when the limit is passed."""


@dataclass
class Context:
    """Where a handler runs: state, block and event sink. Queries get one whose height may be historical.

    `prefix` is the bech32 prefix of accounts, `time_ns` the block's time in nanoseconds since 1970.
    """

    store: Store
    gas: Gas
    height: int
    time_ns: int
    chain_id: str
    prefix: str
    denom: str
    events: list[Event] = field(default_factory=list)

    def emit(self, kind: str, **attributes: str) -> None:
        """Append an event with the attributes in the order given."""
        self.events.append(Event(kind, tuple(attributes.items())))


@dataclass(frozen=True)
class Message:
    """How the application handles one message type.

    `signer` reads the signing account's bech32 address from the message's bytes. `handle` takes the message's bytes
    and returns the response's bytes; it raises AbciError. `validate` is the stateless check (ValidateBasic), run in
    CheckTx too.
    """

    signer: Callable[[bytes], str]
    handle: Callable[[Context, bytes], bytes]
    response_type_url: str
    validate: Callable[[bytes], None] = lambda _value: None
    descriptor: Any = None


class Module(Protocol):
    """A set of messages (by type URL) and queries (by full gRPC method path), with genesis and block hooks."""

    @property
    def messages(self) -> Mapping[str, Message]:
        """Type URL, such as /inference.inference.MsgJoinTraining, to its handler."""

    @property
    def queries(self) -> Mapping[str, Callable[[Context, bytes], bytes]]:
        """Method path (/inference.inference.Query/EpochInfo) to its handler; it raises QueryError or AbciError."""

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Write the first state; `document` is the module's part of the genesis file."""

    def begin_block(self, context: Context) -> None:
        """Run before a block's transactions."""

    def end_block(self, context: Context) -> None:
        """Run after a block's transactions."""
