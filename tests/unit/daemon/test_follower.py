"""Blocks come in order, none is skipped, and a history that changes is an error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from gonka_trainer.daemon.follower import Follower, Tip
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Block, NodeInfo
from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.types import ZERO_DIGEST, Digest, Height, sha256


def block(height: int, fork: bytes = b"") -> Block:
    def name(h: int) -> Digest:
        return sha256(fork, h.to_bytes(8, "big")) if h else ZERO_DIGEST

    return Block(Height(height), name(height), name(height - 1), height, (), ())


class ListedChain:
    """A chain in memory. `down` next calls of `info` fail; `grow` blocks come with every call that does not."""

    def __init__(self, height: int, grow: int = 0, down: int = 0) -> None:
        self.height = height
        self.grow = grow
        self.down = down
        self.forks: dict[int, bytes] = {}

    async def info(self) -> NodeInfo:
        if self.down:
            self.down -= 1
            raise ChainUnavailableError("node at 127.0.0.1:1 does not answer")
        self.height += self.grow
        return NodeInfo("c", Height(self.height), Height(1), 0, syncing=False, version="", training_module=False)

    async def block(self, height: Height) -> Block:
        return block(height, self.forks.get(height, b""))

    async def environment(self, height: Height) -> Environment:
        return Environment(NO_EPOCHS, ())


async def take(stream: AsyncIterator[Block | Tip], count: int) -> list[Block | Tip]:
    found = []
    async for each in stream:
        found.append(each)
        if len(found) == count:
            return found
    return found


async def test_all_blocks_up_to_the_tip_come_in_order() -> None:
    found = await take(Follower(ListedChain(50), 0).follow(Height(3)), 49)
    assert [b.height for b in found] == [*range(3, 51), 50]
    assert isinstance(found[-1], Tip)


async def test_new_blocks_follow_and_an_outage_skips_none(caplog: pytest.LogCaptureFixture) -> None:
    chain = ListedChain(0, grow=3, down=2)
    found = await take(Follower(chain, 0).follow(Height(1)), 12)
    assert [b.height for b in found if isinstance(b, Block)] == list(range(1, 10))
    assert "node at 127.0.0.1:1 does not answer; asking for block 1 again" in caplog.text


async def test_a_block_of_another_history_is_an_error() -> None:
    chain = ListedChain(5)
    chain.forks[4] = b"fork"
    with pytest.raises(ChainError, match="block 4 does not follow"):
        await take(Follower(chain, 0).follow(Height(1)), 6)


async def test_the_first_block_after_a_restart_must_follow_the_last_one_read() -> None:
    chain = ListedChain(5)
    assert len(await take(Follower(chain, 0).follow(Height(3), block(2).block_hash), 4)) == 4
    with pytest.raises(ChainError, match="block 3 does not follow"):
        await take(Follower(chain, 0).follow(Height(3), block(2, b"fork").block_hash), 1)


class SlowClock:
    """A clock that a chain's blocks move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowChain(ListedChain):
    """Every block takes half a second; `gap` cannot be had at first."""

    def __init__(self, height: int, clock: SlowClock, gap: int = 0) -> None:
        super().__init__(height)
        self.clock = clock
        self.gap = gap

    async def block(self, height: Height) -> Block:
        self.clock.now += 0.5
        if height == self.gap:
            self.gap = 0
            raise ChainUnavailableError("node at 127.0.0.1:1 does not answer")
        return await super().block(height)


async def test_progress_is_shown_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = SlowClock()
    await take(Follower(SlowChain(200, clock), 0, clock).follow(Height(1)), 201)
    lines = [line for line in caplog.messages if line.startswith("catching up")]
    assert 8 <= len(lines) <= 20
    assert lines[-1] == "catching up: 178 of 200 blocks, 1.84 a second, 12 s left"
    assert caplog.messages[-1] == "caught up: 200 blocks in 1.7 min"


async def test_a_few_blocks_are_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = SlowClock()
    await take(Follower(SlowChain(16, clock), 0, clock).follow(Height(1)), 17)
    assert not caplog.messages


async def test_blocks_before_one_that_cannot_be_had_are_given_out() -> None:
    clock = SlowClock()
    found = await take(Follower(SlowChain(40, clock, gap=12), 0, clock).follow(Height(1)), 41)
    assert [b.height for b in found if isinstance(b, Block)] == list(range(1, 41))
