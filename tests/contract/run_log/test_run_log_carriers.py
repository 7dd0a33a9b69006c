"""What every carrier of the run log must do; run on both, against a devnet."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from run_log_world import Devnet, Run, block_at, indexed, key, put, read, sender, text

from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.chain.transactions import Message, exec_message, kv_message, send_message
from gonka_trainer.round.records import (
    Attest,
    Commit,
    Delegate,
    Heartbeat,
    Join,
    PlacedRecord,
    Record,
    StateRoot,
    to_text,
)
from gonka_trainer.types import Digest, Height, Role

D = Digest(bytes(range(32)))
RECORDS: list[Record] = [
    Join(key("alice").address, Role.MEMBER, D, b"host.example", 7070, b"0.1.0", Height(3)),
    Commit(0, D),
    Attest(0, D[:16], D[16:], bytes([0x80])),
    StateRoot(0, D, D, D),
]


def seen(found: list[PlacedRecord]) -> list[tuple[bytes, Record]]:
    return [(placed.author, placed.record) for placed in found]


async def test_what_is_published_is_read_back(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    log = run.log(sender(chain, "alice", tmp_path))
    receipt = await log.publish(RECORDS)
    assert receipt.height >= start
    assert receipt.gas_used > 0
    found = await read(log, chain, start, receipt.height)
    assert seen(found) == [(key("alice").address, record) for record in RECORDS]
    assert (await indexed(chain, receipt.tx_hash)).height == receipt.height
    assert not list((tmp_path / "sent-alice").iterdir())


async def test_authors_are_told_apart(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    logs = {name: run.log(sender(chain, name, tmp_path)) for name in ("alice", "bob", "carol")}
    receipts = await asyncio.gather(*(log.publish([Heartbeat(1, 1)]) for log in logs.values()))
    found = await read(logs["alice"], chain, start, max(receipt.height for receipt in receipts))
    assert sorted(placed.author for placed in found) == sorted(key(name).address for name in logs)
    assert found == sorted(found, key=lambda placed: placed.transaction) or len({r.height for r in receipts}) > 1


def carried(run: Run, author: str, record: Record, destination: str | None = None) -> tuple[list[Message], bytes]:
    """Return a transaction's messages and memo that carry the record."""
    if run.carrier == "kv":
        return [kv_message(text(author), run.task_id, "k", to_text(record))], b""
    return [send_message(text(author), destination or run.topic_text, 1, "ngonka")], to_text(record).encode()


async def test_strangers_junk_hides_nothing_and_counts_as_nothing(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    to_topic = [send_message(text("bob"), run.topic_text, 1, "ngonka")]
    junk = [b"\xff\xfe", b"\x00", b"\xff" * 256, b"\x1b[2J\r\n", base64.b64encode(bytes(48)), b"", b"A" * 256]
    junk += [to_text(Commit(0, D)).encode() + b" ", base64.b64encode(b"\x01\x06" + bytes(35))]
    waiting = [put(chain, "bob", to_topic, memo) for memo in junk]
    values = ["A" * 300, "\x00", "é", to_text(Commit(0, D)) + "\n"]
    waiting += [put(chain, "carol", [kv_message(text("carol"), run.task_id or 1, "k", value)]) for value in values]
    log = run.log(sender(chain, "alice", tmp_path))
    receipt, *included = await asyncio.gather(log.publish([Commit(0, D)]), *waiting)
    assert all(each.result.code == 0 for each in included)
    end = max(receipt.height, *(each.height for each in included))
    assert seen(await read(log, chain, start, end)) == [(key("alice").address, Commit(0, D))]


async def test_a_failed_transaction_carries_nothing(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    messages, memo = carried(run, "bob", Commit(0, D))
    too_much = send_message(text("bob"), run.topic_text, 10**30, "ngonka")
    messages = [too_much] if run.carrier == "memo" else [*messages, too_much]
    failed = await put(chain, "bob", messages, memo)
    assert (failed.result.codespace, failed.result.code) == ("sdk", 5)
    assert await read(run.log(sender(chain, "alice", tmp_path)), chain, start, failed.height) == []


async def test_other_destinations_are_not_this_run(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    elsewhere = [send_message(text("bob"), text("carol"), 1, "ngonka")]
    first = await put(chain, "bob", elsewhere, to_text(Commit(0, D)).encode())
    other_task = [kv_message(text("bob"), run.task_id + 1000, "k", to_text(Commit(0, D)))]
    second = await put(chain, "bob", other_task)
    assert (first.result.code, second.result.code) == (0, 0)
    assert await read(run.log(sender(chain, "alice", tmp_path)), chain, start, second.height) == []


async def test_two_messages(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    messages, memo = carried(run, "bob", Commit(0, D))
    included = await put(chain, "bob", [*messages, send_message(text("bob"), text("carol"), 1, "ngonka")], memo)
    assert included.result.code == 0
    found = await read(run.log(sender(chain, "alice", tmp_path)), chain, start, included.height)
    assert seen(found) == ([] if run.carrier == "memo" else [(key("bob").address, Commit(0, D))])


async def test_inside_an_execution(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    messages, memo = carried(run, "bob", Commit(0, D))
    included = await put(chain, "bob", [exec_message(text("bob"), messages)], memo)
    assert included.result.code == 0, included.result.log
    found = await read(run.log(sender(chain, "alice", tmp_path)), chain, start, included.height)
    assert seen(found) == ([] if run.carrier == "memo" else [(key("bob").address, Commit(0, D))])


async def test_the_same_record_again_is_sent_again(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    log = run.log(sender(chain, "alice", tmp_path))
    first = await log.publish([Heartbeat(2, 7)])
    second = await log.publish([Heartbeat(2, 7)])
    assert first.tx_hash != second.tx_hash
    assert len(await read(log, chain, start, second.height)) == 2


async def test_two_processes_share_a_key(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    start = (await chain.info()).height + 1
    logs = [run.log(sender(chain, "alice", tmp_path / name)) for name in ("one", "two")]
    beats = [Heartbeat(3, step) for step in range(6)]
    receipts = await asyncio.gather(*(logs[step % 2].publish([beat]) for step, beat in enumerate(beats)))
    found = await read(logs[0], chain, start, max(receipt.height for receipt in receipts))
    assert {placed.record for placed in found} == set(beats)
    assert len(found) == len(beats)


async def test_ordered_transactions_wait_for_no_block(
    run: Run, shared_net: Devnet, chain: ChainClient, tmp_path: Path
) -> None:
    """All are handed over while the chain stands still, so all are in its next block."""
    start = (await chain.info()).height + 1
    log = run.log(sender(chain, "carol", tmp_path, ordered=True))
    delegates = [Delegate(key("bob").address, Height(step)) for step in range(4)]
    shared_net.fault("blocks", on=False)
    try:
        sending = [asyncio.ensure_future(log.publish([record])) for record in delegates]
        folder = tmp_path / "sent-carol"
        while not (folder.exists() and len(list(folder.glob("*.json"))) == len(delegates)):
            await asyncio.sleep(0.01)
        await handed_over(chain, folder)
    finally:
        shared_net.fault("blocks", on=True)
    receipts = await asyncio.wait_for(asyncio.gather(*sending), 60)
    other = run.log(sender(chain, "carol", tmp_path / "other", ordered=True))
    last = await other.publish([Heartbeat(0, 0)])
    again = await log.publish([Heartbeat(0, 1)])  # its own count is behind by one now
    assert len({receipt.height for receipt in receipts}) == 1
    found = await read(log, chain, start, max(last.height, again.height))
    assert len(found) == 6


async def handed_over(chain: ChainClient, folder: Path) -> None:
    """Wait until the node has all that the sent log in the folder holds."""
    for path in folder.glob("*.json"):
        pending = FileSentLog(folder).get(Digest(bytes.fromhex(path.stem)))
        assert pending is not None
        while (await chain.tx.broadcast(pending.transaction)).code != 19:
            await asyncio.sleep(0.01)


async def test_a_block_that_is_not_there_yet_is_no_error_for_good(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    height = (await chain.info()).height + 2
    assert (await block_at(chain, height)).height == height
