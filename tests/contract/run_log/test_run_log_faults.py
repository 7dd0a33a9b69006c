"""Restarts, refusals, lost and late transactions: on the memo carrier, whose path through the sender is everybody's."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from run_log_world import (
    CHAIN_ID,
    MINUTE_NS,
    Devnet,
    Run,
    block_at,
    client,
    devnet,
    fee_grant,
    fee_revocation,
    key,
    manifest,
    put,
    read,
    sender,
    signed,
    text,
)

from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog, sent_digest
from gonka_trainer.chain.sentlog import FileSentLog, Pending
from gonka_trainer.chain.sources import MemoTaskSource, announce_on_memo
from gonka_trainer.chain.transactions import Fee, Ordering, Signer, build, send_message
from gonka_trainer.chain.transport import NotYetError
from gonka_trainer.chain.watcher import Watcher
from gonka_trainer.errors import ChainError, ChainUnavailableError, ConfigError
from gonka_trainer.round.records import Announce, Commit, Heartbeat, Record, to_text
from gonka_trainer.types import Digest, Height

D = Digest(bytes(range(32)))


def memo_run(chain: ChainClient, name: str) -> Run:
    return Run("memo", chain, manifest(name), 0)


async def prepared(run: Run, record: Record, ahead_ns: int = MINUTE_NS) -> Pending:
    """Return alice's transaction with the record, as a sender writes it to its log before handing it over."""
    message = send_message(text("alice"), run.topic_text, 1, "ngonka")
    pending = await signed(run.chain, "alice", [message], to_text(record).encode(), ahead_ns=ahead_ns)
    return replace(pending, digest=sent_digest(run.topic, [record]))


async def records_up_to(run: Run, log: MemoRunLog | KvRunLog, end: int) -> list[Record]:
    return [placed.record for placed in await read(log, run.chain, 1, end)]


async def test_a_restart_between_handing_over_and_inclusion(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", block_seconds=1.0) as net:
        async with client(net) as chain:
            run, folder = memo_run(chain, "restart"), tmp_path / "sent-alice"
            first = asyncio.create_task(run.log(sender(chain, "alice", tmp_path)).publish([Commit(0, D)]))
            while not (folder.exists() and list(folder.glob("*.json"))):
                await asyncio.sleep(0.01)
            first.cancel()
            with suppress(asyncio.CancelledError):
                await first
            log = run.log(sender(chain, "alice", tmp_path))
            receipt = await log.publish([Commit(0, D)])
            last = await log.publish([Heartbeat(0, 0)])
            assert await records_up_to(run, log, last.height) == [Commit(0, D), Heartbeat(0, 0)]
            assert receipt.height <= last.height
            assert not list(folder.glob("*"))


async def test_a_crash_before_handing_over(chain: ChainClient, tmp_path: Path) -> None:
    run = memo_run(chain, "crash before")
    pending = await prepared(run, Commit(1, D))
    FileSentLog(tmp_path / "sent-alice").put(pending)
    receipt = await run.log(sender(chain, "alice", tmp_path)).publish([Commit(1, D)])
    assert receipt.tx_hash == pending.tx_hash


async def test_a_crash_after_inclusion(chain: ChainClient, tmp_path: Path) -> None:
    run = memo_run(chain, "crash after")
    pending = await prepared(run, Commit(2, D))
    assert (await chain.tx.broadcast(pending.transaction)).code == 0
    log = run.log(sender(chain, "alice", tmp_path))
    between = await log.publish([Heartbeat(0, 0)])
    FileSentLog(tmp_path / "sent-alice").put(pending)
    receipt = await log.publish([Commit(2, D)])
    assert receipt.tx_hash == pending.tx_hash
    assert receipt.height <= between.height


async def test_one_that_no_block_ever_held_is_sent_again_after_its_timeout(chain: ChainClient, tmp_path: Path) -> None:
    run = memo_run(chain, "never")
    pending = await prepared(run, Commit(3, D), ahead_ns=1)
    FileSentLog(tmp_path / "sent-alice").put(pending)
    await block_at(chain, pending.from_height + 1)
    log = run.log(sender(chain, "alice", tmp_path))
    receipt = await log.publish([Commit(3, D)])
    assert receipt.tx_hash != pending.tx_hash
    found = await read(log, chain, pending.from_height, receipt.height)
    assert [placed.record for placed in found] == [Commit(3, D)]


async def test_one_that_failed_in_its_block_is_sent_again(chain: ChainClient, tmp_path: Path) -> None:
    run = memo_run(chain, "failed")
    message = send_message(text("alice"), run.topic_text, 1, "ngonka")
    pending = await signed(chain, "alice", [message], to_text(Commit(4, D)).encode(), gas=47_000)
    pending = replace(pending, digest=sent_digest(run.topic, [Commit(4, D)]))
    FileSentLog(tmp_path / "sent-alice").put(pending)
    log = run.log(sender(chain, "alice", tmp_path))
    receipt = await log.publish([Commit(4, D)])
    assert receipt.tx_hash != pending.tx_hash
    found = await read(log, chain, pending.from_height, receipt.height)
    assert [placed.record for placed in found] == [Commit(4, D)]


async def test_too_little_gas_is_learnt_from(chain: ChainClient, tmp_path: Path) -> None:
    log = memo_run(chain, "gas").log(sender(chain, "alice", tmp_path, gas_factor=0.8))
    receipt = await log.publish([Commit(5, D)])
    assert receipt.gas_used > 0
    with pytest.raises(ChainError, match="out of gas") as caught:
        await memo_run(chain, "gas").log(sender(chain, "alice", tmp_path, gas_factor=0.01)).publish([Commit(5, D)])
    assert "chain.gas_factor" in caught.value.remedy


async def test_an_account_without_funds(chain: ChainClient, tmp_path: Path) -> None:
    log = memo_run(chain, "poor").log(sender(chain, "poor", tmp_path))
    await log.publish([Heartbeat(0, 0)])  # its only coin
    with pytest.raises(ChainError, match="insufficient funds") as caught:
        await log.publish([Heartbeat(0, 1)])
    assert "send coins" in caught.value.remedy


async def test_an_account_that_is_not_on_chain(chain: ChainClient, tmp_path: Path) -> None:
    with pytest.raises(ChainError, match="is not on chain") as caught:
        await memo_run(chain, "nobody").log(sender(chain, "nobody", tmp_path)).publish([Heartbeat(0, 0)])
    assert text("nobody") in caught.value.remedy


async def test_a_timestamp_that_another_process_took(chain: ChainClient, tmp_path: Path) -> None:
    run = memo_run(chain, "timestamp")
    alike = [sender(chain, "alice", tmp_path / name, jitter=lambda _: 0) for name in ("one", "two", "three")]
    sent = (run.log(each).publish([Heartbeat(0, step)]) for step, each in enumerate(alike))
    receipts = await asyncio.wait_for(asyncio.gather(*sent), 30)
    assert len({receipt.tx_hash for receipt in receipts}) == 3


async def test_a_fee_granter(chain: ChainClient, tmp_path: Path) -> None:
    log = memo_run(chain, "granter").log
    paying = {"gas_price": Decimal("0.25"), "granter": text("carol")}
    with pytest.raises(ChainError, match="does not allow to pay fees") as caught:
        await log(sender(chain, "alice", tmp_path, **paying)).publish([Commit(0, D)])
    assert "chain.fee_granter" in caught.value.remedy
    await put(chain, "carol", [fee_grant("carol", "alice")])
    before = await chain.tx.balance(key("carol").address, "ngonka")
    receipt = await log(sender(chain, "alice", tmp_path, **paying)).publish([Commit(0, D)])
    assert before - await chain.tx.balance(key("carol").address, "ngonka") == receipt.fee > 0


async def test_fees(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", "--min-gas-price=0.25ngonka") as net:
        async with client(net) as chain:
            run = memo_run(chain, "fees")
            with pytest.raises(ChainError, match="required: ") as caught:
                await run.log(sender(chain, "alice", tmp_path)).publish([Commit(0, D)])
            assert "chain.gas_price" in caught.value.remedy
            with pytest.raises(ChainError, match=r"more than chain\.fee_cap = 9"):
                await run.log(sender(chain, "alice", tmp_path, gas_price=Decimal(1), fee_cap=9)).publish([Commit(0, D)])
            before = await chain.tx.balance(key("alice").address, "ngonka")
            paying = run.log(sender(chain, "alice", tmp_path, gas_price=Decimal("0.25")))
            receipt = await paying.publish([Commit(0, D)])
            after = await chain.tx.balance(key("alice").address, "ngonka")
            assert before - after == receipt.fee + 1
            assert receipt.fee >= receipt.gas_used // 4


async def test_an_index_that_lags_by_two_seconds_changes_nothing(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", "--index-lag-seconds=2") as net:
        async with client(net) as chain:
            run = memo_run(chain, "lag")
            log = run.log(sender(chain, "alice", tmp_path))
            receipt = await log.publish([Commit(0, D)])
            assert [placed.record for placed in log.records(await chain.block(receipt.height))] == [Commit(0, D)]
            assert await chain.tx.find_transaction(receipt.tx_hash) is None
            announced = await announce_on_memo(chain, sender(chain, "alice", tmp_path), Announce(D, b""))
            await block_at(chain, announced.height + 2)
            (found,) = await MemoTaskSource(chain, {D}).runs(receipt.height)
            assert (found.height, found.manifest_hash) == (announced.height, D)


async def test_the_node_is_killed_and_comes_back(tmp_path: Path) -> None:
    with devnet(tmp_path / "home") as net:
        async with client(net, timeout_seconds=2.0) as chain:
            run = memo_run(chain, "node")
            log = run.log(sender(chain, "alice", tmp_path))
            await log.publish([Commit(0, D)])
            net.stop()
            with pytest.raises(ChainUnavailableError):
                await chain.info()
            waiting = asyncio.create_task(log.publish([Commit(1, D)]))
            await asyncio.to_thread(net.start)
            receipt = await asyncio.wait_for(waiting, 60)
            assert await records_up_to(run, log, receipt.height) == [Commit(0, D), Commit(1, D)]


@pytest.mark.slow
async def test_a_chain_that_was_reset_is_not_followed(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", block_seconds=0.05) as net:
        async with client(net) as chain:
            await block_at(chain, 3)
            await block_at(chain, 15)
            net.stop()
            net.home = tmp_path / "other"
            net.arguments = (*net.arguments, "--block-seconds=0.3")
            net.start()
            with pytest.raises(ChainUnavailableError, match="and was at 15"):
                await chain.info()
            with pytest.raises(ChainError, match="the chain was reset"):
                await block_at(chain, 4)


async def test_another_chain(shared_net: Devnet) -> None:
    async with client(shared_net, chain_id="other-1") as chain:
        with pytest.raises(ChainError, match=f"is of chain {CHAIN_ID}, not other-1"):
            await chain.info()
        with pytest.raises(ChainError, match=f"is of chain {CHAIN_ID}, not other-1"):
            await block_at(chain, 1)


async def test_a_signature_for_another_chain_is_refused(chain: ChainClient) -> None:
    account = await chain.tx.account(key("alice").address)
    message = send_message(text("alice"), text("bob"), 1, "ngonka")
    info = await chain.info()
    signer = Signer(key("alice"), "other-1", account.number)
    ordering = Ordering(timeout_ns=info.time_ns + MINUTE_NS)
    answer = await chain.tx.broadcast(build([message], b"", Fee(200_000, 0, "ngonka"), ordering, signer))
    assert (answer.codespace, answer.code) == ("sdk", 4)


async def test_nobody_listens(tmp_path: Path) -> None:
    async with ChainClient(NodeAddress("127.0.0.1:1", "http://127.0.0.1:1"), timeout_seconds=2.0) as chain:
        with pytest.raises(ChainUnavailableError, match="does not answer") as caught:
            await chain.info()
        assert "chain.rpc" in caught.value.remedy
        with pytest.raises(ChainUnavailableError):
            await chain.environment(Height(1))
    with pytest.raises(ConfigError, match=r"chain\.rpc"):
        await ChainClient(NodeAddress("127.0.0.1:1", "127.0.0.1:1")).__aenter__()


async def test_what_is_not_there_yet(chain: ChainClient) -> None:
    tip = (await chain.info()).height
    with pytest.raises(NotYetError):
        await chain.block(Height(tip + 1000))
    with pytest.raises(NotYetError):
        await chain.environment(Height(tip + 1000))


async def test_a_chain_without_the_module_refuses_the_kv_carrier(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", version="0.2.16") as net:
        async with client(net) as chain:
            assert not (await chain.info()).training_module
            with pytest.raises(ChainError, match="unable to resolve type URL") as caught:
                await KvRunLog(sender(chain, "alice", tmp_path), 1, "gonka").publish([Commit(0, D)])
            assert "carrier = memo" in caught.value.remedy


async def test_the_same_bytes_fail_in_one_block_and_succeed_in_a_later_one(chain: ChainClient, tmp_path: Path) -> None:
    grant, revoke = fee_grant("bob", "carol"), fee_revocation("bob", "carol")
    run = memo_run(chain, "twice")
    assert (await put(chain, "bob", [grant])).result.code == 0
    send = send_message(text("carol"), run.topic_text, 1, "ngonka")
    memo = to_text(Commit(6, D)).encode()
    paid = await signed(chain, "carol", [send], memo, granter=text("bob"), fee=1000)
    revoked = await signed(chain, "bob", [revoke])
    assert (await chain.tx.broadcast(revoked.transaction)).code == 0
    assert (await chain.tx.broadcast(paid.transaction)).code == 0
    first = await Watcher(chain, 0.05).outcome(paid)
    assert first is not None
    if first.result.code == 0:
        pytest.skip("a block fell between the two")
    assert (await put(chain, "bob", [grant], memo=b"again")).result.code == 0
    await Watcher(chain, 0.05).broadcast_again(paid)
    second = await Watcher(chain, 0.05).outcome(replace(paid, from_height=first.height + 1))
    assert second is not None
    assert second.result.code == 0
    log = run.log(sender(chain, "alice", tmp_path))
    assert await read(log, chain, first.height, first.height) == []
    found = await read(log, chain, first.height, second.height)
    assert [placed.record for placed in found] == [Commit(6, D)]
