"""What is remembered of what was found: nothing that a stranger does hides a run from those who want it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from gonka_trainer.app.finding import Finder
from gonka_trainer.errors import ChainError
from gonka_trainer.ports import Block, FoundRun, NodeInfo, ProofOfCompute
from gonka_trainer.round.environment import Environment
from gonka_trainer.types import Address, Digest, Height, sha256

REQUESTER, STRANGER = Address(b"\x01" * 20), Address(b"\x02" * 20)
RUN = FoundRun(sha256(b"run"), "", REQUESTER, Height(50), 0)


@dataclass
class Node:
    """A chain whose height is all that is asked for."""

    height: int = 100

    async def info(self) -> NodeInfo:
        return NodeInfo("chain-1", Height(self.height), Height(1), 0, False, "0", True)

    async def block(self, height: Height) -> Block:
        raise AssertionError(height)

    async def environment(self, height: Height) -> Environment:
        raise AssertionError(height)

    async def proof_of_compute(self) -> ProofOfCompute:
        raise AssertionError


@dataclass
class Source:
    """Runs on a list, and from which heights they were asked for."""

    settled: bool = True
    found: list[FoundRun] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    broken: bool = False
    vouches: bool = True

    async def runs(self, since: Height) -> tuple[FoundRun, ...]:
        self.asked.append(since)
        return tuple(run for run in self.found if run.height >= since)

    async def vouched(self, run: FoundRun) -> bool:
        if self.broken:
            raise ChainError("pruned")
        return self.vouches and run.author == REQUESTER


def wanted(run: FoundRun) -> bool:
    return run.author == REQUESTER


async def test_it_goes_on_where_it_was_and_asks_for_all_tasks_again() -> None:
    node, memo, kv = Node(), Source(), Source(settled=False)
    finder = Finder(node, (memo, kv))
    for height in (100, 200):
        node.height = height
        await finder.look((), wanted)
    assert (memo.asked, kv.asked) == ([1, 80], [1, 1])
    await finder.look({RUN.manifest_hash}, wanted)  # named for the first time
    await finder.look({RUN.manifest_hash}, wanted)
    assert memo.asked[2:] == [1, 180]


async def test_a_flood_hides_nothing_that_is_wanted() -> None:
    source = Source(found=[RUN])
    finder = Finder(Node(), (source,))
    await finder.look((), wanted)
    source.found += [FoundRun(sha256(b"%d" % i), "", STRANGER, Height(90), 0) for i in range(3000)]
    await finder.look((), wanted)
    assert finder.of(RUN.manifest_hash) == (RUN,)
    assert len(finder.all()) == 1001
    assert finder.all()[0].author == REQUESTER


async def test_a_strangers_copy_stands_beside_the_requesters() -> None:
    copy = replace(RUN, author=STRANGER, height=Height(40), url="https://evil.example")
    finder = Finder(Node(), (Source(found=[copy, RUN]),))
    await finder.look((), wanted)
    assert finder.of(RUN.manifest_hash) == (copy, RUN)


async def test_an_assignment_that_comes_later_is_seen() -> None:
    task = replace(RUN, task_id=3, named=frozenset[Address]())
    source = Source(settled=False, found=[task])
    finder = Finder(Node(), (source,))
    await finder.look((), wanted)
    source.found = [replace(task, named=frozenset({STRANGER}))]
    await finder.look((), wanted)
    assert finder.of(RUN.manifest_hash) == (replace(task, named=frozenset({STRANGER})),)


async def test_who_vouched_is_read_once_and_a_failure_is_no_answer() -> None:
    source = Source(found=[RUN], broken=True)
    finder = Finder(Node(), (source,))
    await finder.look((), wanted)
    assert await finder.vouched(RUN) is None
    source.broken = False
    assert await finder.vouched(RUN) is True
    source.vouches = False
    assert await finder.vouched(RUN) is True
    assert await finder.vouched(replace(RUN, height=Height(60))) is False  # written over: another task
    assert await finder.vouched(replace(RUN, manifest_hash=Digest(bytes(32)))) is None


@dataclass
class Slow(Source):
    """A source that answers when it is let, and says when it is asked."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    let: asyncio.Event = field(default_factory=asyncio.Event)

    async def runs(self, since: Height) -> tuple[FoundRun, ...]:
        self.asked.append(since)
        self.entered.set()
        found = tuple(run for run in self.found if run.height >= since)
        await self.let.wait()
        return found


async def test_a_look_beside_another_does_not_lose_a_run_that_is_named_first() -> None:
    old = replace(RUN, height=Height(5))
    source = Slow()
    finder = Finder(Node(), (source,))
    first = asyncio.create_task(finder.look((), wanted))
    await source.entered.wait()
    second = asyncio.create_task(finder.look({old.manifest_hash}, wanted))  # `tasks` is asked while the daemon looks
    await asyncio.sleep(0)
    source.found.append(old)
    source.asked.clear()
    source.let.set()
    await asyncio.gather(first, second)
    assert source.asked == [1]
    assert finder.of(old.manifest_hash) == (old,)
