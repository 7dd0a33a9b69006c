"""The application: runs transactions and queries over the state, through the modules (baseapp)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import grpc
from google.protobuf.message import DecodeError

from gonka_devnet import ante
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.ante import Mode, Run
from gonka_devnet.errors import raw_bytes, sdk_error
from gonka_devnet.gas import UNLIMITED, GasStore, Meter
from gonka_devnet.module import AbciError, Context, Event, Message, Module, QueryError, Store
from gonka_devnet.signature import Verifier
from gonka_devnet.store import Layer
from gonka_devnet.transaction import Decoder, Tx

OUT_OF_GAS = 11


@dataclass(frozen=True)
class Chain:
    """What never changes: names, and the node's minimum gas prices by denomination."""

    chain_id: str
    prefix: str
    denom: str
    prices: dict[str, Fraction]


@dataclass(frozen=True)
class At:
    """A block's height and its time in nanoseconds since 1970."""

    height: int
    time_ns: int


def wire_events(events: Iterable[Event]) -> list[wire.Event]:
    """Return events as the chain sends them, every attribute indexed."""
    return [
        wire.Event(
            type=raw_bytes(event.kind),
            attributes=[
                wire.EventAttribute(key=raw_bytes(key), value=raw_bytes(value), index=True)
                for key, value in event.attributes
            ],
        )
        for event in events
    ]


def module_of(type_url: str) -> str:
    """Return the module that a message's type URL names: its second part, as the SDK reads it."""
    parts = type_url.split(".")
    return parts[1] if len(parts) > 1 else ""


class App:
    """Ante rules and modules over a state that the caller brings."""

    def __init__(self, chain: Chain, modules: Sequence[Module]) -> None:
        self.chain = chain
        self.modules = modules
        self.messages: dict[str, Message] = {}
        self.queries: dict[str, Callable[[Context, bytes], bytes]] = {}
        for module in modules:
            self.messages.update(module.messages)
            self.queries.update(module.queries)
        self.decoder = Decoder(self.messages, chain.prefix)
        self._verifier = Verifier()

    def context(self, store: Store, at: At, gas: Meter | None = None) -> Context:
        """Return a context over the store; with a meter, every access to the store costs."""
        meter = gas or Meter(UNLIMITED)
        seen = store if gas is None else GasStore(store, gas)
        names = self.chain
        return Context(seen, meter, at.height, at.time_ns, names.chain_id, names.prefix, names.denom)

    def _basic(self, tx: Tx) -> None:
        if not tx.body.messages:
            raise sdk_error(18, "must contain at least one message")
        for url, value in tx.messages:
            self.messages[url].validate(value)

    def _ante(self, tx: Tx, store: Store, at: At, mode: Mode, meter: Meter) -> list[Event]:
        """Run the rules; their writes reach the store when all pass."""
        self._basic(tx)
        layer = Layer(store)
        context = self.context(layer, at, meter)
        ante.check(Run(tx, context, mode, self.chain.prices, self._verifier))
        layer.commit()
        return context.events

    def _execute(self, tx: Tx, store: Store, at: At, meter: Meter) -> tuple[list[wire.AnyValue], list[Event]]:
        """Run the messages, all or none."""
        layer, responses, events = Layer(store), [], []
        for place, (url, value) in enumerate(tx.messages):
            context = self.context(layer, at, meter)
            try:
                response = self.messages[url].handle(context, value)
            except AbciError as error:
                raise _executing(place, error) from error
            except DecodeError as error:
                raise _executing(place, sdk_error(2, str(error))) from error
            responses.append(wire.AnyValue(type_url=raw_bytes(self.messages[url].response_type_url), value=response))
            events += self._message_events(place, url, value, context.events)
        layer.commit()
        return responses, events

    def _message_events(self, place: int, url: str, value: bytes, emitted: list[Event]) -> list[Event]:
        what = (("action", url), ("sender", self.messages[url].signer(value)), ("module", module_of(url)))
        listed = [Event("message", what), *emitted]
        return [Event(event.kind, (*event.attributes, ("msg_index", str(place)))) for event in listed]

    def check(self, tx: Tx, store: Store, at: At, mode: Mode = Mode.CHECK) -> None:
        """Run CheckTx: the ante rules, kept in the store; raise AbciError."""
        self._ante(tx, store, at, mode, Meter(tx.auth.fee.gas_limit))

    def simulate(self, raw: bytes, store: Store, at: At) -> wire.SimulateResponse:
        """Run a transaction on a copy of the state without limits of gas; raise QueryError."""
        meter, layer = Meter(UNLIMITED), Layer(store)
        try:
            tx = self.decoder.decode(raw)
            events = self._ante(tx, layer, at, Mode.SIMULATE, meter)
            responses, more = self._execute(tx, layer, at, meter)
        except AbciError as error:
            text = f"{error.log} with gas used: '{meter.used}'"
            raise QueryError(grpc.StatusCode.UNKNOWN, text) from error
        result = wire.Result(
            data=wire.TxMsgData(msg_responses=responses).SerializeToString(),
            events=wire_events(events + more),
            msg_responses=responses,
        )
        return wire.SimulateResponse(gas_info=wire.GasInfo(gas_wanted=UNLIMITED, gas_used=meter.used), result=result)

    def deliver(self, tx: Tx, store: Store, at: At) -> wire.ExecTxResult:
        """Run a block's transaction; what a failed one leaves in the state is its fee and sequence or timestamp."""
        meter, events = Meter(tx.auth.fee.gas_limit), []
        result = wire.ExecTxResult()
        try:
            events = self._ante(tx, store, at, Mode.DELIVER, meter)
            responses, more = self._execute(tx, store, at, meter)
        except AbciError as error:
            result.code, result.codespace, result.log = error.code, raw_bytes(error.codespace), raw_bytes(error.log)
        else:
            result.data = wire.TxMsgData(msg_responses=responses).SerializeToString()
            events = events + more
        result.gas_wanted, result.gas_used = tx.auth.fee.gas_limit, meter.used
        result.events.extend(wire_events(events))
        return result

    def begin_block(self, store: Store, at: At) -> list[Event]:
        """Run the modules' begin of a block."""
        context = self.context(store, at)
        for module in self.modules:
            module.begin_block(context)
        return [Event(event.kind, (*event.attributes, ("mode", "BeginBlock"))) for event in context.events]

    def end_block(self, store: Store, at: At) -> list[Event]:
        """Run the modules' end of a block."""
        context = self.context(store, at)
        for module in self.modules:
            module.end_block(context)
        return [Event(event.kind, (*event.attributes, ("mode", "EndBlock"))) for event in context.events]

    def query(self, path: str, request: bytes, store: Store, at: At) -> bytes:
        """Answer a module's query; raise QueryError."""
        try:
            return self.queries[path](self.context(Layer(store), at), request)
        except AbciError as error:
            text = f"codespace {error.codespace} code {error.code}: {error.log}"
            raise QueryError(grpc.StatusCode.UNKNOWN, text) from error
        except DecodeError as error:
            raise QueryError(grpc.StatusCode.INTERNAL, "grpc: error unmarshalling request: unexpected EOF") from error


def _executing(place: int, error: AbciError) -> AbciError:
    """Return a message's error as the block tells it; running out of gas ends the whole and keeps its own text."""
    if (error.codespace, error.code) == ("sdk", OUT_OF_GAS):
        return error
    return AbciError(error.codespace, error.code, f"failed to execute message; message index: {place}: {error.log}")
