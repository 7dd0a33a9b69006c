"""A host that lies: the real daemon with single parts replaced, as `python liar.py --config FILE --lies JSON`.

The lies are named by round, as {"3": "junk"}; a round without one is played honestly.

    mismatch   the blob that is served does not match the commitment
    nan        the blob has a scale that is not a number; header, leaves and commitment are true to it
    withhold   commits and serves nothing
    huge       the pseudo-gradient times 1,000
    tokens     the header claims 10^15 tokens
    selfish    attests its own blob alone and posts a junk root
    copycat    sends another's attestation, byte for byte
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gonka_trainer.app.daemon import run_daemon
from gonka_trainer.config import load_config
from gonka_trainer.daemon import training as training_module
from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.publishing import Publishing
from gonka_trainer.daemon.training import Training
from gonka_trainer.gradient.blob import BlobIndex
from gonka_trainer.gradient.codec import Codec
from gonka_trainer.round import bitmap
from gonka_trainer.round.records import Attest, StateRoot
from gonka_trainer.types import Digest, sha256

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
    from gonka_trainer.errors import DecodeError
    from gonka_trainer.gradient.codec import codec

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
        return index

    return encode


def lying_train(real: Any) -> Any:
    async def train(self: Training, wanted: Wanted) -> None:
        await real(self, wanted)
        number = wanted.command.round
        if lie(number) == "mismatch":
            for payload in Path(self._kit.work).parent.glob(f"objects/blobs/{number:08d}/*/payload"):
                with payload.open("r+b") as file:
                    file.write(b"\x55" * 16)

    return train


def lying_publish(real: Any) -> Any:
    async def publish(self: Publishing, wanted: Wanted) -> None:
        command = wanted.command
        record = command.record
        kind = lie(getattr(record, "round", -1))
        if kind == "selfish" and isinstance(record, Attest):
            current = self._kit.state().current
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
    while self._kit.state().current is not None and self._kit.state().current.number == own.round:
        for height in range(start - 2, self._kit.state().height + 1):
            for placed in log.records(await chain.block(height)):
                if isinstance(placed.record, Attest) and placed.author != self._kit.key:
                    return placed.record
        await asyncio.sleep(0.1)
    return own


def lying_gate(real: Any) -> Any:
    def may_have_blob(self: RosterGate, caller: Any, round_number: int, commitment: Any) -> bool:
        return lie(round_number) != "withhold" and bool(real(self, caller, round_number, commitment))

    return may_have_blob


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path)
    parser.add_argument("--lies", type=json.loads)
    options = parser.parse_args()
    LIES.update({int(number): kind for number, kind in options.lies.items()})
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    training_module.encode_blob = lying_encode(training_module.encode_blob)
    Training.train = lying_train(Training.train)  # type: ignore[method-assign]
    Publishing.publish = lying_publish(Publishing.publish)  # type: ignore[method-assign]
    RosterGate.may_have_blob = lying_gate(RosterGate.may_have_blob)  # type: ignore[method-assign]
    asyncio.run(run_daemon(load_config(options.config)))


if __name__ == "__main__":
    main()
