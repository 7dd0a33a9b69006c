"""Finding runs on a chain, announcing them, and reading what an independent client wrote."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from cosmpy.aerial.client import LedgerClient, NetworkConfig
from cosmpy.aerial.client.utils import prepare_and_broadcast_basic_transaction
from cosmpy.aerial.tx import Transaction
from cosmpy.aerial.wallet import LocalWallet
from cosmpy.crypto.keypairs import PrivateKey
from cosmpy.protos.cosmos.bank.v1beta1.tx_pb2 import MsgSend
from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import Coin
from run_log_world import CHAIN_ID, Devnet, Run, block_at, client, devnet, key, manifest, put, read, sender, text

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.runlog import KvRunLog, find_task
from gonka_trainer.chain.sources import KvTaskSource, MemoTaskSource, announce_on_kv, announce_on_memo
from gonka_trainer.chain.transactions import kv_message, send_message
from gonka_trainer.ports import FoundRun
from gonka_trainer.round.naming import registry_topic
from gonka_trainer.round.records import Announce, Commit, Heartbeat, to_text
from gonka_trainer.types import Digest, Height

URL = b"https://example.org/manifest.json?v=1&w=%20"


async def test_announcements_on_the_registry_topic(chain: ChainClient, tmp_path: Path) -> None:
    mine, other = manifest("memo source"), manifest("memo source, foreign")
    receipt = await announce_on_memo(chain, sender(chain, "alice", tmp_path), Announce(mine, URL))
    await announce_on_memo(chain, sender(chain, "alice", tmp_path), Announce(mine, URL))
    topic = encode_address(registry_topic(CHAIN_ID), "gonka")
    junk = [send_message(text("carol"), topic, 1, "ngonka")]
    await put(chain, "carol", junk, b"\xff\xfe")
    await put(chain, "carol", junk, to_text(Announce(other, b"\x1b[2J")).encode())
    foreign = await put(chain, "carol", junk, to_text(Announce(other, b"")).encode())
    expected = FoundRun(mine, URL.decode(), key("alice").address, receipt.height, 0)
    assert await MemoTaskSource(chain, {mine}).runs(Height(1)) == (expected,)
    everything = await MemoTaskSource(chain, None).runs(receipt.height)
    assert everything == (expected, FoundRun(other, "", key("carol").address, foreign.height, 0))
    assert await MemoTaskSource(chain, {mine}).runs(Height(foreign.height)) == ()
    assert await MemoTaskSource(chain, set()).runs(Height(1)) == ()


@pytest.mark.slow
async def test_announcements_that_only_the_index_can_point_to(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", block_seconds=0.05) as net:
        async with client(net) as chain:
            announce = Announce(manifest("old"), b"")
            receipt = await announce_on_memo(chain, sender(chain, "alice", tmp_path), announce)
            while (await chain.info()).height < receipt.height + 20:
                await find_nothing(chain)
            found = await MemoTaskSource(chain, {announce.manifest_hash}).runs(Height(1))
            assert [run.height for run in found] == [receipt.height]


async def find_nothing(chain: ChainClient) -> None:
    assert await KvTaskSource(chain, None).runs(Height(1)) == ()


async def test_announcements_as_training_tasks(chain: ChainClient, tmp_path: Path) -> None:
    alice, announce = sender(chain, "alice", tmp_path), Announce(manifest("kv source"), URL)
    task_id, receipt = await announce_on_kv(chain, alice, announce, [("NVIDIA H100 80GB", 8)])
    again, _ = await announce_on_kv(chain, alice, announce)
    assert again == task_id
    (found,) = await KvTaskSource(chain, {announce.manifest_hash}).runs(Height(1))
    assert (found.manifest_hash, found.url, found.author) == (announce.manifest_hash, URL.decode(), alice.address)
    assert (found.task_id, found.height < receipt.height) == (task_id, True)
    assert await KvTaskSource(chain, {manifest("none")}).runs(Height(1)) == ()
    assert await KvTaskSource(chain, {announce.manifest_hash}).runs(Height(receipt.height)) == ()


async def test_the_first_announcement_under_a_task_counts(chain: ChainClient, tmp_path: Path) -> None:
    start, announce = (await chain.info()).height, Announce(manifest("first"), b"")
    foreign = kv_message(text("carol"), 99, "k", to_text(Announce(manifest("another"), b"")))
    failing = send_message(text("carol"), text("bob"), 10**30, "ngonka")
    await put(chain, "carol", [foreign])
    await put(chain, "carol", [kv_message(text("carol"), 77, "k", to_text(announce)), failing])
    task_id, receipt = await announce_on_kv(chain, sender(chain, "alice", tmp_path), announce)
    late = await put(chain, "carol", [kv_message(text("carol"), 99, "k", to_text(announce))])
    assert await find_task(chain, announce.manifest_hash, Height(start), "gonka", 0.05) == task_id
    assert await find_task(chain, announce.manifest_hash, Height(receipt.height), "gonka", 0.05) == task_id
    assert await find_task(chain, announce.manifest_hash, Height(receipt.height - 1), "gonka", 0.05) == task_id
    assert await find_task(chain, announce.manifest_hash, Height(late.height), "gonka", 0.05) == 99


async def test_the_environment_is_that_of_the_height(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", block_seconds=0.05) as net:
        async with client(net) as chain:
            await block_at(chain, 3)
            first = await chain.environment(Height(2))
            assert first.schedule.index == 0
            length = first.schedule.epoch_length_blocks
            while (await chain.info()).height < length + 2:
                assert await chain.environment(Height(2)) == first
            later = await chain.environment(Height(length + 1))
            assert (later.schedule.index, later.schedule.poc_start) == (1, length)
            assert all(weight > 0 for _, weight in later.weights)
            assert await chain.environment(Height(2)) == first


def cosmpy_sends(net: Devnet, name: str, message: MsgSend, memo: str) -> int:
    """Send with cosmpy's own client; return the block's height."""
    ledger = LedgerClient(NetworkConfig(CHAIN_ID, 0, "ngonka", "ngonka", f"grpc+http://{net.grpc}"))
    wallet = LocalWallet(PrivateKey(hashlib.sha256(name.encode()).digest()), prefix="gonka")
    transaction = Transaction()
    transaction.add_message(message)
    submitted = prepare_and_broadcast_basic_transaction(ledger, transaction, wallet, memo=memo)
    return int(submitted.wait_to_complete().response.height)


async def test_an_independent_clients_record(shared_net: Devnet, chain: ChainClient, tmp_path: Path) -> None:
    run = Run("memo", chain, manifest("cosmpy"), 0)
    coin = Coin(denom="ngonka", amount="5")
    message = MsgSend(from_address=text("bob"), to_address=run.topic_text, amount=[coin])
    memo = to_text(Commit(9, Digest(bytes(32))))
    height = await asyncio.to_thread(cosmpy_sends, shared_net, "bob", message, memo)
    (found,) = await read(run.log(sender(chain, "alice", tmp_path)), chain, height, height)
    assert (found.author, found.record) == (key("bob").address, Commit(9, Digest(bytes(32))))


async def test_kv_batches_are_one_transaction(chain: ChainClient, tmp_path: Path) -> None:
    alice = sender(chain, "alice", tmp_path)
    task_id, _ = await announce_on_kv(chain, alice, Announce(manifest("batch"), b""))
    log = KvRunLog(alice, task_id, "gonka")
    receipt = await log.publish([Heartbeat(0, step) for step in range(3)])
    places = [(placed.transaction, placed.message) for placed in log.records(await chain.block(receipt.height))]
    assert [message for _, message in places] == [0, 1, 2]
    assert len({transaction for transaction, _ in places}) == 1
    with pytest.raises(ValueError, match="no records"):
        await log.publish([])
