"""When a node that does not answer is asked again, and which of several is asked first."""

from __future__ import annotations

import itertools
import logging

import pytest
from signed_chain import SignedChain, Voter, served

from gonka_trainer.chain.endpoints import Endpoints
from gonka_trainer.chain.node import ChainNode, NodeAddress
from gonka_trainer.chain.transport import GoneError
from gonka_trainer.errors import ChainError, ChainUnavailableError


def chain() -> SignedChain:
    return SignedChain(lambda _: [Voter("a")], length=3)


async def test_the_pauses_grow_up_to_a_minute() -> None:
    now, silent = 0.0, chain()
    silent.methods = ()
    async with served(silent) as url, ChainNode(NodeAddress("127.0.0.1:1", url), 1.0) as node:
        endpoints = Endpoints([node, ChainNode(NodeAddress("127.0.0.1:1", "http://127.0.0.1:1"), 1.0)], lambda: now)
        async with endpoints.nodes[1]:
            asked_at = []
            while now < 400:
                before = len(silent.asked)
                await endpoints.tend(0)
                if len(silent.asked) > before:
                    asked_at.append(now)
                now += 0.5
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(pauses[7:]) == {60}


async def test_the_next_is_asked_and_the_change_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    nodes = [ChainNode(NodeAddress("127.0.0.1:1", f"http://{name}:1"), 1.0) for name in ("first", "second", "third")]
    endpoints = Endpoints(nodes)

    async def only_second(node: ChainNode) -> str:
        if node is nodes[1]:
            return node.name
        raise ChainUnavailableError(f"chain node {node.name} does not answer: down")

    assert [await endpoints.ask(only_second) for _ in range(3)] == ["http://second:1"] * 3
    assert endpoints.current is nodes[1]
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == ["chain node http://first:1 does not answer: down; now asking chain node http://second:1"]
    assert endpoints.standing()[0] == ("http://first:1", "one's own, does not answer")


async def test_what_one_has_pruned_another_may_have() -> None:
    nodes = [ChainNode(NodeAddress("127.0.0.1:1", f"http://{name}:1"), 1.0) for name in ("first", "second")]
    endpoints = Endpoints(nodes)

    async def kept_by(name: str, node: ChainNode) -> str:
        if name in node.name:
            return name
        raise GoneError(f"{node.name} no longer has it")

    assert await endpoints.ask(lambda node: kept_by("second", node)) == "second"
    assert endpoints.current is nodes[0]
    with pytest.raises(GoneError, match="first:1 no longer"):
        await endpoints.ask(lambda node: kept_by("nobody", node))


async def test_what_stops_everything_is_raised_by_every_call() -> None:
    endpoints = Endpoints([ChainNode(NodeAddress("127.0.0.1:1", "http://only:1"), 1.0)])
    endpoints.same_chain("chain-1", "here")
    with pytest.raises(ChainError, match="there is of chain chain-2, not chain-1"):
        endpoints.same_chain("chain-2", "there")

    async def never(node: ChainNode) -> None:
        raise AssertionError(node.name)

    with pytest.raises(ChainError, match="is of chain chain-2") as caught:
        await endpoints.ask(never)
    assert not isinstance(caught.value, ChainUnavailableError)
