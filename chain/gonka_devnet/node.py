"""The node: block loop, mempool, index and the views that the services read."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import TypeVar

import grpc

from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.app import App, At
from gonka_devnet.blocks import Block, Maker, Ordered, Validator
from gonka_devnet.clock import Clock
from gonka_devnet.database import Database, Past
from gonka_devnet.disguise import Disguise
from gonka_devnet.errors import sdk_query_error
from gonka_devnet.faults import Faults, Order
from gonka_devnet.index import Index
from gonka_devnet.mempool import Mempool, Verdict
from gonka_devnet.module import QueryError, Store
from gonka_devnet.pace import Pace, Turn
from gonka_devnet.store import Latest

SHORTEST_EXECUTION_SECONDS = 0.5
BLOCKS_KEPT_IN_MEMORY = 32
NOT_READY = "context did not contain latest block height in either check state or finalize block state (0)"
T = TypeVar("T")


class Node:
    """One chain. All calls come from one event loop; blocks are executed and indexed in threads of their own."""

    def __init__(
        self,
        app: App,
        database: Database,
        index: Index,
        validator: Validator,
        maker: Maker,
        clock: Clock,
        block_seconds: float,
        index_lag_seconds: float,
    ) -> None:
        self.app = app
        self.validator = validator
        self.index = index
        self._database = database
        self._maker = maker
        self.clock = clock
        self.faults = Faults()
        self._pace = Pace(block_seconds, self.faults)
        self._index_lag_seconds = index_lag_seconds
        self._latest = Latest({})
        self._last: Block | None = None
        self._mempool = Mempool(app, self._latest, At(0, 0))
        self._mempool_lock = asyncio.Lock()
        self._to_index: asyncio.Queue[tuple[float, int]] = asyncio.Queue()
        self._executor = ThreadPoolExecutor(1, "blocks")
        self._indexer = ThreadPoolExecutor(1, "index")
        self._changed = asyncio.Condition()
        self._block = lru_cache(maxsize=BLOCKS_KEPT_IN_MEMORY)(self._read_block)

    def load(self) -> None:
        """Read the newest state from disk."""
        self._latest = Latest(self._database.latest())
        height = self._database.height()
        self._last = self._block(height) if height else None
        if self._last is not None:
            self.clock.skip_to(self._last.stored.commit_time_ns)
        self._mempool = Mempool(self.app, self._latest, self._last.at if self._last else At(0, 0))

    def _read_block(self, height: int) -> Block:
        stored = self._database.block(height)
        if stored is None:
            raise LookupError(f"no block {height}")
        return Block(stored)

    @property
    def made_height(self) -> int:
        """The newest block's height; 0 before the first."""
        return self._last.height if self._last else 0

    @property
    def height(self) -> int:
        """The height that the node shows."""
        return self.faults.shown_height(self.made_height)

    @property
    def chain_id(self) -> str:
        """The chain id that the node shows."""
        return self.faults.chain_id or self.app.chain.chain_id

    @property
    def last(self) -> Block:
        """The newest block that is shown; raise QueryError before the first and during a start."""
        if self._last is None or self.faults.starting:
            raise sdk_query_error(26, NOT_READY)
        return self.block(self.height)

    def block(self, height: int) -> Block:
        """Return a block as the node shows it; raise QueryError where it is pruned."""
        return self.faults.block(height, self._block)

    def show(self, chain_id: str | None, fork: int) -> None:
        """Show another chain id (None: the true one) and, from a height on (0: none), another history."""
        self.faults.chain_id, self.faults.fork = chain_id, fork
        first = 1 if chain_id else fork
        self.faults.disguise = Disguise(self.validator, self._block, first, self.chain_id) if first else None

    def view(self, height: int) -> tuple[Store, At]:
        """Return the state after a block (0: the newest) with its height and time; raise QueryError."""
        if height < 0:
            raise sdk_query_error(18, "cannot query with height < 0; please provide a valid height")
        shown = self.last.height
        if height > shown:
            raise sdk_query_error(26, "cannot query with height in the future; please provide a valid height")
        wanted = height or shown
        self.faults.check_state(wanted, shown)
        if self._last is not None and wanted == self._last.height:
            return self._latest, self._last.at
        return Past(self._database, wanted), self._block(wanted).at

    async def query(self, path: str, request: bytes, height: int) -> bytes:
        """Answer a module's query at a height."""
        store, at = self.view(height)
        return self.app.query(path, request, store, at)

    async def broadcast(self, raw: bytes) -> Verdict:
        """Run CheckTx and keep the transaction if it passes."""
        if self._last is None or self.faults.starting:
            raise sdk_query_error(26, NOT_READY)
        refused = self.faults.refusal()
        if refused is not None:
            return refused
        digest = hashlib.sha256(raw).digest()
        async with self._mempool_lock:
            self._pace.arrived()
            verdict = self._mempool.add(raw, digest)
            if verdict.code == 0 and self.faults.dropping():
                self._mempool.forget(digest)
            return verdict

    async def simulate(self, raw: bytes) -> wire.SimulateResponse:
        """Run a transaction on the check state without keeping anything."""
        if self._last is None or self.faults.starting:
            raise QueryError(grpc.StatusCode.UNKNOWN, NOT_READY)
        async with self._mempool_lock:
            return self.app.simulate(raw, self._mempool.state, self._mempool.at)

    async def first_block(self) -> None:
        """Wait until there is a block."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._last is not None)

    def stop(self) -> None:
        """End `run` after the block that is being made."""
        self._pace.stop()

    def set_making(self, making: bool) -> None:
        """Go on making blocks in time, or stop."""
        self.faults.making = making
        self._pace.wake()

    async def make(self, count: int) -> int:
        """Make blocks as fast as it goes, their times a block's time apart; return the newest height."""
        target = self.made_height + self._pace.asked + count
        self._pace.ask(count)
        async with self._changed:
            await self._changed.wait_for(lambda: self.made_height >= target)
        return self.made_height

    def order(self, change: Order) -> int:
        """Have a change made at the begin of the next block; return the height that it has at the earliest."""
        self.faults.orders.append(change)
        return self.made_height + 1

    async def forget_mempool(self) -> None:
        """Lose what waits and what was seen, as a node that starts again."""
        async with self._mempool_lock:
            self._mempool = Mempool(self.app, self._latest, self._last.at if self._last else At(0, 0))

    async def run(self) -> None:
        """Make blocks until stopped."""
        indexing = asyncio.create_task(self._index_blocks())
        for height in range(self.index.height() + 1, self.made_height + 1):
            self._to_index.put_nowait((0.0, height))
        try:
            due, seconds = time.monotonic(), self._pace.block_seconds
            while not self._pace.stopped:
                if indexing.done():
                    indexing.result()
                turn = await self._pace.turn(due)
                if turn is Turn.NOT_YET:
                    continue
                if turn is Turn.ASKED and self._last is not None:
                    self.clock.skip_to(self._last.stored.commit_time_ns + int(seconds * 10**9))
                await self._make_block()
                now = time.monotonic()
                due = min(max(due + seconds, now), now + seconds)
        finally:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)
            self._executor.shutdown()
            self._indexer.shutdown()

    def _in(self, executor: ThreadPoolExecutor, call: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(executor, call)

    async def _make_block(self) -> None:
        raw, changes = self.faults.take_orders()
        twice = {hashlib.sha256(each).digest() for each in raw}
        waiting, last = [tx for tx in self._mempool.waiting() if tx.hash not in twice], self._last
        most, ordered = max(self._pace.block_seconds, SHORTEST_EXECUTION_SECONDS), Ordered(raw, changes)
        made = await self._in(self._executor, lambda: self._maker.make(last, waiting, self._latest, most, ordered))
        async with self._mempool_lock:
            self._latest.apply(made.changes)
            self._last = made.block
            await self._in(self._executor, lambda: self._mempool.committed(made.done, made.block.at))
        self._to_index.put_nowait((time.monotonic() + self._index_lag_seconds, made.block.height))
        async with self._changed:
            self._changed.notify_all()

    async def _index_blocks(self) -> None:
        while True:
            due, height = await self._to_index.get()
            await asyncio.sleep(due - time.monotonic())
            block = self._block(height)
            write = partial(self.index.write, height, block.message.data.txs, block.results.results)
            await self._in(self._indexer, write)
