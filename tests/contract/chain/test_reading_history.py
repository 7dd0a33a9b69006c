"""Long ways back: an outage, a node that has pruned what is asked for, a node whose height goes backwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from devnet_process import Devnet, devnet
from reading_proxy import reader, rpc_proxy

from gonka_trainer.chain.transport import GoneError, NotYetError
from gonka_trainer.daemon.follower import Follower, Tip
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Block
from gonka_trainer.types import Height

TEN_MINUTES_OF_BLOCKS = 120


@pytest.fixture
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    """A devnet that stands still unless it is told to make blocks."""
    with devnet(tmp_path_factory.mktemp("history") / "home") as running:
        running.fault("blocks", on=False)
        running.fault("blocks", make=5)
        yield running


@pytest.mark.parametrize("verify", [False, True])
async def test_an_outage_of_ten_minutes_of_blocks(net: Devnet, verify: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    heights: list[int] = []
    seen = asyncio.Event()

    async def follow(follower: Follower, until: int) -> None:
        async for found in follower.follow(Height(1)):
            if isinstance(found, Block):
                heights.append(found.height)
            elif isinstance(found, Tip):
                seen.set()
                if found.height >= until:
                    return

    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url, verify=verify) as client:
        before = net.height()
        end = before + TEN_MINUTES_OF_BLOCKS - verify
        task = asyncio.create_task(follow(Follower(client, 0.02), end))
        await seen.wait()
        proxy.away = True
        net.fault("blocks", make=TEN_MINUTES_OF_BLOCKS)
        while "does not answer; " not in caplog.text and "does not answer: " not in caplog.text:
            await asyncio.sleep(0.02)
        assert heights[-1] == before - verify
        proxy.away = False
        await asyncio.wait_for(task, 60)
    assert heights == list(range(1, end + 1))


async def test_pruned_blocks_say_what_there_is_and_what_to_do(net: Devnet) -> None:
    net.fault("blocks", make=20)
    net.fault("prune", below=20)
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url) as client:
        assert (await client.info()).earliest_height == 20
        with pytest.raises(GoneError, match="no longer has block 7: the lowest that it has is 20") as caught:
            await client.block(Height(7))
        assert "runs.checkpoints" in caught.value.remedy
        assert "min-retain-blocks" in caught.value.remedy
        with pytest.raises(GoneError, match="no longer has the state of block 7") as caught:
            await client.environment(Height(7))
        assert "runs.checkpoints" in caught.value.remedy
        assert not isinstance(caught.value, ChainUnavailableError)
        assert (await client.block(Height(20))).height == 20
        with pytest.raises(NotYetError):
            await client.environment(Height(1000))


async def test_a_second_node_that_keeps_the_block_is_asked(net: Devnet) -> None:
    async with rpc_proxy(net.rpc) as proxy, rpc_proxy(net.rpc, lowest=4) as second:
        async with reader(net, second.url, proxy.url) as client:
            assert (await client.block(Height(2))).height == 2
            assert client.endpoints.current.name == second.url
        async with reader(net, second.url) as client:
            with pytest.raises(GoneError, match="block 2: the lowest that it has is 4"):
                await client.block(Height(2))


async def test_a_height_that_goes_backwards_is_waited_for(net: Devnet) -> None:
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url) as client:
        tip = (await client.info()).height
        net.fault("rewind", blocks=3)
        with pytest.raises(ChainUnavailableError, match=f"is at height {tip - 3} and was at {tip}"):
            await client.info()
        net.fault("blocks", make=4)
        assert (await client.info()).height > tip


async def test_another_chain_id_in_mid_run(net: Devnet) -> None:
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url) as client:
        await client.info()
        net.fault("chain_id", value="other-9")
        with pytest.raises(ChainError, match="is of chain other-9, not"):
            await client.info()
        net.fault("chain_id", value=None)
        with pytest.raises(ChainError, match="is of chain other-9, not"):
            await client.block(Height(1))


async def test_a_fork_is_not_followed(net: Devnet) -> None:
    net.fault("blocks", make=5)
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url) as client:
        await client.block(Height(4))
        net.fault("fork", height=4)
        with pytest.raises(ChainError, match="the chain was reset"):
            await client.block(Height(5))


async def test_blocks_are_read_without_an_index(net: Devnet) -> None:
    net.fault("index", on=False)
    async with rpc_proxy(net.rpc) as proxy, reader(net, proxy.url) as client:
        assert (await client.block(Height(2))).height == 2
        assert await client.tx.search_heights("tx.height=2") is None
        assert await client.tx.find_transaction("00" * 32) is None
