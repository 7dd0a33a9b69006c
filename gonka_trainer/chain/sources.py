"""Where runs come from: announcements on the registry topic, and training tasks; and how a run is announced.

A source only finds: what starts is decided by the operator's own list (app/policy.py).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from google.protobuf.message import DecodeError as WireError

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.attribution import MemoCarrier, block_records, decode_body, leaves
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog, sent_digest
from gonka_trainer.chain.sender import Sender
from gonka_trainer.chain.transactions import CREATE_TASK_TYPE, create_task_message, responses
from gonka_trainer.chain.transport import NotYetError
from gonka_trainer.errors import ChainError, DecodeError
from gonka_trainer.ports import Block, FoundRun, Receipt
from gonka_trainer.round.naming import registry_topic
from gonka_trainer.round.records import MAX_URL_BYTES, Announce
from gonka_trainer.types import Address, Digest, Height

_LOG = logging.getLogger(__name__)

_URI: Final = re.compile(rb"gonka-trainer:manifest/([0-9a-f]{64})(?:\?url=([!-~]{0,400}))?")
_INDEX_LAG_BLOCKS: Final = 10
_MAX_SCAN_BLOCKS: Final = 10_000
_MAX_HEIGHT: Final = (1 << 62) - 1  # beyond, a node refuses the very question
_PRINTABLE: Final = range(0x21, 0x7F)


def manifest_uri(announce: Announce) -> str:
    """Return the dataset URI of a training task for the manifest: its hash, and where the document is."""
    query = f"?url={quote(announce.url, safe=':/')}" if announce.url else ""
    return f"gonka-trainer:manifest/{announce.manifest_hash.hex()}{query}"


def parse_manifest_uri(uri: bytes) -> Announce | None:
    """Read such a URI; None for any other bytes."""
    found = _URI.fullmatch(uri)
    if found is None:
        return None
    url = unquote_to_bytes(found.group(2) or b"")
    if len(url) > MAX_URL_BYTES or not _is_plain(url):
        return None
    return Announce(Digest(bytes.fromhex(found.group(1).decode("ascii"))), url)


def _is_plain(url: bytes) -> bool:
    return all(byte in _PRINTABLE for byte in url)


class MemoTaskSource:
    """Announcements on the registry topic. `accept` has the hashes that may be shown; None shows all."""

    settled = True

    def __init__(self, chain: ChainClient, accept: Collection[Digest] | None) -> None:
        self._chain = chain
        self._accept = accept

    async def runs(self, since: Height) -> tuple[FoundRun, ...]:
        """Return the runs announced at or after the height, oldest first, each author's announcement once.

        The index says where to look, but for the newest blocks, which it may not have yet; the blocks say what counts.
        Without an index, or when strangers have flooded the topic, only the newest 10,000 blocks are read.
        """
        info = await self._chain.info()
        carrier = MemoCarrier(registry_topic(info.chain_id), self._chain.prefix)
        start = max(since, info.earliest_height)
        found: dict[tuple[Digest, Address, bytes], FoundRun] = {}
        for height in await self._heights(carrier, start, info.height):
            for run in await self._announced(carrier, height):
                found.setdefault((run.manifest_hash, run.author, run.url.encode()), run)
        return tuple(found.values())

    async def _heights(self, carrier: MemoCarrier, start: int, tip: int) -> Sequence[Height]:
        recipient = encode_address(carrier.topic, carrier.prefix)
        query = f"transfer.recipient='{recipient}' AND tx.height>={start}"
        hinted = await self._chain.tx.search_heights(query)
        if hinted is None and start < tip - _MAX_SCAN_BLOCKS:
            _LOG.warning("the index gives no hint: announcements before block %d are not found", tip - _MAX_SCAN_BLOCKS)
        reach = _MAX_SCAN_BLOCKS if hinted is None else _INDEX_LAG_BLOCKS
        newest = set(map(Height, range(max(start, tip - reach), tip + 1)))
        return sorted(newest | {height for height in hinted or () if start <= height <= tip})

    async def _announced(self, carrier: MemoCarrier, height: Height) -> list[FoundRun]:
        try:
            block = await self._chain.block(height)
        except NotYetError:
            return []
        return [
            FoundRun(placed.record.manifest_hash, placed.record.url.decode(), placed.author, height, 0)
            for placed in block_records(block, carrier)
            if isinstance(placed.record, Announce)
            and _is_plain(placed.record.url)
            and (self._accept is None or placed.record.manifest_hash in self._accept)
        ]

    async def vouched(self, run: FoundRun) -> bool:
        """Return True: the author of an announcement is who signed it."""
        return run.task_id == 0


class KvTaskSource:
    """Training tasks whose training dataset is a manifest's URI. `accept` as in `MemoTaskSource`."""

    settled = False  # a task is assigned after it was created

    def __init__(self, chain: ChainClient, accept: Collection[Digest] | None) -> None:
        self._chain = chain
        self._accept = accept

    async def runs(self, since: Height) -> tuple[FoundRun, ...]:
        """Return the runs whose task was created at or after the height, oldest first; none without the module."""
        found = [self._run(task) for task in await self._chain.tasks()]
        runs = [run for run in found if run is not None and run.height >= since]
        return tuple(sorted(runs, key=lambda run: (run.height, run.task_id)))

    def _run(self, task: inference_pb2.TrainingTask) -> FoundRun | None:
        announce = parse_manifest_uri(task.config.datasets.train)
        if not 0 < task.created_at_block_height <= _MAX_HEIGHT:
            return None
        if announce is None or (self._accept is not None and announce.manifest_hash not in self._accept):
            return None
        try:
            author = decode_address(task.requested_by, self._chain.prefix)
        except DecodeError:
            return None
        height = Height(task.created_at_block_height)
        named = _participants(task, self._chain.prefix)
        return FoundRun(announce.manifest_hash, announce.url.decode(), author, height, task.id, named)

    async def vouched(self, run: FoundRun) -> bool:
        """Whether the block at which the task was created holds its creation by the author.

        The module's `requested_by` is not enough: MsgCreateDummyTrainingTask writes a task in anybody's name.
        """
        block = await self._chain.block(run.height)
        author = encode_address(run.author, self._chain.prefix).encode()
        return (author, Announce(run.manifest_hash, run.url.encode())) in set(_creations(block))


def _participants(task: inference_pb2.TrainingTask, prefix: str) -> frozenset[Address]:
    """Return the participants that a task names; what is no address of this chain names nobody."""
    found = set()
    for assignee in task.assignees:
        with suppress(DecodeError):
            found.add(decode_address(assignee.participant, prefix))
    return frozenset(found)


def _creations(block: Block) -> Iterator[tuple[bytes, Announce]]:
    """Yield creator and content of every creation of a task for a manifest that the block holds with code 0."""
    for transaction, result in zip(block.transactions, block.results, strict=True):
        body = decode_body(transaction) if result.code == 0 else None
        for message in () if body is None else leaves(body):
            if message.type_url != CREATE_TASK_TYPE:
                continue
            try:
                creation = inference_pb2.MsgCreateTrainingTask.FromString(message.value)
            except WireError:
                continue
            announce = parse_manifest_uri(creation.config.datasets.train)
            if announce is not None:
                yield creation.creator, announce


async def announce_on_memo(chain: ChainClient, sender: Sender, announce: Announce) -> Receipt:
    """Announce a run on the registry topic."""
    topic = registry_topic(await chain.chain_id())
    return await MemoRunLog(sender, topic, chain.prefix).publish([announce])


async def announce_on_kv(
    chain: ChainClient, sender: Sender, announce: Announce, hardware: Sequence[tuple[str, int]] = ()
) -> tuple[int, Receipt]:
    """Create a training task for the run, and announce the run under it; return the task's id and the last receipt.

    A task that the sender created for the same URI is used again, so that a second try makes no second one.
    """
    uri = manifest_uri(announce)
    task_id = await _own_task(chain, sender, uri)
    if task_id is None:
        message = create_task_message(sender.author_text, uri, hardware)
        _, data = await sender.deliver(sent_digest(uri.encode(), [announce]), [message])
        task_id = created_task(data) or await _own_task(chain, sender, uri)
    if task_id is None:
        raise ChainError(
            "the chain created a training task and does not say its id", "look at the task list, try again"
        )
    return task_id, await KvRunLog(sender, task_id, chain.prefix).publish([announce])


async def _own_task(chain: ChainClient, sender: Sender, uri: str) -> int | None:
    own = [
        task.id
        for task in await chain.tasks()
        if task.requested_by == sender.author_text.encode() and task.config.datasets.train == uri.encode()
    ]
    return min(own, default=None)


def created_task(data: bytes) -> int | None:
    """Return the id of the task that a transaction's result says was created; None when it says nothing of the kind."""
    try:
        return inference_pb2.MsgCreateTrainingTaskResponse.FromString(responses(data)[0]).task.id or None
    except (WireError, DecodeError, IndexError):
        return None
