"""Answers that no honest node gives: each is refused as an error with a remedy, none ends the program with a trace."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from signed_chain import SignedChain, Voter

from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.types import Height

FOUR = tuple(Voter(name) for name in "abcd")
ENDLESS = float("inf")  # 1e999 in JSON
Alter = Callable[[str, Any], Any]


@asynccontextmanager
async def hostile(alter: Alter, asked: list[str] | None = None) -> AsyncIterator[ChainClient]:
    """Open a client of a node, verified, that answers as `alter` makes of (method, result): a result, or a text."""
    chain = SignedChain(lambda _: FOUR, length=12)

    async def respond(request: web.Request) -> web.StreamResponse:
        if asked is not None:
            asked.append(request.match_info["method"])
        answer = json.loads((await chain.respond(request)).body)
        result = None
        if "result" in answer:
            result = alter(request.match_info["method"], answer["result"])
            if isinstance(result, web.StreamResponse):
                return result
            answer["result"] = result
        text = result if isinstance(result, str) else json.dumps(answer)
        return web.Response(text=text, content_type="application/json")

    server = web.Application()
    server.router.add_get("/{method}", respond)
    runner = web.AppRunner(server)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        node = NodeAddress("127.0.0.1:1", f"http://{host}:{port}")
        async with ChainClient(node, verify=True) as client:
            yield client
    finally:
        await runner.cleanup()


def put(method: str, path: tuple[Any, ...], value: Any) -> Alter:
    """Change one place of one method's results."""

    def alter(asked: str, result: Any) -> Any:
        if asked == method:
            place = result
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
        return result

    return alter


COMMIT = ("signed_header", "commit")


@pytest.mark.parametrize(
    ("alter", "text"),
    [
        (put("block_results", ("height",), ENDLESS), "not a block"),
        (put("block_results", ("txs_results", 0, "code"), ENDLESS), "not a block"),
        (put("commit", (*COMMIT, "round"), ENDLESS), "not a commit"),
        (put("commit", (*COMMIT, "round"), 1 << 70), "not a commit"),
        (put("commit", (*COMMIT, "round"), -1), "not a commit"),
        (put("commit", (*COMMIT, "signatures", 0, "block_id_flag"), ENDLESS), "not a commit"),
        (put("commit", (*COMMIT, "signatures", 0, "timestamp"), "1960-01-01T00:00:00Z"), "not a commit"),
        (put("validators", ("total",), ENDLESS), "validators in a form that is not known"),
        (put("validators", ("validators", 0, "voting_power"), ENDLESS), "not validators"),
        (put("validators", ("validators", 0, "voting_power"), "-10"), "without voting power"),
        (put("validators", ("validators",), []), "validators in a form that is not known"),
    ],
)
async def test_numbers_that_no_block_has(alter: Alter, text: str) -> None:
    async with hostile(alter) as client:
        with pytest.raises(ChainError, match=text) as caught:
            await client.block(Height(3))
        assert caught.value.remedy


@pytest.mark.parametrize("height", [ENDLESS, str(1 << 62), "-1", str(1 << 70)])
async def test_heights_that_no_chain_has(height: Any) -> None:
    async with hostile(put("status", ("sync_info", "latest_block_height"), height)) as client:
        with pytest.raises(ChainError, match="status in a form that is not known"):
            await client.status()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"result":' * 100_000])
async def test_json_that_is_too_deep(text: str) -> None:
    async with hostile(lambda _, __: text) as client:
        with pytest.raises(ChainUnavailableError, match="does not answer as a CometBFT RPC"):
            await client.block(Height(3))


async def test_nobody_is_led_elsewhere() -> None:
    """A redirection would have this machine ask addresses that only it can reach."""
    asked: list[str] = []

    def elsewhere(method: str, result: Any) -> Any:
        if method == "block":
            return web.Response(status=302, headers={"Location": "/inner_service"})
        return result

    async with hostile(elsewhere, asked) as client:
        with pytest.raises(ChainUnavailableError):
            await client.block(Height(3))
    assert asked == ["block"]


@pytest.mark.parametrize("method", ["status", "header", "commit", "validators"])
async def test_small_answers_are_not_read_at_any_length(method: str) -> None:
    """Megabytes of JSON take a hundred times as much memory, and all else waits while they are read."""

    def long(asked: str, result: Any) -> Any:
        return {**result, "more": "x" * (9 << 20)} if asked == method else result

    async with hostile(long) as client:
        with pytest.raises(ChainError, match=f"to {method}.* has more than 8388608 bytes"):
            await client.endpoints.current.rpc.call(f"{method}?height=3")
