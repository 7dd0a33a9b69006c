"""Following the chain's schedule and an ML node's state: holds in time, lifts after."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.daemon.mlstate import HOLDER as ML_STATE
from gonka_trainer.daemon.mlstate import MlStateWatch
from gonka_trainer.daemon.poc import HOLDER, BlockClock, PocWatch
from gonka_trainer.errors import ChainUnavailableError
from gonka_trainer.ports import Block, ConfirmationPoc, NodeInfo, ProofOfCompute
from gonka_trainer.round.environment import EpochSchedule
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.types import ZERO_DIGEST, Height
from tests.support.pieces import in_pieces

pytestmark = pytest.mark.timeout(60)
SCHEDULE = EpochSchedule(1, Height(100), 50, 4, 1, 4)
BLOCK_NS = 5_000_000_000


class Chain:
    """A chain that stands at a height; everything asked is counted."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.confirmation: ConfirmationPoc | None = None
        self.asked = 0
        self.away = False

    async def info(self) -> NodeInfo:
        self._check()
        return NodeInfo("c", Height(self.height), Height(1), self.height * BLOCK_NS, False, "1", False)

    async def block(self, height: Height) -> Block:
        return Block(height, ZERO_DIGEST, ZERO_DIGEST, height * BLOCK_NS, (), ())

    async def proof_of_compute(self) -> ProofOfCompute:
        self.asked += 1
        self._check()
        return ProofOfCompute(Height(self.height), self.height * BLOCK_NS, SCHEDULE, self.confirmation)

    def _check(self) -> None:
        if self.away:
            raise ChainUnavailableError("away")


@pytest.fixture
def turns(tmp_path: Path) -> GpuTurns:
    return GpuTurns(FileStops(tmp_path / "stops.json", 30.0))


def watch(chain: Chain, turns: GpuTurns, **more: Any) -> PocWatch:
    return PocWatch(cast("Any", chain), turns, 0.01, **more)


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_the_lead_follows_from_what_a_stop_takes(turns: GpuTurns, tmp_path: Path) -> None:
    held = {}
    for seconds in (30.0, 2.0):
        FileStops(tmp_path / "stops.json", 30.0).add(seconds)
        (tmp_path / "stops.json").write_text(f'{{"stop_seconds": [{seconds}]}}')
        chain, made = Chain(109), set()
        looking = watch(chain, turns)
        looking._clock = BlockClock()
        looking._clock.see(1, 1 * BLOCK_NS)
        for height in range(109, 162):
            looking._clock.see(height, height * BLOCK_NS)
            chain.height = height
            looking.decide(await chain.proof_of_compute())
            if HOLDER in turns.holds:
                made.add(height)
        held[seconds] = (min(made), max(made))
    assert held == {30.0: (140, 158), 2.0: (149, 158)}  # (1.5 * 30 + 1.25) / 5 = 9.25, (3 + 1.25) / 5 = 0.85


async def test_holds_and_lifts_as_the_chain_moves(turns: GpuTurns) -> None:
    chain = Chain(120)
    chain.away = True
    task = asyncio.create_task(watch(chain, turns).run())
    await until(lambda: turns.holds)
    assert "not been asked" in turns.holds[HOLDER]
    chain.away = False
    await until(lambda: not turns.holds)
    chain.confirmation = ConfirmationPoc(Height(120), Height(122), Height(127), Height(131))
    await until(lambda: "confirmation, blocks 122 to 130" in turns.holds.values())
    chain.height, chain.confirmation = 131, None
    await until(lambda: not turns.holds)
    chain.height = 149
    await until(lambda: "scheduled, blocks 150 to 158" in turns.holds.values())
    chain.away, asked = True, chain.asked
    await until(lambda: chain.asked > asked + 2)
    assert HOLDER in turns.holds
    chain.away, chain.height = False, 159
    await until(lambda: not turns.holds)
    task.cancel()
    await asyncio.wait((task,))


async def test_nothing_is_held_where_it_does_not_apply(turns: GpuTurns) -> None:
    applies, chain = [True], Chain(155)
    task = asyncio.create_task(watch(chain, turns, applies=lambda: applies[0]).run())
    await until(lambda: HOLDER in turns.holds)
    applies[0] = False
    await until(lambda: not turns.holds)
    task.cancel()
    await asyncio.wait((task,))


def test_a_halt_of_the_chain_does_not_change_a_blocks_time() -> None:
    clock = BlockClock()
    assert clock.seconds is None
    for height in range(10):
        clock.see(height, height * BLOCK_NS)
    clock.see(10, 10_000 * BLOCK_NS)
    clock.see(10, 10_001 * BLOCK_NS)
    assert clock.seconds == 5.0


class MlNode:
    """An ML node that answers what it is told to."""

    def __init__(self) -> None:
        self.answer: str | bytes = '{"state": "INFERENCE"}'
        self.asked = 0

    async def handle(self, _: web.Request) -> web.Response:
        self.asked += 1
        body = self.answer if isinstance(self.answer, bytes) else self.answer.encode()
        return web.Response(body=body)  # without a Content-Type, as the network node's own requests are


async def test_an_ml_node_that_turns_to_pow_gets_the_gpus(turns: GpuTurns) -> None:
    node, app = MlNode(), web.Application()
    app.router.add_get("/api/v1/state", node.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    task = asyncio.create_task(MlStateWatch(f"http://127.0.0.1:{port}/", turns, 0.01).run())
    await until(lambda: node.asked > 1)
    assert not turns.holds
    node.answer = '{"state": "POW"}'
    await until(lambda: ML_STATE in turns.holds)
    for nonsense in (b"\xff", b"[]", b'{"state": 3}', b"", b"[" * 100_000):
        node.answer, asked = nonsense, node.asked
        await until(lambda asked=asked: node.asked > asked + 1)
        assert ML_STATE in turns.holds
    node.answer = '{"state": "STOPPED"}'
    await until(lambda: not turns.holds)
    node.answer = '{"state": "POW"}'
    await until(lambda: ML_STATE in turns.holds)
    await runner.cleanup()
    assert ML_STATE in turns.holds  # not at once: it may be starting again
    task.cancel()
    await asyncio.wait((task,))


async def test_a_state_that_comes_in_two_pieces_is_read_whole(turns: GpuTurns) -> None:
    async with in_pieces(b'{"state": "POW"}') as node:
        task = asyncio.create_task(MlStateWatch(node.url, turns, 0.01).run())
        await until(lambda: turns.holds.get(ML_STATE) == "the ML node's state is POW" or node.answered > 2)
        assert turns.holds[ML_STATE] == "the ML node's state is POW"
        task.cancel()
        await asyncio.wait((task,))
