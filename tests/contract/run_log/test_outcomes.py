"""What becomes of a transaction when the node, the network or the chain fails in the midst of it: in effect once."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import grpc
import pytest
from cosmpy.protos.cosmos.tx.v1beta1.service_pb2 import BROADCAST_MODE_SYNC, BroadcastTxRequest, BroadcastTxResponse
from run_log_world import (
    CHAIN_ID,
    Devnet,
    Run,
    basic_allowance,
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
)

from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog, Pending
from gonka_trainer.chain.transactions import tx_hash
from gonka_trainer.errors import ChainError
from gonka_trainer.round.records import Commit, Record
from gonka_trainer.types import Digest, sha256

Log = MemoRunLog | KvRunLog
D = Digest(bytes(range(32)))


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet(tmp_path_factory.mktemp("outcomes") / "home") as running:
        yield running


@pytest.fixture
async def chain(net: Devnet) -> AsyncIterator[ChainClient]:
    async with client(net) as opened:
        yield opened


def run_of(chain: ChainClient, name: str) -> Run:
    return Run("memo", chain, manifest(name), 0)


async def counted(log: Log, chain: ChainClient, record: Record, start: int, end: int) -> int:
    """How often the record is in effect, up to two blocks after."""
    return [placed.record for placed in await read(log, chain, start, end + 2)].count(record)


async def pending_file(folder: Path) -> Pending:
    """The one transaction that is in the sent log, once it is there."""
    while not (found := list(folder.glob("*.json"))):
        await asyncio.sleep(0.01)
    pending = FileSentLog(folder).get(Digest(bytes.fromhex(found[0].stem)))
    assert pending is not None
    return pending


@pytest.mark.parametrize("ordered", [False, True])
async def test_an_accepted_one_that_vanishes_is_handed_over_again(
    net: Devnet, chain: ChainClient, tmp_path: Path, ordered: bool
) -> None:
    start = (await chain.info()).height + 1
    log = run_of(chain, f"vanishes {ordered}").log(sender(chain, "alice", tmp_path, ordered=ordered))
    net.fault("drop", count=1)
    receipt = await asyncio.wait_for(log.publish([Commit(1, D)]), 60)
    assert receipt.height >= start + 3, "the node did not lose it"
    assert await counted(log, chain, Commit(1, D), start, receipt.height) == 1


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_node_that_forgets_its_mempool(tmp_path: Path, ordered: bool) -> None:
    with devnet(tmp_path / "home") as net:
        async with client(net, timeout_seconds=2.0) as chain:
            await block_at(chain, 2)
            log = run_of(chain, "forgets").log(sender(chain, "alice", tmp_path, ordered=ordered))
            net.fault("blocks", on=False)
            publishing = asyncio.ensure_future(log.publish([Commit(2, D)]))
            pending = await pending_file(tmp_path / "sent-alice")
            while (await chain.tx.broadcast(pending.transaction)).code != 19:
                await asyncio.sleep(0.01)
            net.fault("restart", seconds=0.5)
            await asyncio.sleep(0)
            while True:
                with suppress(OSError):
                    net.fault("blocks", on=True)
                    break
                await asyncio.sleep(0.05)
            receipt = await asyncio.wait_for(publishing, 60)
            assert receipt.tx_hash == pending.tx_hash
            assert await counted(log, chain, Commit(2, D), 1, receipt.height) == 1


@pytest.mark.parametrize("ordered", [False, True])
async def test_the_same_bytes_again_after_a_restart_of_the_node(tmp_path: Path, ordered: bool) -> None:
    """The node no longer says 19, but 18 `already used` or 32: its bytes are on chain all the same."""
    with devnet(tmp_path / "home") as net:
        async with client(net, timeout_seconds=2.0) as chain:
            await block_at(chain, 2)
            sent = FileSentLog(tmp_path / "sent-alice")
            log = run_of(chain, "again").log(sender(chain, "alice", tmp_path, ordered=ordered, timeout_blocks=200))
            net.fault("blocks", on=False)
            publishing = asyncio.ensure_future(log.publish([Commit(3, D)]))
            pending = await pending_file(tmp_path / "sent-alice")
            net.fault("blocks", on=True)
            first = await asyncio.wait_for(publishing, 60)
            net.stop()
            net.start()
        async with client(net, timeout_seconds=2.0) as chain:
            code = 32 if ordered else 18
            assert (await chain.tx.broadcast(pending.transaction)).code == code
            sent.put(pending)
            log = run_of(chain, "again").log(sender(chain, "alice", tmp_path, ordered=ordered))
            again = await asyncio.wait_for(log.publish([Commit(3, D)]), 60)
            assert (again.tx_hash, again.height) == (first.tx_hash, first.height)
            assert await counted(log, chain, Commit(3, D), 1, (await chain.info()).height) == 1


async def test_copies_in_one_block(net: Devnet, chain: ChainClient, tmp_path: Path) -> None:
    """Somebody repeats our bytes: one copy succeeds, the others fail, and we take the one that succeeded."""
    start = (await chain.info()).height + 1
    log = run_of(chain, "copies").log(sender(chain, "alice", tmp_path))
    net.fault("blocks", on=False)
    publishing = asyncio.ensure_future(log.publish([Commit(4, D)]))
    pending = await pending_file(tmp_path / "sent-alice")
    net.fault("inject", tx_base64=base64.b64encode(pending.transaction).decode(), count=2)
    net.fault("blocks", on=True)
    receipt = await asyncio.wait_for(publishing, 60)
    block = await block_at(chain, receipt.height)
    codes = [r.code for raw, r in zip(block.transactions, block.results, strict=True) if raw == pending.transaction]
    assert codes.count(0) == 1
    assert len(codes) >= 2
    assert await counted(log, chain, Commit(4, D), start, receipt.height) == 1


async def test_one_that_failed_before_its_message_may_still_succeed(
    net: Devnet, chain: ChainClient, tmp_path: Path
) -> None:
    """Its fee allowance was revoked a transaction before: anybody may hand over its bytes again, so we do."""
    start = (await chain.info()).height + 1
    await put(chain, "carol", [fee_grant("carol", "alice", basic_allowance())])
    revoke = await signed(chain, "carol", [fee_revocation("carol", "alice")])
    paying = {"granter": "", "gas_price": Decimal("0.25")}
    paying["granter"] = sender(chain, "carol", tmp_path).text
    log = run_of(chain, "revoked").log(sender(chain, "alice", tmp_path, **paying))
    net.fault("blocks", on=False)
    assert (await chain.tx.broadcast(revoke.transaction)).code == 0
    publishing = asyncio.ensure_future(log.publish([Commit(5, D)]))
    pending = await pending_file(tmp_path / "sent-alice")
    while (await chain.tx.broadcast(pending.transaction)).code != 19:
        await asyncio.sleep(0.01)
    net.fault("blocks", on=True)
    with pytest.raises(ChainError, match="does not allow to pay fees") as caught:
        await asyncio.wait_for(publishing, 60)
    assert "chain.fee_granter" in caught.value.remedy
    kept = FileSentLog(tmp_path / "sent-alice").get(pending.digest)
    assert kept is not None
    assert kept.transaction == pending.transaction
    assert kept.from_height > pending.from_height
    await put(chain, "carol", [fee_grant("carol", "alice", basic_allowance())], memo=b"again")
    log = run_of(chain, "revoked").log(sender(chain, "alice", tmp_path, **paying))
    receipt = await asyncio.wait_for(log.publish([Commit(5, D)]), 60)
    assert receipt.tx_hash == pending.tx_hash
    assert await counted(log, chain, Commit(5, D), start, receipt.height) == 1


async def test_a_chain_that_stood_still_for_ten_minutes(tmp_path: Path) -> None:
    """By the clock of the next block the transaction is too late: it goes into a new one."""
    with devnet(tmp_path / "home") as net:
        async with client(net) as chain:
            await block_at(chain, 2)
            log = run_of(chain, "stood still").log(sender(chain, "alice", tmp_path))
            net.fault("blocks", on=False)
            net.fault("drop", count=1)
            publishing = asyncio.ensure_future(log.publish([Commit(6, D)]))
            pending = await pending_file(tmp_path / "sent-alice")
            while net.faults()["drop"]:
                await asyncio.sleep(0.01)
            net.fault("clock", offset_seconds=700)
            net.fault("blocks", on=True)
            receipt = await asyncio.wait_for(publishing, 60)
            assert receipt.tx_hash != pending.tx_hash
            assert await counted(log, chain, Commit(6, D), 1, receipt.height) == 1


async def test_without_an_index(net: Devnet, chain: ChainClient, tmp_path: Path) -> None:
    net.fault("index", on=False)
    try:
        start = (await chain.info()).height + 1
        log = run_of(chain, "no index").log(sender(chain, "alice", tmp_path))
        net.fault("refuse", count=1, codespace="sdk", code=18, log="x has already used timeout 1: invalid request")
        receipt = await asyncio.wait_for(log.publish([Commit(7, D)]), 60)
        assert await counted(log, chain, Commit(7, D), start, receipt.height) == 1
    finally:
        net.fault("index", on=True)


@pytest.mark.parametrize(("code", "ordered"), [(19, False), (19, True), (18, False), (32, True)])
async def test_our_own_bytes_are_there_before_us(net: Devnet, tmp_path: Path, code: int, ordered: bool) -> None:
    """Another of our nodes has passed the bytes on already: what the refusal speaks of is our own transaction."""
    record, logs = Commit(100 + code, D), {18: "x has already used timeout 1: invalid request", 32: "mismatch"}
    with grpc.insecure_channel(net.grpc) as channel:
        ask = channel.unary_unary("/cosmos.tx.v1beta1.Service/BroadcastTx")

        def hand_over(pending: Pending) -> None:
            said = BroadcastTxResponse.FromString(ask(request_of(pending)))
            assert said.tx_response.code == 0
            if code != 19:
                height = net.faults()["height"]
                while net.faults()["height"] < height + 2:
                    pass
                net.fault("refuse", count=1, codespace="sdk", code=code, log=logs[code])

        async with client(net) as chain:
            start = (await chain.info()).height + 1
            settings = SendSettings(poll_seconds=0.05, ordered=ordered)
            bob = Sender(chain, key("bob"), Announcing(tmp_path / "sent-bob", hand_over), settings)
            log = run_of(chain, f"before us {code} {ordered}").log(bob)
            receipt = await asyncio.wait_for(log.publish([record]), 60)
            assert await counted(log, chain, record, start, receipt.height) == 1


def request_of(pending: Pending) -> bytes:
    request = BroadcastTxRequest(tx_bytes=pending.transaction, mode=BROADCAST_MODE_SYNC)
    return bytes(request.SerializeToString())


@dataclass
class Mute:
    """A door before the node's gRPC: what is asked arrives, and while `on` the answers do not."""

    target: str
    on: bool = False
    muted: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        try:
            yield f"{host}:{port}"
        finally:
            server.close()
            for writer in self.writers:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self.target.rsplit(":", 1)
        there, back = await asyncio.open_connection(host, int(port))
        self.writers += [writer, back]
        await asyncio.gather(self._copy(reader, back, answers=False), self._copy(there, writer, answers=True))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if answers and self.on:
                    self.muted += 1
                    writer.close()
                    self.on = False
                    return
                writer.write(data)
                await writer.drain()
        writer.close()


class Announcing(FileSentLog):
    """A sent log that tells when something is about to be handed over."""

    def __init__(self, folder: Path, told: Callable[[Pending], None]) -> None:
        super().__init__(folder)
        self._told = told

    def put(self, pending: Pending) -> None:
        super().put(pending)
        self._told(pending)


@pytest.mark.parametrize("ordered", [False, True])
async def test_an_answer_that_is_lost_on_its_way(net: Devnet, tmp_path: Path, ordered: bool) -> None:
    """The node took the transaction, and the connection broke before it said so."""
    door = Mute(net.grpc)

    def mute(_: Pending) -> None:
        door.on = True

    async with (
        client(net) as direct,
        door.listening() as target,
        ChainClient(NodeAddress(target, f"http://{net.rpc}"), chain_id=CHAIN_ID) as chain,
    ):
        start = (await chain.info()).height + 1
        settings = SendSettings(poll_seconds=0.05, ordered=ordered)
        bob = Sender(chain, key("bob"), Announcing(tmp_path / "sent-bob", mute), settings)
        log = run_of(chain, f"lost {ordered}").log(bob)
        receipt = await asyncio.wait_for(log.publish([Commit(8, D)]), 60)
        assert door.muted == 1
        assert await counted(log, direct, Commit(8, D), start, receipt.height) == 1
        assert not list((tmp_path / "sent-bob").iterdir())


def test_the_sent_log_keeps_no_more_than_it_must(tmp_path: Path) -> None:
    log, second = FileSentLog(tmp_path / "sent"), 10**9
    timed = [Pending(sha256(bytes([n])), bytes([n]), 1, n * 1000 * second, 0, 0) for n in range(1, 6)]
    placed = [Pending(sha256(bytes([n])), bytes([n]), 1, 0, n * 1000, 0) for n in range(11, 16)]
    endless = Pending(sha256(b"endless"), b"endless", 1, 0, 0, 0)
    for pending in (*timed, *placed, endless):
        log.put(pending)
    log.expire(3000 * second, 12_900)
    gone = [pending for pending in (*timed, *placed, endless) if log.get(pending.digest) is None]
    assert gone == [*timed[:2], *placed[:2]]
    (tmp_path / "sent" / "junk.json").write_text("{")
    log.expire(10**6 * second, 10**6)
    assert log.get(endless.digest) == endless
    assert sorted(path.suffix for path in (tmp_path / "sent").iterdir()) == [".json", ".json"]


async def test_leftovers_of_a_dead_process_go_in_time(tmp_path: Path) -> None:
    """A crash after the block and before the record was asked for again leaves a file: the next sending clears it."""
    with devnet(tmp_path / "home") as net:
        async with client(net) as chain:
            old = await signed(chain, "alice", [], b"")
            FileSentLog(tmp_path / "sent-alice").put(old)
            log = run_of(chain, "leftovers").log(sender(chain, "alice", tmp_path))
            await log.publish([Commit(9, D)])
            assert FileSentLog(tmp_path / "sent-alice").get(old.digest) == old, "it could still get into a block"
            net.fault("clock", offset_seconds=800)
            await block_at(chain, (await chain.info()).height + 1)
            await log.publish([Commit(10, D)])
            assert not list((tmp_path / "sent-alice").iterdir())
            assert tx_hash(old.transaction) == old.tx_hash
