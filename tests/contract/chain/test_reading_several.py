"""Several nodes of one chain: the first that answers is asked, and no two may contradict each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from devnet_process import Devnet, devnet, eventually, golden_key, topic_address
from reading_proxy import grpc_proxy, reader, rpc_proxy

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.endpoints import Endpoints
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.node import ChainNode, NodeAddress, NodeStatus
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.chain.sources import KvTaskSource, MemoTaskSource
from gonka_trainer.chain.transactions import send_message
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.types import Height, sha256

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet(tmp_path_factory.mktemp("several") / "home") as running:
        running.fault("blocks", make=30)
        yield running


async def until(ask: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not ask():
            await asyncio.sleep(0.02)


async def until_raised(call: Callable[[], Any], seconds: float = 30.0) -> ChainError:
    """Call again until it raises what does not mend by itself; return it."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                await call()
            except ChainUnavailableError:
                pass
            except ChainError as error:
                return error
            await asyncio.sleep(0.02)


async def test_another_is_asked_until_the_first_is_back(net: Devnet, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with rpc_proxy(net.rpc) as first, rpc_proxy(net.rpc) as second, reader(net, first.url, second.url) as client:
        await client.block(Height(1))
        assert client.endpoints.current.name == first.url
        first.away = True
        assert (await client.block(Height(2))).height == 2
        assert client.endpoints.current.name == second.url
        assert f"chain node {first.url} does not answer" in caplog.text
        assert caplog.text.count(f"now asking chain node {second.url}") == 1
        first.away = False
        await until(lambda: client.endpoints.current.name == first.url)
        assert (await client.block(Height(3))).height == 3
        assert (await client.info()).chain_id == net.chain_id


async def test_the_first_is_taken_again_only_when_it_has_caught_up(net: Devnet) -> None:
    async with rpc_proxy(net.rpc) as first, rpc_proxy(net.rpc) as second, reader(net, first.url, second.url) as client:
        await client.info()
        first.behind = 20
        await until(lambda: client.endpoints.current.name == second.url)
        height = (await client.info()).height
        assert (await client.block(height)).height == height
        first.behind = 0
        await until(lambda: client.endpoints.current.name == first.url)
        assert (await client.info()).height >= height


async def test_no_node_answers(net: Devnet) -> None:
    async with rpc_proxy(net.rpc) as first, rpc_proxy(net.rpc) as second, reader(net, first.url, second.url) as client:
        first.away = second.away = True
        with pytest.raises(ChainUnavailableError, match="does not answer"):
            await client.info()
        second.away = False
        assert (await client.info()).chain_id == net.chain_id


async def test_transactions_go_to_another_node_too(net: Devnet) -> None:
    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc) as second,
        reader(net, first.url, second.url, grpcs=[NOBODY, net.grpc]) as client,
    ):
        sent = net.send(golden_key("bob"), topic_address("several"))
        answer = await client.tx.broadcast(sent)
        assert answer.code == 0
        assert (await client.info()).chain_id == net.chain_id
    assert eventually(lambda: net.find(sent)).code == 0


async def test_another_chain_at_the_second_node(net: Devnet) -> None:
    def other(method: str, _height: int, result: Any) -> Any:
        if method == "status":
            result["node_info"]["network"] = "other-1"
        return result

    async with rpc_proxy(net.rpc) as first, rpc_proxy(net.rpc, other, away=True) as second:
        async with reader(net, first.url, second.url) as client:
            await client.block(Height(1))
            second.away = False
            error = await until_raised(client.info)
            assert f"{second.url} is of chain other-1, not {net.chain_id}" in error.what
            with pytest.raises(ChainError, match="is of chain other-1"):
                await client.block(Height(1))
            with pytest.raises(ChainError, match="is of chain other-1"):
                await client.tx.broadcast(b"")
        async with reader(net, first.url, second.url) as client:
            with pytest.raises(ChainError, match="is of chain other-1"):
                await client.info()


async def test_another_chain_at_the_second_nodes_grpc(net: Devnet) -> None:
    def other(method: str, answer: bytes) -> bytes:
        if method.endswith("/GetNodeInfo"):
            found = node_pb2.GetNodeInfoResponse.FromString(answer)
            found.default_node_info.network = b"other-1"
            return found.SerializeToString()
        return answer

    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc) as second,
        grpc_proxy(net.grpc, other) as altered,
        reader(net, first.url, second.url, grpcs=[net.grpc, altered]) as client,
    ):
        with pytest.raises(ChainError, match=f"{altered} is of chain other-1"):
            await client.info()


def other_header(height: int) -> Callable[[str, int, Any], Any]:
    def alter(method: str, asked: int, result: Any) -> Any:
        if (method, asked) == ("header", height):
            result["header"]["app_hash"] = "11" * 32
        return result

    return alter


async def test_two_nodes_with_other_hashes(net: Devnet) -> None:
    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc, other_header(7)) as second,
        reader(net, first.url, second.url) as client,
    ):
        assert (await client.block(Height(6))).height == 6
        with pytest.raises(ChainError, match="block 7: chain node") as caught:
            await client.block(Height(7))
        assert first.url in caught.value.what
        assert second.url in caught.value.what
        assert "until a person has looked" in caught.value.remedy
        assert not isinstance(caught.value, ChainUnavailableError)
        for call in (client.info, lambda: client.block(Height(6)), lambda: client.tx.broadcast(b"")):
            with pytest.raises(ChainError, match="block 7: chain node"):
                await call()


async def test_a_node_that_is_behind_is_compared_later(net: Devnet) -> None:
    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc, other_header(7), behind=10_000) as second,
        reader(net, first.url, second.url) as client,
    ):
        for height in range(1, 10):
            await client.block(Height(height))
        await client.info()
        second.behind = 0
        assert "block 7: chain node" in (await until_raised(client.info)).what


async def test_a_node_that_is_away_is_compared_later(net: Devnet) -> None:
    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc, other_header(7), away=True) as second,
        reader(net, first.url, second.url) as client,
    ):
        for height in range(1, 10):
            await client.block(Height(height))
        await client.info()
        second.away = False
        assert "block 7: chain node" in (await until_raised(client.info)).what


async def test_what_was_seen_before_counts_at_the_next_node_too(net: Devnet) -> None:
    def forked(method: str, height: int, result: Any) -> Any:
        if method == "block" and height == 8:
            result["block"]["header"]["last_block_id"]["hash"] = "11" * 32
        return result

    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc, forked) as second,
        reader(net, first.url, second.url) as client,
    ):
        await client.block(Height(7))
        first.away = True
        with pytest.raises(ChainError, match=f"block 7: chain node {first.url} says .*{second.url} says 1111"):
            await client.block(Height(8))


async def test_environments_must_agree(net: Devnet) -> None:
    def other(method: str, answer: bytes) -> bytes:
        if method.endswith("/EpochInfo"):
            found = inference_pb2.QueryEpochInfoResponse.FromString(answer)
            found.latest_epoch.index += 1
            return found.SerializeToString()
        return answer

    async with rpc_proxy(net.rpc) as first, rpc_proxy(net.rpc) as second, grpc_proxy(net.grpc, other) as altered:
        async with reader(net, first.url, second.url, grpcs=[net.grpc, altered]) as client:
            with pytest.raises(ChainError, match=r"block 5: chain node .* says epoch 0, .* says epoch 1"):
                await client.environment(Height(5))
        async with reader(net, first.url, second.url) as client:
            assert (await client.environment(Height(5))).schedule.index == 0


async def test_one_node_is_ones_own_and_the_other_is_verified(net: Devnet) -> None:
    async with rpc_proxy(net.rpc) as first, rpc_proxy(net.rpc) as second, reader(net, first.url, second.url) as client:
        client.endpoints.nodes[1].verify = True
        await client.block(Height(4))
        first.away = True
        assert (await client.block(Height(5))).height == 5
    assert any(asked.startswith("commit 6") for asked in second.asked)


async def test_a_verified_node_that_boasts_takes_nothing_over(net: Devnet) -> None:
    """Its height has no proof: one's own node is not left for it while it goes on, and waits for no such block."""
    net.fault("blocks", on=False)
    boast = {"on": True}

    def far_ahead(method: str, _height: int, result: Any) -> Any:
        if method == "status" and boast["on"]:
            result["sync_info"]["latest_block_height"] = str(net.height() + 1_000_000)
        return result

    try:
        async with rpc_proxy(net.rpc) as own, rpc_proxy(net.rpc, far_ahead) as other:
            addresses = [NodeAddress(net.grpc, own.url), NodeAddress(net.grpc, other.url, verify=True)]
            async with ChainClient(addresses[0], others=addresses[1:], tend_seconds=0.05) as client:
                assert (await client.info()).height == net.height()
                assert client.endpoints.current.name == own.url
                own.away = True
                await until_asked(client, other.url)
                own.away = boast["on"] = False
                await until(lambda: client.endpoints.current.name == own.url)
                assert (await client.info()).height == net.height(), "what was boasted is not waited for"
    finally:
        net.fault("blocks", on=True)


async def until_asked(client: ChainClient, name: str) -> None:
    """Ask for the client's status until this node gives it."""
    async with asyncio.timeout(30):
        while client.endpoints.current.name != name:
            await client.info()


async def test_ones_own_node_that_stands_still_is_left_for_a_verified_one() -> None:
    now, behind, ahead = 0.0, stub("own", 100), stub("other", 200, verify=True)
    endpoints = Endpoints([behind, ahead], lambda: now)
    await endpoints.tend(0)
    assert endpoints.current is behind
    now = 31.0
    await endpoints.tend(0)
    assert endpoints.current is ahead
    behind.at = 101
    await endpoints.tend(0)
    assert endpoints.current is behind


class Still(ChainNode):
    """A node of which only the height is asked."""

    at = 0

    async def status(self) -> NodeStatus:
        return NodeStatus("chain-1", Height(self.at), Height(1), 0, False, "", None)

    async def grpc_chain_id(self) -> str:
        return "chain-1"


def stub(name: str, height: int, verify: bool = False) -> Still:
    node = Still(NodeAddress(NOBODY, f"http://{name}:1", verify), 1.0)
    node.at = height
    return node


async def test_a_false_time_or_height_spoils_no_transaction(net: Devnet, tmp_path: Path) -> None:
    """Timeouts, and from which block on one is looked for, come from a block that was checked."""
    lie: dict[str, str] = {"latest_block_time": "2050-01-01T00:00:00Z"}

    def false(method: str, _height: int, result: Any) -> Any:
        if method == "status":
            result["sync_info"].update(lie)
        return result

    key, log = AccountKey.from_bytes(golden_key("carol").secret), FileSentLog(tmp_path)
    async with rpc_proxy(net.rpc, false) as proxy, reader(net, proxy.url, verify=True) as client:
        sender = Sender(client, key, log, SendSettings(poll_seconds=0.05))
        text, digest = encode_address(key.address, "gonka"), sha256(b"false time")
        message = send_message(text, topic_address("several"), 1, "ngonka")
        async with asyncio.timeout(60):
            receipt, _ = await sender.deliver(digest, [message])
        assert receipt.height <= net.height()
        lie["latest_block_height"] = str(net.height() + 1_000_000)
        sending = asyncio.create_task(sender.deliver(digest, [message]))
        await until(lambda: any(asked.startswith("block 100") for asked in proxy.asked) or any(tmp_path.iterdir()))
        assert not list(tmp_path.iterdir()), "nothing is signed that waits for a block that may never be"
        lie.clear()
        async with asyncio.timeout(60):
            assert (await sending)[0].height > receipt.height


async def test_heights_that_a_node_makes_up_are_not_asked_for(net: Devnet) -> None:
    """A call that every node refuses would count as a node that does not answer, and others would be asked instead."""
    uri = f"gonka-trainer:manifest/{'ab' * 32}".encode()
    tasks = inference_pb2.QueryTrainingTaskAllResponse()
    for created in (0, 1 << 63, (1 << 64) - 1):
        task = tasks.tasks.add(id=1 + len(tasks.tasks), created_at_block_height=created)
        task.requested_by, task.config.datasets.train = golden_key("alice").address().encode(), uri
    found = node_pb2.GetTxsEventResponse(total=3)
    for height in (-5, 0, 1 << 40):
        found.tx_responses.add(height=height)
    answers = {
        "/cosmos.tx.v1beta1.Service/GetTxsEvent": found.SerializeToString(),
        "/inference.inference.Query/TrainingTaskAll": tasks.SerializeToString(),
    }
    async with (
        grpc_proxy(net.grpc, **answers) as grpc_at,
        rpc_proxy(net.rpc) as proxy,
        reader(net, proxy.url, grpcs=[grpc_at]) as client,
    ):
        assert await MemoTaskSource(client, None).runs(Height(1)) == ()
        assert await KvTaskSource(client, None).runs(Height(1)) == ()
        assert not client.endpoints.is_away(client.endpoints.current)
        heights = [int(asked.split()[1]) for asked in proxy.asked if asked.startswith("block ")]
        assert all(0 < height <= net.height() for height in heights), heights


@pytest.mark.parametrize("fails", [False, True])
async def test_a_second_node_whose_state_cannot_be_read_holds_nothing_up(
    net: Devnet, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not contradict anything: it counts as one that does not answer."""

    def broken(method: str, answer: bytes) -> bytes:
        if method.endswith("/EpochInfo"):
            if fails:
                raise RuntimeError("its database is broken")
            return b"\xff"
        return answer

    async with (
        rpc_proxy(net.rpc) as first,
        rpc_proxy(net.rpc) as second,
        grpc_proxy(net.grpc, broken) as grpc_at,
        reader(net, first.url, second.url, grpcs=[net.grpc, grpc_at], tend_seconds=3600.0) as client,
    ):
        height = Height(net.height() - 2)
        assert (await client.environment(height)).schedule.epoch_length_blocks > 0
        assert client.endpoints.current.name == first.url
        assert client.endpoints.is_away(client.endpoints.nodes[1])
    assert "going on without it" in caplog.text
