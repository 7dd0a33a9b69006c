"""A run whose log a stranger writes to: rounds stay final, and every reader reads the same records at every height."""

from __future__ import annotations

import asyncio
import base64
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgExec
from cosmpy.protos.cosmos.bank.v1beta1.tx_pb2 import MsgSend
from cosmpy.protos.cosmos.tx.v1beta1.tx_pb2 import Tx, TxBody
from gonka_devnet._pb.inference.inference_pb2 import MsgSubmitTrainingKvRecord
from google.protobuf.any_pb2 import Any as WireAny
from google.protobuf.message import DecodeError as WireError

from gonka_trainer.app.opening import open_client
from gonka_trainer.app.reading import RunReader, carrier_of
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.attribution import KvCarrier
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.runlog import kv_key
from gonka_trainer.chain.transactions import kv_message, send_message
from gonka_trainer.errors import DecodeError
from gonka_trainer.ports import Block
from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.round.records import PlacedRecord, Record, decode_record, encode_record, to_text
from gonka_trainer.storage.event_codec import encode_event
from gonka_trainer.storage.journal import read_events
from gonka_trainer.types import Height, sha256
from tests.e2e.harness import WINDOWS, Net, toy_net
from tests.e2e.reference import Reference
from tests.support.stranger import FLAGS, TEXT, Echo, Junk, Stranger, arrive, kv_junk, memo_junk

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PATIENT = replace(WINDOWS, train_blocks=120, commit_blocks=200, attest_blocks=60, state_blocks=200)
AT_A_TIME = 8
SOME_TRANSFERS = 500


@asynccontextmanager
async def harassed(net: Net, stranger: Stranger, junk: Sequence[Junk], echo: Echo) -> AsyncIterator[None]:
    """Have the stranger send the junk over and over, and repeat what members say, until the end of the block."""
    task = asyncio.create_task(harass(net, stranger, junk, echo))
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def harass(net: Net, stranger: Stranger, junk: Sequence[Junk], echo: Echo) -> None:
    height = 0
    for turn in range(10**6):
        while (latest := (await stranger.client.info()).height) == height:
            await asyncio.sleep(0.05)
        height = latest
        for place in range(turn * AT_A_TIME, (turn + 1) * AT_A_TIME):
            await stranger.send(junk[place % len(junk)])
        for record in await echo.next(stranger.client):
            await stranger.send(echoed(net, echo, record))


def echoed(net: Net, echo: Echo, record: Record) -> Junk:
    """The record once more, by the stranger; on `kv` over the member's own key."""
    if isinstance(echo.carrier, KvCarrier):
        key = kv_key(record, net.hosts[0].address)
        return Junk("echo", (kv_message(TEXT, echo.carrier.task_id, key, to_text(record)),))
    here = encode_address(echo.carrier.topic, "gonka")
    return Junk("echo", (send_message(TEXT, here, 1, "ngonka"),), to_text(record).encode())


def transfer(here: str) -> Junk:
    return Junk("transfer", (send_message(TEXT, here, 1, "ngonka"),))


def journal(net: Net, number: int) -> dict[int, bytes]:
    """Digests of (height, block hash, records) as a host journalled them, of every block that it saw."""
    (path,) = (net.hosts[number].data / "runs").glob("*/journal/events")
    seen = [event for event in read_events(path) if isinstance(event, BlockSeen)]
    heights = [event.height for event in seen]
    assert heights == list(range(net.run.manifest.log_height, heights[-1] + 1)), "a block was skipped or seen twice"
    return {event.height: sha256(encode_event(event)) for event in seen}


async def check_readers(net: Net, client: ChainClient, here: str | int) -> int:
    """All hosts' journals, a reader of the chain alone, and a plain one agree; return how many records there are."""
    journals = [journal(net, number) for number in range(len(net.hosts))]
    reader = RunReader(client, net.run)
    read: dict[int, bytes] = {}
    plain: dict[int, bytes] = {}
    count = 0
    async for block, event, _ in reader.to_tip():
        read[event.height] = sha256(encode_event(event))
        count += len(event.records)
        records = tuple(plain_records(block, here))
        plain[event.height] = sha256(encode_event(BlockSeen(block.height, block.block_hash, records)))
    for found in [*journals, plain]:
        common = found.keys() & read.keys()
        assert max(common) >= net.rounds(net.hosts[0])[-1]["heights"]["ended"]
        assert {height: found[height] for height in common} == {height: read[height] for height in common}
    assert reader.state.final_root.hex() == net.rounds(net.hosts[0])[-1]["root"]
    return count


def plain_records(block: Block, here: str | int) -> Iterator[PlacedRecord]:
    """The carriers' rules with foreign messages: none of the project's decoding but that of a record's bytes.

    `here`: the topic's text, or the task's number.
    """
    for position, (raw, result) in enumerate(zip(block.transactions, block.results, strict=True)):
        try:
            body = Tx.FromString(raw).body
        except WireError:  # a memo that is not UTF-8, for this library
            continue
        if result.code:
            continue
        claims = memo_claims(body, here) if isinstance(here, str) else kv_claims(body, here)
        for message, author, text in claims:
            try:
                record = decode_record(base64.b64decode(text, validate=True))
            except (ValueError, DecodeError):
                continue
            if base64.b64encode(encode_record(record)) == text:
                yield PlacedRecord(position, message, decode_address(author, "gonka"), record)


def memo_claims(body: TxBody, here: str) -> Iterator[tuple[int, str, bytes]]:
    if [each.type_url for each in body.messages] == ["/cosmos.bank.v1beta1.MsgSend"]:
        send = MsgSend.FromString(body.messages[0].value)
        if send.to_address == here:
            yield 0, send.from_address, body.memo.encode()


def kv_claims(body: TxBody, here: int) -> Iterator[tuple[int, str, bytes]]:
    for number, message in enumerate(leaves(body.messages)):
        if message.type_url == "/inference.inference.MsgSubmitTrainingKvRecord":
            kv = MsgSubmitTrainingKvRecord.FromString(message.value)
            if kv.taskId == here:
                yield number, kv.creator.decode(), kv.value


def leaves(messages: Iterable[WireAny]) -> Iterator[WireAny]:
    for message in messages:
        if message.type_url == "/cosmos.authz.v1beta1.MsgExec":
            yield from leaves(MsgExec.FromString(message.value).msgs)
        else:
            yield message


async def landed(net: Net, client: ChainClient, stranger: Stranger) -> dict[int, list[tuple[Junk, int]]]:
    """What of the stranger's is in which block, with its code; nothing of it waits any more."""
    handed_over = (await client.info()).height
    while (await client.info()).height < handed_over + 2:
        await asyncio.sleep(0.05)
    found: dict[int, list[tuple[Junk, int]]] = {}
    for height in range(net.run.manifest.log_height, (await client.info()).height + 1):
        block = await client.block(Height(height))
        for raw, result in zip(block.transactions, block.results, strict=True):
            if raw in stranger.sent:
                found.setdefault(height, []).append((stranger.sent[raw], result.code))
    return found


def check_undisturbed(net: Net, folder: Path, rounds: int) -> None:
    """Every round is final, of the hosts alone and of all of them, and has the reference's root, on all hosts."""
    everybody = {host.address for host in net.hosts}
    seen = [net.rounds(host) for host in net.hosts]
    reference = Reference(folder / "manifest.json", net.blobs)
    assert [r["outcome"] for r in seen[0]] == ["final"] * rounds, net.log(net.hosts[0])
    for r in seen[0]:
        assert {seat["participant"] for seat in r["roster"]} == everybody
        assert set(r["included"]) == set(r["states"]) | everybody == everybody
        reference.apply(r)
        assert reference.root() == r["root"]
    for other in seen[1:]:
        assert [(r["root"], r["heights"]) for r in other] == [(r["root"], r["heights"]) for r in seen[0]]


def check_landed(net: Net, found: dict[int, list[tuple[Junk, int]]], junk: Sequence[Junk]) -> None:
    """Each kind of junk was in a block, with the code that it was made for, and some of it in every round."""
    first: dict[str, int] = {}
    for height in sorted(found):
        for item, code in found[height]:
            first.setdefault(item.name, code)
    missing = [item.name for item in junk if item.name not in first]
    assert not missing
    assert {item.name: first[item.name] for item in junk} == {item.name: item.code for item in junk}
    for r in net.rounds(net.hosts[0]):
        assert any(r["heights"]["opened"] <= height <= r["heights"]["ended"] for height in found), r["round"]


@pytest.mark.parametrize("chain_version", ["0.2.16", pytest.param("0.2.0", marks=pytest.mark.slow)])
async def test_junk_of_every_kind_changes_nothing(tmp_path: Path, chain_version: str) -> None:
    flags = (*FLAGS, "--index-lag-seconds", "2")
    rounds = 5
    async with (
        toy_net(
            tmp_path, rounds=rounds, min_weight=3, chain_version=chain_version, windows=PATIENT, devnet_flags=flags
        ) as net,
        open_client(net.stage.chain) as client,
    ):
        manifest = net.run.manifest
        height = (await client.info()).height
        carrier = await carrier_of(
            client, manifest.carrier, manifest.chain_id, net.run.hash, Height(manifest.log_height)
        )
        member = net.hosts[1].address
        if isinstance(carrier, KvCarrier):
            here: str | int = carrier.task_id
            junk = kv_junk(carrier.task_id, ["gt", "a"], member, height)
        else:
            here = encode_address(carrier.topic, "gonka")
            junk = memo_junk(net.run, member, height)
        stranger = await arrive(client)
        async with harassed(net, stranger, junk, Echo(carrier, manifest.log_height)):
            if isinstance(here, str):
                await stranger.flood(transfer(here), SOME_TRANSFERS)
            await net.until_ended(seconds=500)
        check_undisturbed(net, tmp_path, rounds)
        found = await landed(net, client, stranger)
        check_landed(net, found, junk)
        names = Counter(item.name for items in found.values() for item, _ in items)
        assert manifest.carrier == "kv" or names["transfer"] == SOME_TRANSFERS
        assert names["echo"] >= 3 * 3 * (rounds - 1), "commits, attestations and roots of three hosts were repeated"
        own = sum(len(net.transactions(host)) for host in net.hosts)
        assert await check_readers(net, client, here) > own


@pytest.mark.slow
async def test_thousands_of_foreign_transfers_do_not_stop_a_round(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    count = 5000
    rounds = 4
    async with (
        toy_net(tmp_path, rounds=rounds, min_weight=3, windows=PATIENT, block_seconds=1.0, devnet_flags=FLAGS) as net,
        open_client(net.stage.chain) as client,
    ):
        here = encode_address(topic(run_id(net.run.manifest.chain_id, net.run.hash)), "gonka")
        stranger = await arrive(client)
        await net.until_phase(net.hosts[0], 0, "train")
        await stranger.flood(transfer(here), count)
        await net.until_ended(seconds=500)
        check_undisturbed(net, tmp_path, rounds)
        found = await landed(net, client, stranger)
        assert sum(map(len, found.values())) == count
        ended = net.rounds(net.hosts[0])[-1]["heights"]["ended"]
        fullest = max((height for height in found if height <= ended), key=lambda height: len(found[height]))
        records = await check_readers(net, client, here)
        await net.until(
            "the hosts' own records are all there are",
            lambda: sum(len(net.transactions(host)) for host in net.hosts) == records,
        )
        async with open_client(net.stage.chain) as fresh:
            started = time.perf_counter()
            block = await fresh.block(Height(fullest))
            took = time.perf_counter() - started
        per_thousand = 1000 * took / len(block.transactions)
        record_property("seconds to read 1,000 transfers", per_thousand)
        print(f"block {fullest}: {len(block.transactions)} transactions, {per_thousand:.3f} s to read 1,000")
