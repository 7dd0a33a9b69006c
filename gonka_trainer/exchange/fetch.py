"""Fetching one blob or state from whoever has it: chunk by chunk, from several at once, going on where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Protocol

from gonka_trainer.exchange.limits import CHUNK_BYTES
from gonka_trainer.exchange.schedule import Request, Schedule
from gonka_trainer.ports import Blame, ChunkIndex, Endpoint, Fetched, OpenIndex, Peers, StoredObject
from gonka_trainer.types import GOOD, Fault, Verdict

_SENDERS_FAULTS: Final = {Fault.COMMITMENT, Fault.DIGEST, Fault.PROTOCOL, Fault.UNREACHABLE}


STALL_SECONDS: Final = 10.0
"""After so long without any request's end, what is outstanding is asked of idle peers too."""

INDEX_SECONDS: Final = 60.0
"""A peer has so long for a whole index; then the next one is asked."""


class Filling(Protocol):
    """An object on disk that is being filled: `storage.held.Held`. Methods block and are called from threads."""

    def missing(self) -> tuple[int, ...]:
        """Return the chunks that are not here, in order."""

    @property
    def bad_form(self) -> bool:
        """Whether a chunk that is here matches its digest and breaks a rule."""

    def write(self, chunk: int, data: bytes, good: bool = True) -> None:
        """Put a chunk whose digest is right on disk, and whether it keeps the rules; from then on it can be served."""

    def finish(self) -> StoredObject:
        """Mark the object as complete."""


class Store(Protocol):
    """Where fetched objects go: `storage.objects.ObjectStore`."""

    def held(self, kind: str, key: bytes, round_number: int) -> StoredObject | None:
        """Return an object of which at least the index is here."""

    def begin(self, kind: str, key: bytes, round_number: int, index: ChunkIndex) -> Filling:
        """Return the object to fill, new or with what is here from before."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which object: its kind ("blob" or "state"), key (commitment or root) and round (0 for a state)."""

    kind: str
    key: bytes
    round: int


async def fetch_object(
    peers: Peers,
    endpoints: Sequence[Endpoint],
    kind: str,
    key: bytes,
    round_number: int,
    open_index: OpenIndex,
    store: Store,
) -> Fetched:
    """Get the object from `endpoints`, the preferred first, checking every chunk before it is stored.

    `open_index` is given (preamble, leaf list) and returns the checked index; COMMITMENT and DIGEST are the sender's
    fault and the next is asked; any other Verdict is the author's, and there is nothing to fetch. A peer that sent a
    bad chunk is not asked again in this call. StorageError when the disk refuses. May be cancelled at any point.
    """
    fetch = _Fetch(peers, Wanted(kind, key, round_number), open_index, store)
    index = await fetch.index(endpoints)
    if index is None:
        return fetch.outcome(None)
    filling = await asyncio.to_thread(store.begin, kind, key, round_number, index)
    fetch.remember(filling)
    return fetch.outcome(await fetch.fill(index, filling, endpoints))


class _Fetch:
    def __init__(self, peers: Peers, wanted: Wanted, open_index: OpenIndex, store: Store) -> None:
        self._peers = peers
        self._wanted = wanted
        self._open_index = open_index
        self._store = store
        self._form = GOOD
        self._blames: list[Blame] = []
        self._banned: set[Endpoint] = set()

    def outcome(self, stored: StoredObject | None) -> Fetched:
        return Fetched(stored, self._form, tuple(self._blames))

    def remember(self, filling: Filling) -> None:
        """Take over what an earlier call found of the chunks that are here."""
        if filling.bad_form and self._form.good:
            self._form = Verdict(Fault.FORM, "a chunk that came before breaks a rule")

    async def index(self, endpoints: Sequence[Endpoint]) -> ChunkIndex | None:
        """Return the checked index: the one that is on disk, or the first good one that a peer gives."""
        opened = await self._stored_index()
        if opened is not None or not self._form.good:
            return opened
        for endpoint in endpoints:
            answer = await self._ask_index(endpoint)
            if not isinstance(answer, Verdict):
                return answer
            if not self._form.good:
                return None
            self._blame(endpoint, answer)
        return None

    async def fill(self, index: ChunkIndex, filling: Filling, endpoints: Sequence[Endpoint]) -> StoredObject | None:
        """Get the missing chunks; return the complete object, or None when nobody who is left has the rest."""
        schedule = Schedule(filling.missing(), [e for e in dict.fromkeys(endpoints) if e not in self._banned])
        running: dict[asyncio.Task[_Got], Request] = {}
        try:
            while True:
                for request in schedule.ready():
                    running[asyncio.create_task(self._get(index, filling, request))] = request
                if not running:
                    break
                done, _ = await asyncio.wait(running, timeout=STALL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._settle(schedule, running.pop(task), task.result())
                if not schedule.pending:
                    break
                for request in () if done else schedule.again():
                    running[asyncio.create_task(self._get(index, filling, request))] = request
        finally:
            await _cancel(running)
        return None if schedule.pending else await asyncio.to_thread(filling.finish)

    def _settle(self, schedule: Schedule, request: Request, got: _Got) -> None:
        if not got.verdict.good:
            self._blame(request.endpoint, got.verdict)
        schedule.settle(request, got.chunks, banned=request.endpoint in self._banned, failed=not got.verdict.good)

    def _blame(self, endpoint: Endpoint, verdict: Verdict) -> None:
        self._blames.append(Blame(endpoint.participant, verdict))
        if verdict.fault is not Fault.UNREACHABLE:
            self._banned.add(endpoint)

    async def _stored_index(self) -> ChunkIndex | None:
        wanted = self._wanted
        stored = await asyncio.to_thread(self._store.held, wanted.kind, wanted.key, wanted.round)
        opened = None if stored is None else await self._judged(stored.preamble, stored.leaf_list)
        return None if isinstance(opened, Verdict) else opened

    async def _ask_index(self, endpoint: Endpoint) -> ChunkIndex | Verdict:
        wanted = self._wanted
        try:
            async with asyncio.timeout(INDEX_SECONDS):
                answer = await self._peers.fetch_index(endpoint, wanted.kind, wanted.key, wanted.round)
        except TimeoutError:
            answer = Verdict(Fault.UNREACHABLE, f"no whole index within {INDEX_SECONDS:g} s")
        return answer if isinstance(answer, Verdict) else await self._judged(*answer)

    async def _judged(self, preamble: bytes, leaf_list: bytes) -> ChunkIndex | Verdict:
        """Open an index; a fault of the author's, which no other sender can mend, is kept in `_form`."""
        opened = await asyncio.to_thread(self._open_index, preamble, leaf_list)
        if not isinstance(opened, Verdict) and _beyond(opened):
            opened = Verdict(Fault.FORM, f"a chunk of more than {CHUNK_BYTES} bytes")
        if isinstance(opened, Verdict) and opened.fault not in _SENDERS_FAULTS:
            self._form = opened
        return opened

    async def _get(self, index: ChunkIndex, filling: Filling, request: Request) -> _Got:
        """Ask one peer for some chunks and store each as it comes; stops at the first thing wrong."""
        wanted, got = self._wanted, _Got()
        stream = self._peers.fetch_chunks(request.endpoint, wanted.kind, wanted.key, wanted.round, request.chunks)
        async with aclosing(stream) as answers:  # type: ignore[type-var]
            async for answer in answers:
                got.verdict = answer if isinstance(answer, Verdict) else await self._keep(index, filling, *answer)
                if not got.verdict.good or isinstance(answer, Verdict):
                    break
                got.chunks.add(answer[0])
        return got

    async def _keep(self, index: ChunkIndex, filling: Filling, chunk: int, data: bytes) -> Verdict:
        verdict = await asyncio.to_thread(index.check, chunk, data)
        if verdict.fault in _SENDERS_FAULTS:
            return verdict
        if self._form.good:
            self._form = verdict
        await asyncio.to_thread(filling.write, chunk, data, verdict.good)
        return GOOD


@dataclass
class _Got:
    """What one request brought: the chunks that are stored, and what ended it early."""

    chunks: set[int] = field(default_factory=set)
    verdict: Verdict = GOOD


def _beyond(index: ChunkIndex) -> bool:
    return any(index.chunk_bytes(i) > CHUNK_BYTES for i in range(index.count))


async def _cancel(tasks: Iterable[asyncio.Task[_Got]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
