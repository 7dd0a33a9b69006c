"""Somebody with an account and no part in the run, who writes to its log whatever the chain takes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from gonka_devnet._pb.inference import inference_pb2 as module
from google.protobuf.message import Message as WireMessage

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.attribution import Carrier, block_records
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.runlog import kv_key
from gonka_trainer.chain.transactions import (
    Fee,
    Message,
    Ordering,
    Signer,
    build,
    exec_message,
    kv_message,
    send_message,
)
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.round.records import (
    Announce,
    Attest,
    Challenge,
    Commit,
    Delegate,
    Heartbeat,
    Join,
    Leave,
    Missing,
    Record,
    Revoke,
    Secret,
    StateRoot,
    VerdictRecord,
    to_text,
)
from gonka_trainer.types import Digest, Height, Role, sha256

KEY: Final = AccountKey.from_bytes(sha256(b"a stranger"))
TEXT: Final = encode_address(KEY.address, "gonka")
FUNDS: Final = 10**12
FLAGS: Final = ("--account", f"{TEXT}={FUNDS}")
_D: Final = sha256(b"junk")
_AHEAD_NS: Final = 300 * 10**9
_AT_ONCE: Final = 32


@dataclass(frozen=True)
class Junk:
    """A transaction of the stranger's: messages, memo, and the code that it ends with in a block."""

    name: str
    messages: tuple[Message, ...]
    memo: bytes = b""
    code: int = 0


@dataclass
class Stranger:
    """Signs and hands over, unordered, and remembers the bytes of what it sent under the junk's name."""

    client: ChainClient
    number: int
    sent: dict[bytes, Junk] = field(default_factory=dict)
    _counter: int = 0

    async def send(self, junk: Junk) -> None:
        info = await self.client.info()
        raw = self._signed(junk, info.time_ns, info.chain_id)
        answer = await self.client.tx.broadcast(raw)
        assert answer.code == 0, (junk.name, answer)
        self.sent[raw] = junk

    async def flood(self, junk: Junk, count: int) -> None:
        """Hand over the same many times, some at once."""
        info, places = await self.client.info(), asyncio.Semaphore(_AT_ONCE)

        async def put() -> None:
            async with places:
                raw = self._signed(junk, info.time_ns, info.chain_id)
                assert (await self.client.tx.broadcast(raw)).code == 0
                self.sent[raw] = junk

        await asyncio.gather(*(put() for _ in range(count)))

    def _signed(self, junk: Junk, time_ns: int, chain_id: str) -> bytes:
        self._counter += 1
        ordering = Ordering(timeout_ns=time_ns + _AHEAD_NS + self._counter)
        signer = Signer(KEY, chain_id, self.number)
        return build(junk.messages, junk.memo, Fee(1_000_000, 0, "ngonka"), ordering, signer)


async def arrive(client: ChainClient) -> Stranger:
    return Stranger(client, (await client.tx.account(KEY.address)).number)


def records(member: str, height: int) -> list[Record]:
    """One record of each kind, in the right form, by somebody who may not write it."""
    who, me = decode_address(member, "gonka"), KEY.address
    written = Height(height)
    return [
        Announce(Digest(_D), b"https://example.org/other.json"),
        Delegate(me, written),
        Revoke(who, written),
        Join(who, Role.MEMBER, Digest(_D), b"127.0.0.1", 9, b"stranger", written),
        Join(me, Role.MEMBER, Digest(_D), b"127.0.0.1", 9, b"stranger", written),
        Leave(who, written),
        *(Commit(number, Digest(_D)) for number in range(4)),
        Attest(0, bytes(16), bytes(16), b"\xe0"),
        *(StateRoot(number, Digest(_D), Digest(_D), Digest(_D)) for number in range(4)),
        Missing(0, b"\xe0"),
        Challenge(who, 0, 0),
        VerdictRecord(who, 0, 0, 2, Digest(_D)),
        Secret(0, 1, Digest(_D)),
        Heartbeat(0, 1),
    ]


TEXTS: Final = {
    "not UTF-8": b"\xff\xfe\x00\x80",
    "256 bytes of 0xff": b"\xff" * 256,
    "NULs": b"\x00" * 256,
    "escapes": b"\x1b[2J\x1b[31mred\r\n\x07",
    "foreign base64": base64.b64encode(bytes(48)),
    "unknown version": base64.b64encode(b"\x63\x06" + bytes(36)),
    "spare bytes": base64.b64encode(b"\x01\x06" + bytes(37)),
    "a space behind a record": to_text(Commit(0, Digest(_D))).encode() + b" ",
    "no memo": b"",
}


def memo_junk(run: Accepted, member: str, height: int) -> list[Junk]:
    """What can be sent to a run's topic, and beside it."""
    here = encode_address(topic(run_id(run.manifest.chain_id, run.hash)), "gonka")
    elsewhere = encode_address(topic(run_id(run.manifest.chain_id, Digest(_D))), "gonka")
    send, coin = send_message(TEXT, here, 1, "ngonka"), send_message(TEXT, member, 1, "ngonka")
    too_much = send_message(TEXT, here, FUNDS * 10, "ngonka")
    made = [Junk(name, (send,), memo) for name, memo in TEXTS.items()]
    for number, record in enumerate(records(member, height)):
        name, memo = f"{type(record).__name__} {number}", to_text(record).encode()
        made += [
            Junk(f"{name} by a stranger", (send,), memo),
            Junk(f"{name} to another run", (send_message(TEXT, elsewhere, 1, "ngonka"),), memo),
            Junk(f"{name} in a send that fails", (too_much,), memo, 5),
            Junk(f"{name} beside another message", (send, coin), memo),
            Junk(f"{name} inside an execution", (exec_message(TEXT, [send]),), memo),
        ]
    return made


def kv_junk(task_id: int, keys: Sequence[str], member: str, height: int) -> list[Junk]:
    """What can be done with a run's task: records under members' keys, joins, heartbeats, claims, assignments."""
    made = [
        Junk(f"text {number}", (kv_message(TEXT, task_id, "gt", text),))
        for number, text in enumerate(("é\x1b[2J", "A" * 400, "\x01", base64.b64encode(bytes(48)).decode()))
    ]
    for number, record in enumerate(records(member, height)):
        message = kv_message(TEXT, task_id, kv_key(record, member), to_text(record))
        made.append(Junk(f"{type(record).__name__} {number} under a member's key", (message,)))
        made.append(Junk(f"{type(record).__name__} {number} inside an execution", (exec_message(TEXT, [message]),)))
    made += [Junk(f"over {key}", (kv_message(TEXT, task_id, key, "nothing"),)) for key in keys]
    return made + _module_junk(task_id)


def _module_junk(task_id: int) -> list[Junk]:
    me, node = TEXT.encode(), f"{TEXT}/node".encode()
    join = module.JoinTrainingRequest(node_id=node, run_id=task_id, outer_step=1000)
    beat = module.HeartbeatRequest(node_id=node, run_id=task_id, outer_step=1000)
    assignee = module.TrainingTaskAssignee(participant=me, node_ids=[b"node"])
    barrier = module.SetBarrierRequest(barrier_id=b"b", node_id=node, run_id=task_id, outer_step=1000)
    return [
        _junk(module.MsgJoinTraining(creator=me, req=join)),
        _junk(module.MsgTrainingHeartbeat(creator=me, req=beat)),
        _junk(module.MsgClaimTrainingTaskForAssignment(creator=me, task_id=task_id)),
        _junk(module.MsgAssignTrainingTask(creator=me, task_id=task_id, assignees=[assignee])),
        _junk(module.MsgSetBarrier(creator=me, req=barrier)),
    ]


def _junk(message: WireMessage) -> Junk:
    name = message.DESCRIPTOR.name
    return Junk(name, (Message(f"/inference.inference.{name}".encode(), message.SerializeToString()),))


@dataclass
class Echo:
    """Repeats every record that others write, under the stranger's own name, from a height on."""

    carrier: Carrier
    height: int

    async def next(self, client: ChainClient) -> list[Record]:
        """Return what others wrote in the blocks since the last call."""
        latest, found = (await client.info()).height, list[Record]()
        while self.height <= latest:
            block = await client.block(Height(self.height))
            found += [p.record for p in block_records(block, self.carrier) if p.author != KEY.address]
            self.height += 1
        return found
