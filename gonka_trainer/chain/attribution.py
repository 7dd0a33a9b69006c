"""From a block's transactions to records and their authors: pure, total, the same on every host (docs/protocol.md 2).

What counts, decided byte for byte:

* A transaction whose result's code is not 0 is nothing, and is not decoded.
* Decoding is that of the chain for transactions that it executed: protobuf, a repeated singular field's last value
  stands (recorded: `memo_twice_last_wins`), fields that are not read here are skipped. What does not decode is nothing.
* `memo`: exactly one message, of type `/cosmos.bank.v1beta1.MsgSend`, whose recipient is the topic's bech32 text; any
  amount, zero coins or several included. The author is from_address; the record is the whole memo. A send inside
  MsgExec is nothing. The message index is 0.
* `kv`: every `/inference.inference.MsgSubmitTrainingKvRecord` under the task id, alone, among others or inside MsgExec
  (also in several layers, at most MAX_DEPTH: a deeper one is nothing). The author is creator; the record is value; key
  and participant are not read. A bad message voids only itself.
* Message indexes number the leaves depth first from 0: every message that is not a MsgExec which decodes is a leaf,
  whatever its type; a MsgExec takes no number, what it carries does.
* Addresses are strict: lower-case bech32 of 20 bytes under the chain's prefix. Type URLs are compared byte for byte.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError as WireError

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, tx_pb2
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.transactions import EXEC_TYPE, KV_TYPE, SEND_TYPE, Message
from gonka_trainer.errors import DecodeError
from gonka_trainer.ports import Block, TxResult
from gonka_trainer.round.records import Announce, PlacedRecord, Record, from_text
from gonka_trainer.types import Address, Digest

MAX_DEPTH: Final = 16
"""Layers of MsgExec that are looked into; the chain itself refuses more than about ten."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Text of a transaction that may be a record: its message's index, the account that the chain checked, the text."""

    message: int
    author: Address
    text: bytes


@dataclass(frozen=True, slots=True)
class Attributed:
    """A record of a transaction, with its message's index and its author."""

    message: int
    author: Address
    record: Record


@dataclass(frozen=True, slots=True)
class MemoCarrier:
    """Records are memos of sends to the topic."""

    topic: Address
    prefix: str

    def read(self, body: tx_pb2.TxBody) -> Iterator[Claim]:
        """Yield the body's memo, if it goes to the topic."""
        if len(body.messages) != 1 or body.messages[0].type_url != SEND_TYPE:
            return
        try:
            send = tx_pb2.MsgSend.FromString(body.messages[0].value)
            if send.to_address == _topic_text(self):
                yield Claim(0, decode_address(send.from_address, self.prefix), body.memo)
        except (WireError, DecodeError):
            return


@dataclass(frozen=True, slots=True)
class KvCarrier:
    """Records are values of key-value submissions under the task."""

    task_id: int
    prefix: str

    def read(self, body: tx_pb2.TxBody) -> Iterator[Claim]:
        """Yield the values under the task in order."""
        for task_id, claim in kv_claims(body, self.prefix):
            if task_id == self.task_id:
                yield claim


Carrier = MemoCarrier | KvCarrier


@functools.lru_cache(maxsize=64)
def _topic_text(carrier: MemoCarrier) -> bytes:
    return encode_address(carrier.topic, carrier.prefix).encode()


def _inner(message: Message) -> list[Message] | None:
    """Return what a MsgExec carries; None for any other message and for one that does not decode."""
    if message.type_url != EXEC_TYPE:
        return None
    try:
        inner = tx_pb2.MsgExec.FromString(message.value)
    except WireError:
        return None
    return [Message(each.type_url, each.value) for each in inner.msgs]


def leaves(body: tx_pb2.TxBody) -> Iterator[Message]:
    """Yield the messages depth first, those inside MsgExec in its place."""
    waiting = [(Message(each.type_url, each.value), 0) for each in reversed(body.messages)]
    while waiting:
        message, depth = waiting.pop()
        inner = _inner(message) if depth < MAX_DEPTH else None
        if inner is None:
            yield message
        else:
            waiting.extend((each, depth + 1) for each in reversed(inner))


def kv_claims(body: tx_pb2.TxBody, prefix: str) -> Iterator[tuple[int, Claim]]:
    """Yield (task id, claim) of every key-value submission, under any task, depth first."""
    for index, message in enumerate(leaves(body)):
        if message.type_url != KV_TYPE:
            continue
        try:
            kv = inference_pb2.MsgSubmitTrainingKvRecord.FromString(message.value)
            author = decode_address(kv.creator, prefix)
        except (WireError, DecodeError):
            continue
        yield kv.task_id, Claim(index, author, kv.value)


def decode_body(transaction: bytes) -> tx_pb2.TxBody | None:
    """Return the body of a raw transaction; None when it does not decode."""
    try:
        return tx_pb2.TxBody.FromString(tx_pb2.TxRaw.FromString(transaction).body_bytes)
    except WireError:
        return None


def claims(transaction: bytes, result: TxResult, carrier: Carrier) -> tuple[Claim, ...]:
    """Return what may be records of the run in one transaction, in order, whatever its text is."""
    body = decode_body(transaction) if result.code == 0 else None
    return () if body is None else tuple(carrier.read(body))


def _record(text: bytes) -> Record | None:
    try:
        return from_text(text)
    except DecodeError:
        return None


def attribute(transaction: bytes, result: TxResult, carrier: Carrier) -> tuple[Attributed, ...]:
    """Return the run's records in one transaction, in order; never raises, whatever the bytes are."""
    read = ((claim, _record(claim.text)) for claim in claims(transaction, result, carrier))
    return tuple(Attributed(claim.message, claim.author, record) for claim, record in read if record is not None)


def block_records(block: Block, carrier: Carrier) -> tuple[PlacedRecord, ...]:
    """Return the run's records of the block in order: transaction, then message; results by position."""
    return tuple(
        PlacedRecord(position, found.message, found.author, found.record)
        for position, (transaction, result) in enumerate(zip(block.transactions, block.results, strict=True))
        for found in attribute(transaction, result, carrier)
    )


def announced_task(block: Block, manifest_hash: Digest, prefix: str) -> int | None:
    """Return the task id of the block's first key-value announcement of the manifest, None when it has none.

    The run's task on the `kv` carrier is that of the first such announcement from the manifest's log height on; who
    sent it does not matter, for the module accepts records of anybody under the same task.
    """
    for transaction, result in zip(block.transactions, block.results, strict=True):
        body = decode_body(transaction) if result.code == 0 else None
        for task_id, claim in () if body is None else kv_claims(body, prefix):
            record = _record(claim.text)
            if isinstance(record, Announce) and record.manifest_hash == manifest_hash:
                return task_id
    return None
