"""A host that lies: the real daemon with single parts replaced, as `python liar.py --config FILE --lies JSON`.

The lies are named by round, as {"3": "junk"}; a round without one is played honestly.

    mismatch   the bytes that are served do not match the commitment
    nan        the blob has a scale that is not a number; header, leaves and commitment are true to it
    withhold   commits and serves nothing
    huge       the pseudo-gradient times 1,000
    tokens     the header claims 10^15 tokens
    selfish    attests its own blob alone and posts a junk root
    copycat    serves nothing, and sends another's attestation, byte for byte
    dies       no lie: the daemon is killed before its blob is on disk
    astray     no lie but a broken machine: every outer step is made with a rate that is one bit off
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from gonka_trainer.__main__ import main as command_line
from gonka_trainer.daemon import applying as applying_module
from gonka_trainer.daemon import training as training_module
from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.kit import Run
from gonka_trainer.daemon.publishing import Publishing
from gonka_trainer.daemon.states import apply_round
from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient.blob import BlobIndex, encode_blob
from gonka_trainer.gradient.codec import Codec, codec
from gonka_trainer.ports import StoredObject
from gonka_trainer.round import bitmap
from gonka_trainer.round.records import Attest, StateRoot
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import Digest, Height, sha256

LIES: dict[int, str] = {}
JUNK = sha256(b"junk")


def lie(round_number: int) -> str:
    return LIES.get(round_number, "")


class NanCodec:
    """int8 whose first scale is written as a quiet NaN; everything else is the real codec's."""

    def __init__(self, real: Codec) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def encode(self, values: Any) -> tuple[bytes, float]:
        data, total = self._real.encode(values)
        return poisoned(data, len(values)), total


def poisoned(data: bytes, elements: int) -> bytes:
    """Write a NaN over the first float32 that decodes as a scale: the one whose change breaks the form."""
    nan = np.float32(np.nan).tobytes()
    for start in (0, elements):
        changed = data[:start] + nan + data[start + 4 :]
        try:
            codec("int8", 1).decode(changed, elements)
        except DecodeError:
            return changed
    raise AssertionError("no place for a NaN found")


def lying_encode(real: Any) -> Any:
    def encode(base: Any, local: Any, layout: Any, encoder: Any, header: Any, sink: Any) -> BlobIndex:
        kind = lie(header.round)
        if kind == "huge":
            local = base - np.float32(1000) * (base - local)
        if kind == "nan":
            encoder = NanCodec(encoder)
        if kind == "tokens":
            header = replace(header, tokens=10**15)
        index: BlobIndex = real(base, local, layout, encoder, header, sink)
        if kind == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return index

    return encode


def lying_read(real: Any) -> Any:
    def read(self: ObjectStore, stored: StoredObject, chunk: int) -> bytes | None:
        data: bytes | None = real(self, stored, chunk)
        folder = stored.payload.parents[1].name
        if data is not None and folder.isdigit() and lie(int(folder)) == "mismatch":
            return b"\x55" * len(data)
        return data

    return read


def lying_publish(real: Any) -> Any:
    async def publish(self: Publishing, wanted: Wanted) -> None:
        command = wanted.command
        record = command.record
        kind = lie(getattr(record, "round", -1))
        if kind == "selfish" and isinstance(record, Attest):
            current = self._kit.state().current
            assert current is not None
            own = current.committers.index(self._kit.endpoint.participant)
            record = replace(record, bitmap=bitmap.pack([own], len(current.committers)))
        if kind == "selfish" and isinstance(record, StateRoot):
            record = replace(record, root=Digest(JUNK))
        if kind == "copycat" and isinstance(record, Attest):
            record = await another_attestation(self, record)
        await real(self, Wanted(replace(command, record=record)))

    return publish


async def another_attestation(self: Publishing, own: Attest) -> Attest:
    """Wait until somebody else's attestation of the round is on chain, and return it; our own when none comes."""
    chain, log, start = self._kit.chain, self._kit.log, self._kit.state().height
    while (current := self._kit.state().current) is not None and current.number == own.round:
        for height in range(start - 2, self._kit.state().height + 1):
            for placed in log.records(await chain.block(Height(height))):
                if isinstance(placed.record, Attest) and placed.author != self._kit.key:
                    return placed.record
        await asyncio.sleep(0.1)
    return own


def astray_apply(real: Any) -> Any:
    def apply(run: Run, store: Any, command: Any, good: Any) -> Any:
        if lie(command.round) == "astray":
            rate = np.nextafter(run.outer.learning_rate, np.float32(1))
            run = replace(run, outer=replace(run.outer, learning_rate=rate))
        return real(run, store, command, good)

    return apply


def lying_gate(real: Any) -> Any:
    def may_have_blob(self: RosterGate, caller: Any, round_number: int, commitment: Any) -> bool:
        return lie(round_number) not in {"withhold", "copycat"} and bool(real(self, caller, round_number, commitment))

    return may_have_blob


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--lies", type=json.loads)
    options = parser.parse_args()
    LIES.update({int(number): kind for number, kind in options.lies.items()})
    training_module.encode_blob = lying_encode(encode_blob)  # type: ignore[attr-defined]
    applying_module.apply_round = astray_apply(apply_round)  # type: ignore[attr-defined]
    ObjectStore.read = lying_read(ObjectStore.read)  # type: ignore[method-assign]
    Publishing.publish = lying_publish(Publishing.publish)  # type: ignore[method-assign]
    RosterGate.may_have_blob = lying_gate(RosterGate.may_have_blob)  # type: ignore[method-assign]
    sys.argv = ["gonka-trainer", "run", "--config", options.config]
    command_line()


if __name__ == "__main__":
    main()
