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
from gonka_devnet.blocks import Block, Maker, Validator
from gonka_devnet.database import Database, Past
from gonka_devnet.errors import sdk_query_error
from gonka_devnet.index import Index
from gonka_devnet.mempool import Mempool, Verdict
from gonka_devnet.module import QueryError, Store
from gonka_devnet.store import Latest

SHORTEST_EXECUTION_SECONDS = 0.5
BLOCKS_KEPT_IN_MEMORY = 32
LULL, MOST_GATHERING = 0.1, 0.5
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
        block_seconds: float,
        index_lag_seconds: float,
    ) -> None:
        self.app = app
        self.validator = validator
        self.index = index
        self._database = database
        self._maker = maker
        self._block_seconds = block_seconds
        self._index_lag_seconds = index_lag_seconds
        self._latest = Latest({})
        self._last: Block | None = None
        self._mempool = Mempool(app, self._latest, At(0, 0))
        self._mempool_lock = asyncio.Lock()
        self._to_index: asyncio.Queue[tuple[float, int]] = asyncio.Queue()
        self._executor = ThreadPoolExecutor(1, "blocks")
        self._indexer = ThreadPoolExecutor(1, "index")
        self._stop = asyncio.Event()
        self._arrived = 0.0
        self._changed = asyncio.Condition()
        self.block = lru_cache(maxsize=BLOCKS_KEPT_IN_MEMORY)(self._read_block)

    def load(self) -> None:
        """Read the newest state from disk."""
        self._latest = Latest(self._database.latest())
        height = self._database.height()
        self._last = self.block(height) if height else None
        self._mempool = Mempool(self.app, self._latest, self._last.at if self._last else At(0, 0))

    def _read_block(self, height: int) -> Block:
        stored = self._database.block(height)
        if stored is None:
            raise LookupError(f"no block {height}")
        return Block(stored)

    @property
    def height(self) -> int:
        """The newest block's height; 0 before the first."""
        return self._last.height if self._last else 0

    @property
    def last(self) -> Block:
        """The newest block; raise QueryError before the first."""
        if self._last is None:
            raise sdk_query_error(26, NOT_READY)
        return self._last

    def view(self, height: int) -> tuple[Store, At]:
        """Return the state after a block (0: the newest) with its height and time; raise QueryError."""
        if height < 0:
            raise sdk_query_error(18, "cannot query with height < 0; please provide a valid height")
        if height > self.last.height:
            raise sdk_query_error(26, "cannot query with height in the future; please provide a valid height")
        if height in {0, self.last.height}:
            return self._latest, self.last.at
        return Past(self._database, height), self.block(height).at

    async def query(self, path: str, request: bytes, height: int) -> bytes:
        """Answer a module's query at a height."""
        store, at = self.view(height)
        return self.app.query(path, request, store, at)

    async def broadcast(self, raw: bytes) -> Verdict:
        """Run CheckTx and keep the transaction if it passes."""
        if self._last is None:
            raise sdk_query_error(26, NOT_READY)
        async with self._mempool_lock:
            self._arrived = time.monotonic()
            return self._mempool.add(raw, hashlib.sha256(raw).digest())

    async def simulate(self, raw: bytes) -> wire.SimulateResponse:
        """Run a transaction on the check state without keeping anything."""
        if self._last is None:
            raise QueryError(grpc.StatusCode.UNKNOWN, NOT_READY)
        async with self._mempool_lock:
            return self.app.simulate(raw, self._mempool.state, self._mempool.at)

    async def first_block(self) -> None:
        """Wait until there is a block."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._last is not None)

    def stop(self) -> None:
        """End `run` after the block that is being made."""
        self._stop.set()

    async def run(self) -> None:
        """Make blocks until stopped."""
        indexing = asyncio.create_task(self._index_blocks())
        for height in range(self.index.height() + 1, self.height + 1):
            self._to_index.put_nowait((0.0, height))
        try:
            due = time.monotonic()
            while not self._stop.is_set():
                if indexing.done():
                    indexing.result()
                await self._gather(due)
                await self._make_block()
                due = max(due + self._block_seconds, time.monotonic())
                await self._pause(due)
        finally:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)
            self._executor.shutdown()
            self._indexer.shutdown()

    async def _pause(self, until: float) -> None:
        """Sleep, or wake up when stopped; at least once round the loop."""
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0.001)):
                await self._stop.wait()
        except TimeoutError:
            return

    async def _gather(self, due: float) -> None:
        """Wait for a lull while transactions come, so that no burst is cut; the next block is the sooner for it."""
        latest = due + MOST_GATHERING * self._block_seconds
        while not self._stop.is_set():
            quiet = self._arrived + LULL * self._block_seconds
            if time.monotonic() >= min(quiet, latest):
                return
            await self._pause(min(quiet, latest))

    def _in(self, executor: ThreadPoolExecutor, call: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(executor, call)

    async def _make_block(self) -> None:
        waiting, last = self._mempool.waiting(), self._last
        most = max(self._block_seconds, SHORTEST_EXECUTION_SECONDS)
        made = await self._in(self._executor, lambda: self._maker.make(last, waiting, self._latest, most))
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
            block = self.block(height)
            write = partial(self.index.write, height, block.message.data.txs, block.results.results)
            await self._in(self._indexer, write)
