"""Possession proofs of others, held against the bytes: the wrong one is named, the right one is not."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from gonka_trainer.app.rules import round_params
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.kit import Kit, Run, make_run
from gonka_trainer.daemon.spotcheck import SpotCheck
from gonka_trainer.gradient.blob import BlobIndex, encode_blob
from gonka_trainer.gradient.header import Header
from gonka_trainer.manifest import manifest_hash, render_manifest
from gonka_trainer.round import bitmap, machine
from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Attest, PlacedRecord
from gonka_trainer.round.roster import Roster
from gonka_trainer.round.state import CoreState, Round
from gonka_trainer.round.summary import Seat
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import ZERO_DIGEST, Address, Digest, Height, sha256
from tests.support.tiny_run import make_run as tiny_run

PEOPLE = tuple(Address(bytes([n]) * 20) for n in (1, 2, 3, 4))
KEYS = {Address(bytes([n + 100]) * 20): Address(bytes([n]) * 20) for n in (1, 2, 3, 4)}
ME = PEOPLE[0]
NUMBER = 5
CLOSE_HASH = sha256(b"the block of the close")


@dataclass
class World:
    """A round whose window is closed, and the blobs of it that are in the store."""

    run: Run
    store: ObjectStore
    blobs: dict[Address, tuple[BlobIndex, bytes]]
    state: CoreState

    def publish(self, author: Address) -> None:
        index, payload = self.blobs[author]
        with self.store.draft(len(payload)) as draft:
            draft.append(payload)
            draft.publish("blob", index.commitment, NUMBER, index)

    def proof(self, attester: Address, authors: Sequence[Address]) -> bytes:
        """The proof as docs/protocol.md says it, by hashlib alone."""
        text = b"gonka-trainer/possession/1" + attester + CLOSE_HASH
        for author in authors:
            index, payload = self.blobs[author]
            seed = hashlib.sha256(b"gonka-trainer/possession-draw/1" + CLOSE_HASH + index.commitment).digest()
            chunk = int.from_bytes(seed[:8], "big") % index.count
            data = payload[index.offset(chunk) : index.offset(chunk) + index.chunk_bytes(chunk)]
            text += len(data).to_bytes(4, "big") + data
        return hashlib.sha256(text).digest()[:16]


def header(run: Run, author: Address) -> Header:
    return Header(
        chain_id=run.manifest.chain_id,
        run_id=run.params.run_id,
        round=NUMBER,
        participant=author,
        node="0",
        base_root=ZERO_DIGEST,
        manifest_hash=run.manifest_hash,
        assignment_root=ZERO_DIGEST,
        layout_root=run.layout_root,
        codec="f32",
        codec_version=1,
        payload_root=ZERO_DIGEST,
        leaf_count=0,
        payload_bytes=0,
        trace_root=ZERO_DIGEST,
        tokens=128,
        inner_steps=1,
        feedback_root=ZERO_DIGEST,
        hardware="none",
        salt=bytes(32),
    )


def blob(run: Run, author: Address) -> tuple[BlobIndex, bytes]:
    parts: list[bytes] = []
    base = np.zeros(run.layout.total_elements, np.float32)
    local = np.full(run.layout.total_elements, author[0] / 7, np.float32)
    index = encode_blob(base, local, run.layout, run.codec, header(run, author), parts.append)
    return index, b"".join(parts)


@pytest.fixture
def world(tmp_path: Path) -> Any:
    manifest = replace(tiny_run(tmp_path).manifest, chunk_elements=256)
    hashed = manifest_hash(render_manifest(manifest))
    run = make_run(manifest, hashed, round_params(manifest, hashed, "gonka"), ME)
    blobs = {author: blob(run, author) for author in PEOPLE[:3]}
    roster = Roster(tuple(Seat(p, 1, voice=True) for p in PEOPLE), KEYS, 4, True, ZERO_DIGEST)
    current = Round(
        NUMBER,
        Height(1),
        Height(10),
        ZERO_DIGEST,
        roster,
        commits={author: (index.commitment, Height(3)) for author, (index, _) in blobs.items()},
        closed=Height(10),
        close_hash=CLOSE_HASH,
        committers=PEOPLE[:3],
    )
    state = replace(machine.initial(run.params, Local(None, None)), current=current)
    with ObjectStore(tmp_path / "objects") as store:
        yield World(run, store, blobs, state)


@asynccontextmanager
async def checking(world: World) -> AsyncIterator[SpotCheck]:
    nothing = cast("Any", None)
    kit = Kit(
        world.run,
        nothing,
        nothing,
        world.store,
        nothing,
        nothing,
        nothing,
        nothing,
        Path(),
        lambda: world.state,
        nothing,
        nothing,
    )
    check = SpotCheck(kit, RosterGate(lambda: world.state, lambda address: f"host {address[0]}"))
    task = asyncio.create_task(check.run())
    try:
        yield check
    finally:
        task.cancel()
        await asyncio.wait((task,))


def attest(
    world: World, check: SpotCheck, key: int, authors: Sequence[Address], possession: bytes, **changes: Any
) -> None:
    bits = bitmap.pack([PEOPLE.index(author) for author in authors], 3)
    record = Attest(NUMBER, bytes(16), possession, bits)
    placed = PlacedRecord(0, 0, Address(bytes([key]) * 20), replace(record, **changes))
    check.look(world.state, BlockSeen(Height(11), sha256(b"11"), (placed,)))


async def named(caplog: pytest.LogCaptureFixture, *hosts: int) -> None:
    """Wait until the last of these is named, and see that they are all, each once, in this order."""

    def found() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

    async with asyncio.timeout(20):
        while not any(f"host {hosts[-1]} " in text for text in found()):
            await asyncio.sleep(0.01)
    assert found() == [
        f"round 5: host {n} attests blobs that it did not read: its possession proof is wrong (evidence)" for n in hosts
    ]


async def test_only_wrong_proofs_are_named(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for author in PEOPLE[:3]:
        world.publish(author)
    everything = PEOPLE[:3]
    async with checking(world) as check:
        attest(world, check, 102, everything, world.proof(PEOPLE[1], everything))
        attest(world, check, 102, everything[:2], world.proof(PEOPLE[1], everything[:2]))
        attest(world, check, 103, everything, world.proof(PEOPLE[2], everything[:2]))
        attest(world, check, 102, (), world.proof(PEOPLE[1], ()))
        attest(world, check, 104, everything, world.proof(PEOPLE[1], everything))
        await named(caplog, 3, 4)


async def test_what_is_no_attestation_of_a_voice_of_this_round_is_left_alone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for author in PEOPLE[:3]:
        world.publish(author)
    everything, wrong = PEOPLE[:3], bytes(16)
    async with checking(world) as check:
        attest(world, check, 101, everything, wrong)
        attest(world, check, 99, everything, wrong)
        attest(world, check, 102, everything, wrong, round=NUMBER + 1)
        attest(world, check, 102, everything, wrong, bitmap=b"\xff")
        attest(world, check, 102, everything, wrong, bitmap=b"")
        attest(world, check, 104, everything, wrong)
        await named(caplog, 4)


async def test_a_claim_waits_for_the_bytes_and_is_let_go_with_its_round(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = bytes(16)
    async with checking(world) as check:
        attest(world, check, 102, PEOPLE[:1], wrong)
        await asyncio.sleep(0)
        assert not caplog.records
        world.publish(PEOPLE[0])
        await named(caplog, 2)
        attest(world, check, 103, PEOPLE[1:3], wrong)
        attest(world, check, 104, PEOPLE[:1], wrong)
        current = world.state.current
        assert current is not None
        world.state = replace(world.state, current=replace(current, number=NUMBER + 1))
        await named(caplog, 2, 4)


async def test_a_damaged_blob_accuses_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for author in PEOPLE[:3]:
        world.publish(author)
    stored = world.store.blob(NUMBER, Digest(world.blobs[PEOPLE[0]][0].commitment))
    assert stored is not None
    stored.payload.write_bytes(bytes(stored.payload.stat().st_size))
    async with checking(world) as check:
        attest(world, check, 102, PEOPLE[:1], world.proof(PEOPLE[1], PEOPLE[:1]))
        attest(world, check, 104, PEOPLE[1:3], bytes(16))
        await named(caplog, 4)
