"""Drive the devnet's Gonka module as an application would, and replay recorded cases through it."""

from __future__ import annotations

import base64
import calendar
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgExec, MsgExecResponse
from cosmpy.protos.cosmos.base.abci.v1beta1.abci_pb2 import TxMsgData
from cosmpy.protos.cosmos.tx.v1beta1.service_pb2 import BroadcastTxRequest
from cosmpy.protos.cosmos.tx.v1beta1.tx_pb2 import TxBody, TxRaw
from gonka_devnet.module import AbciError, Context, Event, Module, QueryError

RECORDED = Path(__file__).resolve().parents[2] / "data" / "golden" / "gonka"
START_NS = calendar.timegm((2026, 11, 30, 15, 3, 39)) * 10**9
EXEC_URL = "/cosmos.authz.v1beta1.MsgExec"


class MemoryStore:
    """A store in a dict; the copy taken before each message is what a failed one leaves behind."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.values.get(key)

    def set(self, key: bytes, value: bytes) -> None:
        self.values[key] = value

    def delete(self, key: bytes) -> None:
        self.values.pop(key, None)

    def iterate(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        yield from [(key, self.values[key]) for key in sorted(self.values) if key.startswith(prefix)]


class FreeGas:
    def consume(self, amount: int, why: str) -> None:
        pass


@dataclass
class Outcome:
    """What a transaction came to; `checked` means that it was refused before any block."""

    code: int = 0
    codespace: str = ""
    log: str = ""
    checked: bool = False
    responses: list[tuple[str, bytes]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class Chain:
    """Blocks over one module: one transaction runs at a height, and each block ends once."""

    def __init__(self, module: Module, document: dict[str, Any] | None = None, prefix: str = "gonka") -> None:
        self.module = module
        self.store = MemoryStore()
        self.height = 1
        self.prefix = prefix
        self.times_ns: dict[int, int] = {}
        module.genesis(self.context(0), document or {})

    def context(self, height: int) -> Context:
        time_ns = self.times_ns.get(height, START_NS + height * 10**9)
        return Context(self.store, FreeGas(), height, time_ns, "replay", self.prefix, "ngonka")

    def go_to(self, height: int) -> None:
        """End all blocks before this one."""
        while self.height < height:
            self.module.begin_block(self.context(self.height))
            self.module.end_block(self.context(self.height))
            self.height += 1

    def send(self, url: str, value: bytes) -> Outcome:
        """Check and run one message in the current block; its writes are dropped when it fails."""
        message = self.module.messages[url]
        try:
            message.validate(value)
        except AbciError as error:
            return Outcome(error.code, error.codespace, error.log, checked=True)
        context = self.context(self.height)
        before = dict(self.store.values)
        try:
            response = message.handle(context, value)
        except AbciError as error:
            self.store.values = before
            return Outcome(error.code, error.codespace, error.log)
        return Outcome(responses=[(message.response_type_url, response)], events=context.events)

    def ask(self, method: str, request: bytes = b"", height: int | None = None) -> bytes:
        return self.module.queries[method](self.context(height or self.height), request)


def recorded(topic: str) -> list[dict[str, Any]]:
    return json.loads((RECORDED / f"{topic}.json").read_text())


def find(topic: str, name: str) -> dict[str, Any]:
    return next(case for case in recorded(topic) if case["name"] == name)


def messages_of(case: dict[str, Any]) -> list[tuple[str, bytes]]:
    """The messages of a recorded BroadcastTx, those inside a MsgExec in its place."""
    request = BroadcastTxRequest.FromString(base64.b64decode(case["request_base64"]))
    body = TxBody.FromString(TxRaw.FromString(request.tx_bytes).body_bytes)
    for each in body.messages:
        if each.type_url == EXEC_URL:
            return [(inner.type_url, inner.value) for inner in MsgExec.FromString(each.value).msgs]
    return [(each.type_url, each.value) for each in body.messages]


def recorded_responses(case: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Type URL and bytes of each response, those inside a MsgExecResponse in its place."""
    data = TxMsgData.FromString(bytes.fromhex(case["answer"]["tx_response"].get("data", "")))
    responses: list[tuple[str, bytes]] = []
    for message, response in zip(case["answer"]["tx"]["body"]["messages"], data.msg_responses, strict=False):
        if message["@type"] != EXEC_URL:
            responses.append((response.type_url, response.value))
            continue
        results = MsgExecResponse.FromString(response.value).results
        responses += [(i["@type"] + "Response", r) for i, r in zip(message["msgs"], results, strict=True)]
    return responses


def recorded_time_ns(case: dict[str, Any]) -> int:
    stamp = time.strptime(case["answer"]["tx_response"]["timestamp"], "%Y-%m-%dT%H:%M:%SZ")
    return calendar.timegm(stamp) * 10**9


def expected_of_query(case: dict[str, Any]) -> tuple[str, Any]:
    if "error" in case:
        return "error", (case["error"]["code"], case["error"]["details"])
    return "answer", base64.b64decode(case["answer_base64"])


def outcome_of_query(chain: Chain, case: dict[str, Any], height: int) -> tuple[str, Any]:
    try:
        return "answer", chain.ask(case["method"], base64.b64decode(case["request_base64"]), height)
    except QueryError as error:
        return "error", (error.status.name, error.details)
