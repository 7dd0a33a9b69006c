"""The run log's two carriers (`ports.RunLog`): memos of sends to the run's topic, and the training module's records."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.attribution import KvCarrier, MemoCarrier, announced_task, block_records
from gonka_trainer.chain.sender import Sender
from gonka_trainer.chain.transactions import kv_message, send_message
from gonka_trainer.errors import ChainUnavailableError, ConfigError
from gonka_trainer.ports import Block, Chain, Receipt
from gonka_trainer.round.records import PlacedRecord, Record, encode_record, to_text
from gonka_trainer.types import Address, Digest, Height, lp, sha256, u64

_SENT_TAG: Final = b"gonka-trainer/sent/1"
_SEND_AMOUNT: Final = 1  # of the smallest unit: the chain refuses sends of nothing


def sent_digest(where: bytes, records: Sequence[Record]) -> Digest:
    """Return the name under which the sent log keeps these records for this place (topic or task)."""
    return sha256(_SENT_TAG, lp(where), *(lp(encode_record(record)) for record in records))


NO_GRANT_ON_MEMO: Final = (
    "keys.speaks_by = 'authz' cannot be used with carrier = memo: a grant for sends is one for the participant's "
    "money, and a record inside a MsgExec is nothing there"
)


class MemoRunLog:
    """Each record is the memo of a send of one smallest unit to a topic: works on any Cosmos SDK chain."""

    def __init__(self, sender: Sender, topic: Address, prefix: str) -> None:
        self._sender = sender
        self._carrier = MemoCarrier(topic, prefix)
        self._recipient = encode_address(topic, prefix)

    def records(self, block: Block) -> tuple[PlacedRecord, ...]:
        """Return the topic's records of the block in order."""
        return block_records(block, self._carrier)

    async def publish(self, records: Sequence[Record]) -> Receipt:
        """Send the records, a transaction each, one after another.

        Returns the last one's receipt, with the fees and gas of all. ValueError when there are none.
        """
        receipts = [await self._publish(record) for record in records]
        if not receipts:
            raise ValueError("no records to publish")
        fee, gas = sum(receipt.fee for receipt in receipts), sum(receipt.gas_used for receipt in receipts)
        return Receipt(receipts[-1].tx_hash, receipts[-1].height, fee, gas)

    async def _publish(self, record: Record) -> Receipt:
        if self._sender.by_grant:
            raise ConfigError(NO_GRANT_ON_MEMO, "set keys.speaks_by = 'delegate'")
        denom = self._sender.settings.denom
        message = send_message(self._sender.text, self._recipient, _SEND_AMOUNT, denom)
        digest = sent_digest(self._carrier.topic, [record])
        receipt, _ = await self._sender.deliver(digest, [message], to_text(record).encode())
        return receipt


class KvRunLog:
    """Records are values of the training module's key-value store under one task (Gonka v0.2.0 - v0.2.11).

    Their author is the sender's: the key's own account, or the one that has granted the message to the key.
    """

    def __init__(self, sender: Sender, task_id: int, prefix: str) -> None:
        self._sender = sender
        self._carrier = KvCarrier(task_id, prefix)

    @property
    def task_id(self) -> int:
        """The run's task."""
        return self._carrier.task_id

    def records(self, block: Block) -> tuple[PlacedRecord, ...]:
        """Return the task's records of the block in order."""
        return block_records(block, self._carrier)

    async def publish(self, records: Sequence[Record]) -> Receipt:
        """Send all the records in one transaction. ValueError when there are none."""
        if not records:
            raise ValueError("no records to publish")
        author = self._sender.author_text
        messages = [kv_message(author, self.task_id, kv_key(record, author), to_text(record)) for record in records]
        receipt, _ = await self._sender.deliver(sent_digest(u64(self.task_id), records), messages)
        return receipt


def kv_key(record: Record, author: str) -> str:
    """Return the key of a record: round, kind and author, for people who look; readers never read it."""
    round_number = getattr(record, "round", None)
    return f"gt/{'-' if round_number is None else round_number}/{type(record).__name__.lower()}/{author}"


async def find_task(
    chain: Chain, manifest_hash: Digest, log_height: Height, prefix: str, poll_seconds: float = 0.5
) -> int:
    """Return the run's task on the `kv` carrier, reading blocks from `log_height` on until one announces the run.

    The first key-value announcement of the manifest counts, whoever sent it. Waits for blocks that are not there yet.
    """
    height = log_height
    while True:
        try:
            task_id = announced_task(await chain.block(height), manifest_hash, prefix)
        except ChainUnavailableError:
            await asyncio.sleep(poll_seconds)
            continue
        if task_id is not None:
            return task_id
        height = Height(height + 1)
