"""What the client makes of nodes that answer badly: a small HTTP server tells what a node told, altered."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chain_recordings import RECORDED

from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.sentlog import FileSentLog, Pending
from gonka_trainer.chain.transport import GoneError, GrpcNode, NotYetError, RpcNode
from gonka_trainer.errors import ChainError, ChainUnavailableError, ConfigError, StorageError
from gonka_trainer.types import Digest, Height

Answer = Callable[[str], Any]
BLOCK = RECORDED["rpc"]["block_two_txs"]
RESULTS = RECORDED["rpc"]["block_results_two_txs"]


def recorded(path: str) -> Any:
    return {"block": BLOCK, "block_results": RESULTS, "status": RECORDED["rpc"]["status"]}[path]


@asynccontextmanager
async def node(answer: Answer, **settings: Any) -> AsyncIterator[ChainClient]:
    """Open a client of a node whose RPC answers as told; nothing listens at its gRPC address."""

    async def respond(request: web.Request) -> web.Response:
        document = answer(request.path.lstrip("/"))
        status = 500 if isinstance(document, dict) and "error" in document else 200
        text = document if isinstance(document, str) else json.dumps(document)
        return web.Response(text=text, status=status, content_type="application/json")

    server = web.Application()
    server.router.add_get("/{path}", respond)
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with ChainClient(NodeAddress("127.0.0.1:1", f"http://{host}:{port}"), **settings) as chain:
            yield chain
    finally:
        await runner.cleanup()


async def test_a_recorded_block() -> None:
    async with node(recorded, chain_id="gonka-golden") as chain:
        block = await chain.block(Height(14))
        assert len(block.transactions) == len(block.results) == 2
        assert await chain.block(Height(14)) is block


def altered(path: list[Any], value: Any, name: str = "block") -> Answer:
    documents = {"block": copy.deepcopy(BLOCK), "block_results": copy.deepcopy(RESULTS)}
    place = documents[name]["result"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return lambda asked: documents[asked]


@pytest.mark.parametrize(
    ("answer", "verify", "text"),
    [
        (altered(["block", "data", "txs"], BLOCK["result"]["block"]["data"]["txs"][:1]), False, "1 transactions and 2"),
        (altered(["height"], "15", "block_results"), False, "its results are of 15"),
        (altered(["block", "header", "height"], "14x"), False, "not a block"),
        (altered(["block", "header", "chain_id"], "other"), False, "is of chain other, not gonka-golden"),
        (altered(["block", "data", "txs", 0], "AAAA"), True, "do not hash to its data_hash"),
        (altered(["block_id", "hash"], "00" * 32), True, "does not hash to the block's hash"),
    ],
)
async def test_blocks_that_contradict_themselves(answer: Answer, verify: bool, text: str) -> None:
    async with node(answer, chain_id="gonka-golden", verify=verify) as chain:
        with pytest.raises(ChainError, match=text) as caught:
            await chain.block(Height(14))
        assert not isinstance(caught.value, ChainUnavailableError)


async def test_another_height_than_asked() -> None:
    async with node(recorded) as chain:
        with pytest.raises(ChainError, match="asked for block 13, got 14"):
            await chain.block(Height(13))


def refusing(data: str) -> Answer:
    return lambda _: {"jsonrpc": "2.0", "id": -1, "error": {"code": -32603, "message": "Internal error", "data": data}}


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (lambda _: RECORDED["rpc"]["block_future"], NotYetError, "must be less than or equal"),
        (refusing("could not find results for height #9"), NotYetError, "could not find results"),
        (refusing("height 3 is not available, lowest height is 100"), GoneError, "3: the lowest that it has is 100"),
        (refusing("node is not persisting finalize block responses"), ChainError, "keeps no results"),
        (refusing("\x1b[2J"), ChainUnavailableError, r"\\x1b\[2J"),
        (lambda _: "404 page not found\n", ChainUnavailableError, "does not answer as a CometBFT RPC"),
        (lambda _: [], ChainUnavailableError, "no result"),
        (lambda _: {"result": None}, ChainUnavailableError, "no result"),
    ],
)
async def test_refusals_of_the_rpc(answer: Answer, kind: type[ChainError], text: str) -> None:
    async with node(answer) as chain:
        with pytest.raises(kind, match=text) as caught:
            await chain.block(Height(9))
        assert type(caught.value) is kind


async def test_a_node_whose_grpc_is_down_is_unavailable() -> None:
    async with node(recorded, timeout_seconds=2.0) as chain:
        with pytest.raises(ChainUnavailableError, match=r"127\.0\.0\.1:1"):
            await chain.info()


async def test_addresses_of_other_schemes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"chain\.grpc"):
        await GrpcNode("ftp://host:1", 1.0).__aenter__()
    with pytest.raises(ConfigError, match=r"chain\.rpc"):
        await RpcNode("host:1", 1.0).__aenter__()


PENDING = Pending(Digest(bytes(range(32))), b"\x00transaction\xff", 7, 9, 0, 11)


def test_the_sent_log_keeps_and_forgets(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "sent"
    log = FileSentLog(folder)
    assert log.get(PENDING.digest) is None
    log.put(PENDING)
    assert FileSentLog(folder).get(PENDING.digest) == PENDING
    assert log.get(Digest(bytes(32))) is None
    later = Pending(PENDING.digest, b"other", 8, 0, 12, 13)
    log.put(later)
    assert log.get(PENDING.digest) == later
    log.remove(PENDING.digest)
    log.remove(PENDING.digest)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"transaction": "!", "from_height": 1}', "null"])
def test_a_damaged_sent_log_says_what_to_do(tmp_path: Path, content: str) -> None:
    log = FileSentLog(tmp_path)
    log.put(PENDING)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    with pytest.raises(StorageError, match="is damaged") as caught:
        log.get(PENDING.digest)
    assert "remove it" in caught.value.remedy


def test_a_sent_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        FileSentLog(tmp_path / "file").put(PENDING)
