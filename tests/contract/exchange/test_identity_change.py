"""A daemon takes another TLS key while it serves and fetches."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from exchange_world import World, address, keep, make_state

from gonka_trainer.exchange.identity import (
    load_or_create_identity,
    new_identity,
    next_identity,
    next_path,
    promote_identity,
)
from gonka_trainer.ports import Endpoint
from gonka_trainer.types import Verdict


async def test_a_server_shows_the_new_key_and_open_connections_go_on(world: World) -> None:
    a, b, c = await world.host("a"), await world.host("b"), await world.host("c")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    fresh = new_identity()
    got = b""
    async with aclosing(b.client.fetch_chunks(a.endpoint, "state", index.root, 0, range(10))) as chunks:
        async for answer in chunks:
            assert not isinstance(answer, Verdict), answer
            got += answer[1]
            if answer[0] == 0:
                a.server.take(fresh)
    assert got == payload
    known = replace(a.endpoint, spki=fresh.spki)
    assert not isinstance(await c.client.fetch_index(known, "state", index.root, 0), Verdict)
    former = await c.client.fetch_index(a.endpoint, "state", index.root, 0)
    assert isinstance(former, Verdict)  # who dials now meets the new key


async def test_a_caller_is_known_by_its_new_key_from_the_next_call_on(world: World) -> None:
    a, b = await world.host("a"), await world.host("b")
    index, payload = make_state()
    keep(a.store, "state", index.root, 0, index, payload)
    fresh = new_identity()

    async def fetched(endpoint: Endpoint) -> bool:
        return not isinstance(await b.client.fetch_index(endpoint, "state", index.root, 0), Verdict)

    async with aclosing(b.client.fetch_chunks(a.endpoint, "state", index.root, 0, range(10))) as chunks:
        received = [await anext(chunks)]
        del world.gate.members[b.identity.spki]
        world.gate.members[fresh.spki] = address("b")
        await b.client.take(fresh)
        assert await fetched(a.endpoint)
        received += [answer async for answer in chunks]  # on the connection that it had
    assert b"".join(answer[1] for answer in received if not isinstance(answer, Verdict)) == payload
    assert await fetched(a.endpoint)


def test_a_waiting_identity_takes_the_files_place(tmp_path: Path) -> None:
    path = tmp_path / "tls.pem"
    old = load_or_create_identity(path)
    assert next_identity(path) is None
    waiting = load_or_create_identity(next_path(path))
    found = next_identity(path)
    assert found is not None
    assert found.spki == waiting.spki
    assert load_or_create_identity(path).spki == old.spki
    promote_identity(path)
    assert load_or_create_identity(path).spki == waiting.spki
    assert next_identity(path) is None
    assert path.stat().st_mode & 0o777 == 0o600
