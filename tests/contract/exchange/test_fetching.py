from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exchange_world import (
    LAYOUT,
    ROUND,
    SMALL,
    HookedStore,
    Host,
    Relay,
    World,
    address,
    blob_opener,
    keep,
    liar,
    make_blob,
    make_state,
    state_opener,
)

from gonka_trainer._pb.gonka_trainer.v1 import exchange_pb2 as pb
from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.fetch import fetch_object
from gonka_trainer.exchange.identity import new_identity
from gonka_trainer.exchange.limits import Limits
from gonka_trainer.gradient import digest
from gonka_trainer.gradient.blob import BlobIndex
from gonka_trainer.gradient.digest import LeafEntry
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.ports import Endpoint, Fetched
from gonka_trainer.round.commands import Keep
from gonka_trainer.types import GOOD, Digest, Fault, Verdict, sha256


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def _get_state(host: Host, root: Digest, sources: list[Endpoint], layout: Layout = LAYOUT) -> Fetched:
    return await fetch_object(host.client, sources, "state", root, 0, state_opener(root, layout), host.store)


def _flip(at: int) -> Callable[[int, bytes], bytes]:
    return lambda chunk, data: data if chunk != at else bytes([data[0] ^ 1]) + data[1:]


def _faults(got: Fetched) -> list[tuple[bytes, Fault | None]]:
    return [(blame.participant, blame.verdict.fault) for blame in got.blames]


async def test_a_state_arrives_whole_and_is_served_on(world: World) -> None:
    a, b, c = [await world.host(name) for name in "abc"]
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    got = await _get_state(b, index.root, [a.endpoint])
    assert got.stored is not None
    assert (got.form, got.blames) == (GOOD, ())
    assert got.stored.payload.read_bytes() == payload
    assert b.store.state(index.root) == got.stored
    again = await _get_state(c, index.root, [b.endpoint])
    assert again.stored is not None
    assert again.stored.payload.read_bytes() == payload


async def test_chunks_are_spread_over_the_holders(world: World) -> None:
    a, b, c = [await world.host(name) for name in "abc"]
    index, payload = make_state(SMALL)
    for holder in (a, b):
        keep(holder.store, "state", index.root, 0, index, payload)
    got = await _get_state(c, index.root, [a.endpoint, b.endpoint], SMALL)
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload
    assert a.store.reads + b.store.reads == index.count
    assert min(a.store.reads, b.store.reads) > 0


async def test_the_serving_peer_dies_in_mid_stream_and_another_finishes(world: World) -> None:
    a, b, c = await world.host("a", Limits(grace_seconds=0)), await world.host("b"), await world.host("c")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    keep(b.store, "state", index.root, 0, index, payload)
    loop, deaths = asyncio.get_running_loop(), []

    def die(chunk: int, data: bytes) -> bytes:
        if chunk == 4 and not deaths:
            deaths.append(asyncio.run_coroutine_threadsafe(a.server.__aexit__(None, None, None), loop))
            deaths[0].result()
        return data

    a.store.hook = die
    got = await _get_state(c, index.root, [a.endpoint])
    assert got.stored is None
    assert got.blames
    assert set(_faults(got)) == {(address("a"), Fault.UNREACHABLE)}
    missing = c.store.begin("state", index.root, 0, index).missing()
    assert 0 < len(missing) < index.count
    got = await _get_state(c, index.root, [a.endpoint, b.endpoint])
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload
    assert b.store.reads == len(missing)


async def test_a_connection_cut_in_mid_chunk_fails_over_at_once(world: World) -> None:
    a, b, c = [await world.host(name) for name in "abc"]
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    keep(b.store, "state", index.root, 0, index, payload)
    async with Relay(a.server.port) as relay:
        relay.cut_after_bytes = 1_500_000
        got = await _get_state(c, index.root, [replace(a.endpoint, port=relay.port), b.endpoint])
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload
    assert (address("a"), Fault.UNREACHABLE) in _faults(got)


async def test_a_bad_chunk_is_blamed_on_its_sender_who_is_not_asked_again(world: World) -> None:
    a, b, c = [await world.host(name) for name in "abc"]
    index, payload = make_state(SMALL)
    for holder in (a, b):
        keep(holder.store, "state", index.root, 0, index, payload)
    a.store.hook = _flip(0)
    got = await _get_state(c, index.root, [a.endpoint, b.endpoint], SMALL)
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload
    assert _faults(got) == [(address("a"), Fault.DIGEST)]
    assert a.store.reads <= 16  # the one request that was under way


async def test_nobody_honest_leaves_what_was_good(world: World) -> None:
    a, c = await world.host("a"), await world.host("c")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    a.store.hook = _flip(3)
    got = await _get_state(c, index.root, [a.endpoint])
    assert got.stored is None
    assert _faults(got) == [(address("a"), Fault.DIGEST)]
    assert c.store.begin("state", index.root, 0, index).missing() == tuple(range(3, index.count))
    assert c.store.state(index.root) is None


async def test_a_part_is_served_as_soon_as_it_is_checked(world: World) -> None:
    a, b, c = [await world.host(name) for name in "abc"]
    index, payload = make_blob("a")
    keep(a.store, "blob", index.commitment, ROUND, index, payload)
    a.store.hook = _flip(2)
    opener = blob_opener("a", index.commitment)
    assert (await fetch_object(b.client, [a.endpoint], "blob", index.commitment, ROUND, opener, b.store)).stored is None
    got = await fetch_object(c.client, [b.endpoint], "blob", index.commitment, ROUND, opener, c.store)
    assert got.stored is None
    assert "NOT_FOUND: chunk 2 is not here" in got.blames[0].verdict.detail
    assert c.store.begin("blob", index.commitment, ROUND, index).missing() == (2, 3, 4)
    a.store.hook = None
    got = await fetch_object(c.client, [b.endpoint, a.endpoint], "blob", index.commitment, ROUND, opener, c.store)
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload


async def test_a_restarted_client_goes_on_where_it_stopped(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    a.store.hook = _flip(6)
    assert (await _get_state(b, index.root, [a.endpoint])).stored is None
    a.store.hook, a.store.reads = None, 0
    async with PeerClient(b.identity) as client:
        with HookedStore(world.folder / "b") as store:
            opener = state_opener(index.root)
            got = await fetch_object(client, [a.endpoint], "state", index.root, 0, opener, store)
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload
    assert a.store.reads == index.count - 6


async def test_a_cancelled_fetch_goes_on_later(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    reached, loop = asyncio.Event(), asyncio.get_running_loop()

    def note(chunk: int, data: bytes) -> bytes:
        if chunk == 5:
            loop.call_soon_threadsafe(reached.set)
        return data

    a.store.hook = note
    task = asyncio.create_task(_get_state(b, index.root, [a.endpoint]))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    got = await _get_state(b, index.root, [a.endpoint])
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload


async def test_observers_get_states_and_no_blobs(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    world.gate.observers.add(address("b"))
    state, state_payload = make_state()
    blob, blob_payload = make_blob("a")
    keep(a.store, "state", state.root, 0, state, state_payload)
    keep(a.store, "blob", blob.commitment, ROUND, blob, blob_payload)
    assert (await _get_state(b, state.root, [a.endpoint])).stored is not None
    answer = await b.client.fetch_index(a.endpoint, "blob", blob.commitment, ROUND)
    assert isinstance(answer, Verdict)
    assert "FAILED_PRECONDITION" in answer.detail
    [answer] = [x async for x in b.client.fetch_chunks(a.endpoint, "blob", blob.commitment, ROUND, [0])]
    assert isinstance(answer, Verdict)
    assert "FAILED_PRECONDITION" in answer.detail


async def test_blobs_wait_for_the_window_to_close(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    index, payload = make_blob("a")
    keep(a.store, "blob", index.commitment, ROUND, index, payload)
    world.gate.window_closed = False
    answer = await b.client.fetch_index(a.endpoint, "blob", index.commitment, ROUND)
    assert isinstance(answer, Verdict)
    assert (answer.fault, "FAILED_PRECONDITION" in answer.detail) == (Fault.UNREACHABLE, True)
    world.gate.window_closed = True
    assert await b.client.fetch_index(a.endpoint, "blob", index.commitment, ROUND) == (index.preamble, index.leaf_list)
    missing = await b.client.fetch_index(a.endpoint, "blob", index.commitment, ROUND + 1)
    assert isinstance(missing, Verdict)
    assert "NOT_FOUND" in missing.detail


async def test_a_broken_header_is_the_authors_fault_and_nothing_is_fetched(world: World) -> None:
    a, b, c = [await world.host(name) for name in "abc"]
    index, payload = make_blob("a", inner_steps=31)
    for holder in (a, b):
        keep(holder.store, "blob", index.commitment, ROUND, index, payload)
    opener = blob_opener("a", index.commitment)
    got = await fetch_object(c.client, [a.endpoint, b.endpoint], "blob", index.commitment, ROUND, opener, c.store)
    assert (got.stored, got.form.fault, got.blames) == (None, Fault.HEADER, ())
    assert a.store.reads == b.store.reads == 0


async def test_bytes_that_match_and_break_a_rule_are_kept_and_named(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    index, payload = _with_wrong_sum(*make_blob("a"))
    keep(a.store, "blob", index.commitment, ROUND, index, payload)
    opener = blob_opener("a", index.commitment)
    got = await fetch_object(b.client, [a.endpoint], "blob", index.commitment, ROUND, opener, b.store)
    assert got.stored is not None
    assert got.stored.payload.read_bytes() == payload
    assert (got.form.fault, got.blames) == (Fault.NORM, ())


def _with_wrong_sum(index: BlobIndex, payload: bytes) -> tuple[BlobIndex, bytes]:
    first, total = index.entries[0], index.entries[0].sum_squares * 2
    data = payload[: first.length_bytes]
    leaf = digest.chunk_leaf(0, LAYOUT.chunk_elements_of(0), total, data)
    entries = (LeafEntry(leaf, total, first.length_bytes), *index.entries[1:])
    root = digest.payload_root(digest.encode_leaf_list(entries))
    return BlobIndex(replace(index.header, payload_root=root), entries, LAYOUT), payload


async def test_documents(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    name = sha256(b"tag", b"document")
    a.store.put_document(name, b"x" * (1 << 20))
    assert await b.client.fetch_document(a.endpoint, name) == b"x" * (1 << 20)
    missing = await b.client.fetch_document(a.endpoint, sha256(b"other"))
    assert isinstance(missing, Verdict)
    assert "NOT_FOUND" in missing.detail


def _pieces(*pieces: Any) -> Callable[[bytes, Any], Any]:
    async def answer(raw: bytes, context: Any) -> None:
        for piece in pieces:
            await context.write(piece if isinstance(piece, bytes) else piece.SerializeToString())

    return answer


_MIB = bytes(1 << 20)
_BAD_INDEXES = {
    "preamble of 4 GB": _pieces(pb.IndexPiece(preamble_bytes=2**32 - 1, leaf_list_bytes=5, data=_MIB)),
    "leaf list of 4 GB": _pieces(pb.IndexPiece(preamble_bytes=1, leaf_list_bytes=2**32 - 1, data=_MIB)),
    "one message of 5 MB": _pieces(pb.IndexPiece(preamble_bytes=1, leaf_list_bytes=5 << 20, data=bytes(5 << 20))),
    "crumbs": _pieces(*[pb.IndexPiece(preamble_bytes=10, leaf_list_bytes=1000, data=b"x")] * 1010),
    "spare bytes": _pieces(pb.IndexPiece(preamble_bytes=1, leaf_list_bytes=1, data=b"xyz")),
    "ends early": _pieces(pb.IndexPiece(preamble_bytes=1, leaf_list_bytes=2 << 20, data=_MIB)),
    "nothing": _pieces(),
    "no protobuf": _pieces(b"\xff\xff\xff"),
}
_BAD_CHUNKS = {
    "chunk of 4 GB": _pieces(pb.ChunkPiece(chunk=0, chunk_bytes=2**32 - 1, data=_MIB)),
    "another chunk": _pieces(pb.ChunkPiece(chunk=1, chunk_bytes=1, data=b"x")),
    "one message of 2 MB": _pieces(pb.ChunkPiece(chunk=0, chunk_bytes=2 << 20, data=bytes(2 << 20))),
    "crumbs": _pieces(*[pb.ChunkPiece(chunk=0, chunk_bytes=1000, data=b"x")] * 1000),
    "growing": _pieces(*[pb.ChunkPiece(chunk=0, chunk_bytes=(i + 2) << 20, data=_MIB) for i in range(9)]),
    "spare bytes": _pieces(pb.ChunkPiece(chunk=0, chunk_bytes=1, data=b"xyz")),
    "nothing": _pieces(),
    "no protobuf": _pieces(b"\xff\xff\xff"),
}


@pytest.mark.parametrize("name", _BAD_INDEXES)
async def test_an_index_beyond_its_limits_is_the_peers_fault(world: World, name: str) -> None:
    b = await world.host("b")
    async with liar(new_identity(), "a", GetIndex=_BAD_INDEXES[name]) as endpoint:
        answer = await b.client.fetch_index(endpoint, "state", bytes(32), 0)
    assert isinstance(answer, Verdict)
    assert answer.fault is Fault.PROTOCOL


@pytest.mark.parametrize("name", _BAD_CHUNKS)
async def test_a_chunk_beyond_its_limits_is_the_peers_fault(world: World, name: str) -> None:
    b = await world.host("b")
    async with liar(new_identity(), "a", GetChunks=_BAD_CHUNKS[name]) as endpoint:
        answers = [x async for x in b.client.fetch_chunks(endpoint, "state", bytes(32), 0, [0])]
    assert isinstance(answers[-1], Verdict)
    assert answers[-1].fault is Fault.PROTOCOL
    assert len(answers) == 1


async def test_a_truncated_leaf_list_is_the_senders_fault_and_another_is_asked(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    leaves = index.leaf_list[:-32]
    piece = pb.IndexPiece(preamble_bytes=len(index.preamble), leaf_list_bytes=len(leaves), data=index.preamble + leaves)
    async with liar(new_identity(), "l", GetIndex=_pieces(piece)) as endpoint:
        got = await _get_state(b, index.root, [endpoint, a.endpoint])
    assert got.stored is not None
    assert _faults(got) == [(address("l"), Fault.DIGEST)]


async def test_a_silent_peer_is_left_after_its_time(world: World) -> None:
    b = await world.host("b", Limits(answer_seconds=0.1, transfer_seconds=0.1))
    hang = asyncio.Event()

    async def answer(raw: bytes, context: Any) -> None:
        await context.write(pb.ChunkPiece(chunk=0, chunk_bytes=2 << 20, data=_MIB).SerializeToString())
        await hang.wait()

    async with liar(new_identity(), "a", GetChunks=answer) as endpoint:
        answers = [x async for x in b.client.fetch_chunks(endpoint, "state", bytes(32), 0, [0])]
    assert [x.fault for x in answers if isinstance(x, Verdict)] == [Fault.UNREACHABLE]


async def test_streams_of_one_peer_are_bounded(world: World) -> None:
    a, b, c = await world.host("a", Limits(streams_per_peer=1)), await world.host("b"), await world.host("c")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    stream = b.client.fetch_chunks(a.endpoint, "state", index.root, 0, range(index.count))
    assert not isinstance(await anext(stream), Verdict)  # open: 12 MB are more than the windows hold
    refused = await b.client.fetch_index(a.endpoint, "state", index.root, 0)
    assert isinstance(refused, Verdict)
    assert "ABORTED" in refused.detail
    assert not isinstance(await c.client.fetch_index(a.endpoint, "state", index.root, 0), Verdict)
    assert len([x async for x in stream if not isinstance(x, Verdict)]) == index.count - 1


async def test_a_caller_that_does_not_read_is_let_go(world: World) -> None:
    a = await world.host("a", Limits(connection_seconds=0.5, connection_grace_seconds=0.5))
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    async with PeerClient(a.identity) as client:
        stream = client.fetch_chunks(a.endpoint, "state", index.root, 0, [*range(index.count)] * 10)
        assert not isinstance(await anext(stream), Verdict)
        await asyncio.wait_for(_no_streams(a), 30)
        assert a.store.reads < index.count * 10
        await stream.aclose()  # type: ignore[attr-defined]


async def _no_streams(host: Host) -> None:
    while host.server.streams:
        await asyncio.sleep(0.01)


async def test_a_client_that_is_asked_to_connect_anew_does_so(world: World) -> None:
    a = await world.host("a", Limits(connection_seconds=0.1, connection_grace_seconds=10))
    b = await world.host("b")
    index, payload = make_state(SMALL)
    keep(a.store, "state", index.root, 0, index, payload)
    async with Relay(a.server.port) as relay:
        endpoint = replace(a.endpoint, port=relay.port)
        while relay.accepted < 5:  # one to be shown the certificate, and one each time that the server says so
            assert not isinstance(await b.client.fetch_index(endpoint, "state", index.root, 0), Verdict)


async def test_many_fetches_from_one_peer_wait_for_their_turn(world: World) -> None:
    a, b = await world.host("a", Limits(streams_per_peer=6)), await world.host("b")
    index, payload = make_state(SMALL)
    keep(a.store, "state", index.root, 0, index, payload)
    asked = [b.client.fetch_index(a.endpoint, "state", index.root, 0) for _ in range(40)]
    answers = await asyncio.gather(*asked)
    assert [answer for answer in answers if isinstance(answer, Verdict)] == []


async def test_an_idle_connection_with_keepalive_carries_a_large_stream(world: World) -> None:
    limits = Limits(keepalive_seconds=0.02)
    a, b = await world.host("a", limits), await world.host("b", limits)
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    async with Relay(a.server.port) as relay:
        endpoint = replace(a.endpoint, port=relay.port)
        assert not isinstance(await b.client.fetch_index(endpoint, "state", index.root, 0), Verdict)
        before, connections = relay.writes, relay.accepted
        async with relay.changed:
            # The library pings once a second at most, and is told to go away at the third if the server does not
            # allow it; the rest of these writes answer the server's own pings.
            await relay.changed.wait_for(lambda: relay.writes >= before + 150)
        got = await _get_state(b, index.root, [endpoint])
        assert got.stored is not None
        assert got.blames == ()
        assert relay.accepted == connections  # never told to go away


async def test_open_files_do_not_grow(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    layout = Layout(SMALL.entries, 20)
    index, payload = make_state(layout)
    keep(a.store, "state", index.root, 0, index, payload)

    async def fetches(whole: int, answers: int) -> int:
        for _ in range(whole):
            b.store.prune(Keep((), 0))
            assert (await _get_state(b, index.root, [a.endpoint], layout)).stored is not None
        for _ in range(answers):
            got = [x async for x in b.client.fetch_chunks(a.endpoint, "state", index.root, 0, range(index.count))]
            assert len(got) == index.count
        return _open_files()

    warm = await fetches(2, 2)
    assert await fetches(20, 180) <= warm + 2


async def test_fresh_clients_leave_no_open_files(world: World) -> None:
    a = await world.host("a")
    index, payload = make_state(SMALL)
    keep(a.store, "state", index.root, 0, index, payload)

    async def once() -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(PeerClient(a.identity))
            assert not isinstance(await client.fetch_index(a.endpoint, "state", index.root, 0), Verdict)

    await once()
    before = _open_files()
    for _ in range(30):
        await once()
    assert _open_files() <= before + 3


def _bad_first_chunk(index: BlobIndex, payload: bytes) -> tuple[BlobIndex, bytes]:
    """Return the blob with a NaN in its first chunk; leaves, header and commitment are true to it."""
    size, first = index.chunk_bytes(0), index.entries[0]
    data = b"\x00\x00\xc0\x7f" + payload[4:size]
    elements = index.layout.chunk_elements_of(0)
    leaf = digest.chunk_leaf(0, elements, first.sum_squares, data)
    entries = (LeafEntry(leaf, first.sum_squares, size), *index.entries[1:])
    header = replace(index.header, payload_root=digest.payload_root(digest.encode_leaf_list(entries)))
    return BlobIndex(header, entries, index.layout), data + payload[size:]


async def test_a_bad_form_is_remembered_by_a_fetch_that_goes_on_later(world: World) -> None:
    """An author breaks off after a bad chunk, and serves the rest to those who ask again, also after a restart."""
    a, c = await world.host("a"), await world.host("c")
    index, payload = _bad_first_chunk(*make_blob("a"))
    keep(a.store, "blob", index.commitment, ROUND, index, payload)
    a.store.hook = lambda chunk, data: data if chunk == 0 else None
    opener = blob_opener("a", index.commitment)
    first = await fetch_object(c.client, [a.endpoint], "blob", index.commitment, ROUND, opener, c.store)
    assert (first.stored, first.form.good) == (None, False)
    a.store.hook = None
    with HookedStore(world.folder / "c") as reopened:
        later = await fetch_object(c.client, [a.endpoint], "blob", index.commitment, ROUND, opener, reopened)
        assert later.stored is not None
        assert later.form.fault is Fault.FORM
