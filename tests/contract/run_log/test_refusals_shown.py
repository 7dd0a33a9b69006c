"""Every refusal, provoked on a devnet: what the person reads, and what it says to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from run_log_world import (
    CHAIN_ID,
    MINUTE_NS,
    Devnet,
    allowance_for,
    basic_allowance,
    block_at,
    client,
    devnet,
    fee_grant,
    grant,
    key,
    put,
    sender,
    text,
)

from gonka_trainer.chain import sender as sender_module
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.refusals import Refusal, as_error
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog
from gonka_trainer.chain.sender import Sender
from gonka_trainer.chain.transactions import (
    EXEC_TYPE,
    KV_TYPE,
    Fee,
    Message,
    Ordering,
    Signer,
    build,
    exec_message,
    kv_message,
    send_message,
)
from gonka_trainer.errors import ChainError, ConfigError, UserError
from gonka_trainer.round.naming import registry_topic
from gonka_trainer.round.records import Heartbeat
from gonka_trainer.types import sha256

PRICE = "0.25"
VERSIONS = {"module": "0.2.0", "lists": "0.2.11", "plain": "0.2.16"}
TOPIC = registry_topic(CHAIN_ID)


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Devnet]]:
    """A chain with the training module, one with allow lists beside, one without the module; all ask for a price."""
    folder = tmp_path_factory.mktemp("nets")
    flags = (f"--min-gas-price={PRICE}ngonka", f"--allow-training={text('alice')}")
    with (
        devnet(folder / "module", *flags, version=VERSIONS["module"]) as module,
        devnet(folder / "lists", *flags, version=VERSIONS["lists"]) as lists,
        devnet(folder / "plain", *flags, version=VERSIONS["plain"]) as plain,
    ):
        yield {"module": module, "lists": lists, "plain": plain}


@dataclass
class Scene:
    """One provocation: the devnet, our client of it, a folder."""

    net: Devnet
    chain: ChainClient
    folder: Path

    def sender(self, name: str, **changes: Any) -> Sender:
        asked = {"gas_price": Decimal(PRICE), "poll_seconds": 0.02, "fee_cap": 10**9}
        return sender(self.chain, name, self.folder, **{**asked, **changes})

    def memo(self, name: str, **changes: Any) -> Awaitable[Any]:
        """Publish a record as a memo."""
        return MemoRunLog(self.sender(name, **changes), TOPIC, "gonka").publish([Heartbeat(0, 0)])

    def kv(self, name: str, **changes: Any) -> Awaitable[Any]:
        """Publish a record as a value."""
        return KvRunLog(self.sender(name, **changes), 1, "gonka").publish([Heartbeat(0, 0)])

    async def put(self, name: str, *messages: Message) -> None:
        included = await put(self.chain, name, messages, fee=100_000)
        assert included.result.code == 0, included.result.log

    async def signed_as(self, signer: Signer) -> ChainError:
        """The error of a transaction that bob's key signed for somebody or somewhere else."""
        message = send_message(text("bob"), text("carol"), 1, "ngonka")
        order = Ordering(timeout_ns=(await self.chain.info()).time_ns + MINUTE_NS)
        answer = await self.chain.tx.broadcast(build([message], b"", Fee(200_000, 50_000, "ngonka"), order, signer))
        return as_error(Refusal(answer.codespace, answer.code, answer.log), text("bob"))


Provoke = Callable[[Scene], Awaitable[Any]]


def refused(codespace: str, code: int, log: str = "", times: int = 40) -> Provoke:
    """Have the node refuse broadcasts with this."""

    async def provoke(scene: Scene) -> None:
        scene.net.fault("refuse", count=times, codespace=codespace, code=code, log=log)
        try:
            await scene.memo("bob")
        finally:
            scene.net.fault("refuse", count=0)

    return provoke


async def without_funds(scene: Scene) -> None:
    await scene.memo("poor", gas_price=Decimal(PRICE))


async def unknown_account(scene: Scene) -> None:
    await scene.memo("nobody")


async def long_memo(scene: Scene) -> None:
    message = send_message(text("bob"), text("carol"), 1, "ngonka")
    await scene.sender("bob").deliver(sha256(b"long"), [message], b"x" * 257)


async def too_large(scene: Scene) -> None:
    message = kv_message(text("bob"), 1, "k", "v" * 1_100_000)
    await scene.sender("bob", fee_cap=10**12).deliver(sha256(b"large"), [message])


async def granter(scene: Scene, name: str, allowance: Any = None) -> None:
    """Have carol pay for the key's fees as the allowance says."""
    if allowance is not None:
        await scene.put("carol", fee_grant("carol", name, allowance))
    await scene.memo(name, granter=text("carol"))


async def expired_allowance(scene: Scene) -> None:
    until_ns = (await scene.chain.info()).time_ns + 10**9
    await scene.put("carol", fee_grant("carol", "poor", basic_allowance(0, until_ns)))
    height = (await scene.chain.info()).height
    while (await block_at(scene.chain, height)).time_ns <= until_ns:
        height += 1
    await granter(scene, "poor")


async def no_grant(scene: Scene) -> None:
    await scene.kv("bob", acts_for=key("carol").address)


async def wrong_grant(scene: Scene) -> None:
    await scene.put("carol", grant("carol", "bob", EXEC_TYPE))
    await scene.kv("bob", acts_for=key("carol").address)


async def restricted(scene: Scene) -> None:
    scene.net.fault("restrict", on=True)
    try:
        await scene.memo("bob")
    finally:
        scene.net.fault("restrict", on=False)


async def restricted_in_the_block(scene: Scene) -> None:
    """One that was simulated before the restriction: it passes CheckTx and fails in its block."""
    scene.net.fault("restrict", on=True)
    try:
        message = send_message(text("bob"), text("carol"), 1, "ngonka")
        included = await put(scene.chain, "bob", [message], fee=100_000)
    finally:
        scene.net.fault("restrict", on=False)
    result = included.result
    raise as_error(Refusal(result.codespace, result.code, result.log), text("bob"))


async def other_chain_id(scene: Scene) -> None:
    account = await scene.chain.tx.account(key("bob").address)
    raise await scene.signed_as(Signer(key("bob"), "other-1", account.number))


async def other_number(scene: Scene) -> None:
    account = await scene.chain.tx.account(key("bob").address)
    raise await scene.signed_as(Signer(key("bob"), CHAIN_ID, account.number + 1))


async def other_key(scene: Scene) -> None:
    account = await scene.chain.tx.account(key("bob").address)
    raise await scene.signed_as(Signer(key("carol"), CHAIN_ID, account.number))


async def configured_chain_id(scene: Scene) -> None:
    async with client(scene.net, chain_id="other-1") as other:
        await MemoRunLog(sender(other, "bob", scene.folder), TOPIC, "gonka").publish([Heartbeat(0, 0)])


async def grant_on_memo(scene: Scene) -> None:
    await scene.memo("bob", acts_for=key("carol").address)


MISMATCH = "account sequence mismatch, expected 5, got 4: incorrect account sequence"
CASES: dict[str, tuple[str, Provoke, str, str]] = {
    "no fee": ("module", lambda s: s.memo("bob", gas_price=Decimal(0)), "sdk 13.*required: ", "chain.gas_price"),
    "fee too low": (
        "module",
        lambda s: s.memo("bob", gas_price=Decimal("0.1")),
        "sdk 13.*required: ",
        "chain.gas_price",
    ),
    "fee over the cap": ("module", lambda s: s.memo("bob", fee_cap=9), "chain.fee_cap = 9", "raise chain.fee_cap"),
    "out of gas": ("module", lambda s: s.memo("bob", gas_factor=0.01), "sdk 11.*out of gas", "chain.gas_factor"),
    "sequence": ("module", refused("sdk", 32, MISMATCH), "sdk 32.*mismatch", "chain.style = 'unordered'"),
    "insufficient funds": ("module", without_funds, "insufficient funds", "send coins to the signing account"),
    "unknown account": ("module", unknown_account, "is not on chain", f"send {text('nobody')} some coins"),
    "not allowed to train": ("lists", lambda s: s.kv("bob"), "allowed", "ask governance"),
    "unknown type": ("plain", lambda s: s.kv("bob"), "unable to resolve type URL", "carrier = memo"),
    "memo too long": ("module", long_memo, "memo too large", "memo limit"),
    "transaction too large": ("module", too_large, "sdk 21", "fewer records"),
    "no fee allowance": ("module", lambda s: granter(s, "poor"), "does not allow to pay fees", "chain.fee_granter"),
    "fee allowance used up": (
        "lists",
        lambda s: granter(s, "bob", basic_allowance(5)),
        "fee limit exceeded",
        "used up",
    ),
    "fee allowance expired": ("lists", expired_allowance, "does not allow|expired", "grant a new one"),
    "fee allowance for others": (
        "plain",
        lambda s: granter(s, "bob", allowance_for(KV_TYPE)),
        "message not allowed",
        "not for this kind",
    ),
    "no grant": ("module", no_grant, "authorization not found", "keys grants"),
    "grant of another kind": ("module", wrong_grant, "authorization not found", "keys grants"),
    "sends are restricted": ("plain", restricted, "restricted", "carrier = kv"),
    "sends are restricted, in the block": ("plain", restricted_in_the_block, "restrictions 1108", "carrier = kv"),
    "signed for another chain": ("module", other_chain_id, "sdk 4.*chain-id", "chain.chain_id"),
    "another account number": ("module", other_number, "sdk 4.*account number", "restart"),
    "another's key": ("module", other_key, "sdk 8.*pubKey", "check the key file"),
    "another chain id configured": ("module", configured_chain_id, "not other-1", "chain.chain_id"),
    "grants on the memo carrier": ("module", grant_on_memo, "participant's money", "keys.speaks_by"),
    "no unordered transactions": ("module", refused("sdk", 37), "sdk 37", "chain.style = 'ordered'"),
    "timed out already": ("module", refused("sdk", 42), "sdk 42", "behind the chain"),
    "too far ahead": (
        "module",
        refused("sdk", 18, "unordered tx ttl exceeds 10m0s: invalid request"),
        "sdk 18",
        "chain.timeout_seconds",
    ),
    "a code that nobody knows": ("module", refused("wasm", 5, "execute wasm contract failed"), "wasm 5", "node's log"),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_the_person_reads(
    name: str, nets: dict[str, Devnet], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    net, provoke, message, remedy = CASES[name]
    async with client(nets[net]) as chain:
        with pytest.raises(UserError, match=f"(?s){message}") as caught:
            await provoke(Scene(nets[net], chain, tmp_path))
    assert isinstance(caught.value, ChainError | ConfigError)
    assert remedy in caught.value.remedy
    record_property("refusal", json.dumps([name, caught.value.what, caught.value.remedy]))
    (tmp_path / "sent-bob").mkdir(exist_ok=True)
    assert not list((tmp_path / "sent-bob").iterdir()), "what was refused leaves nothing behind"


# -- what mends without anybody ----------------------------------------------------------------------------------------

MENDING: dict[str, tuple[str, int, str, str]] = {
    "mempool full": ("sdk", 20, "mempool is full", "mempool is full"),
    "a sequence that another process took": ("sdk", 32, MISMATCH.replace("5", "0"), "incorrect account sequence"),
    "gas": ("sdk", 11, "out of gas in location: x; gasWanted: 1, gasUsed: 2: out of gas", "more gas"),
    "said to be there": ("sdk", 19, "", ""),
    "timestamp used by another": ("sdk", 18, "x has already used timeout 1: invalid request", "timestamp used"),
    "behind the chain": ("sdk", 42, "tx timeout", "tx timeout"),
}


@pytest.mark.parametrize("name", MENDING)
async def test_what_mends(
    name: str,
    nets: dict[str, Devnet],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    codespace, code, log, warned = MENDING[name]
    net = nets["module"]
    async with client(net) as chain:
        start = (await chain.info()).height + 1
        net.fault("refuse", count=2, codespace=codespace, code=code, log=log)
        scene = Scene(net, chain, tmp_path)
        run = MemoRunLog(scene.sender("alice"), TOPIC, "gonka")
        receipt = await asyncio.wait_for(run.publish([Heartbeat(1, code)]), 60)
        found = [
            p.record for height in range(start, receipt.height + 3) for p in run.records(await block_at(chain, height))
        ]
    assert found.count(Heartbeat(1, code)) == 1
    assert warned in caplog.text
    said = [record.getMessage() for record in caplog.records if record.name == sender_module.__name__]
    record_property("refusal", json.dumps([name, said[-1] if said else "(silent)", "none: it is sent again by itself"]))


@asynccontextmanager
async def syncing(net: Devnet, still: dict[str, bool]) -> AsyncIterator[str]:
    """Stand before the node's RPC and say that it is still catching up, while it is said to be."""
    async with aiohttp.ClientSession() as session:

        async def forward(request: web.Request) -> web.Response:
            async with session.request(
                request.method, f"http://{net.rpc}{request.path_qs}", data=await request.read()
            ) as answer:
                document = json.loads(await answer.read())
            if "sync_info" in document.get("result", {}):
                document["result"]["sync_info"]["catching_up"] = still["syncing"]
            return web.json_response(document)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def test_a_node_that_is_syncing_is_awaited(
    nets: dict[str, Devnet],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    net, still = nets["module"], {"syncing": True}
    async with syncing(net, still) as rpc, ChainClient(NodeAddress(net.grpc, rpc), chain_id=CHAIN_ID) as chain:
        publishing = asyncio.ensure_future(Scene(net, chain, tmp_path).memo("alice"))
        while "syncing" not in caplog.text:
            await asyncio.sleep(0.01)
        (said,) = [record.getMessage() for record in caplog.records if "syncing" in record.getMessage()]
        assert not publishing.done()
        still["syncing"] = False
        assert (await asyncio.wait_for(publishing, 60)).height > 0
    record_property("refusal", json.dumps(["node syncing", said, "none: it is awaited"]))


def test_inside_an_execution_the_text_is_the_same() -> None:
    """A message inside MsgExec fails with its own code; the text has `failed to execute message` twice."""
    inner = b"failed to execute message; message index: 0: failed to execute message; message x: y: insufficient funds"
    assert "send coins" in as_error(Refusal("sdk", 5, inner), "gonka1x").remedy
    assert exec_message("g", []).type_url == EXEC_TYPE
