"""The Train action: a job for the worker, then this host's blob."""

from __future__ import annotations

import asyncio
import logging
import secrets
from pathlib import Path
from typing import Final

import numpy as np

from gonka_trainer import jobs
from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.daemon.states import parameters_of
from gonka_trainer.errors import StorageError, WorkerError
from gonka_trainer.gradient.blob import BlobIndex, encode_blob
from gonka_trainer.gradient.header import Header
from gonka_trainer.round.commands import Train
from gonka_trainer.round.events import UpdateReady
from gonka_trainer.types import ZERO_DIGEST, Digest

_LOG: Final = logging.getLogger(__name__)
SALT_BYTES: Final = 32


class Training:
    """Runs a round's inner steps and encodes what they changed."""

    def __init__(self, kit: Kit, node: str = "0") -> None:
        self._kit = kit
        self._node = node

    async def train(self, wanted: Wanted) -> None:
        """Train, encode, store the blob with its salt, and only then say that the update is ready."""
        command: Train = wanted.command
        ready = await self._ready()
        done = await self._inner_steps(wanted)
        index = await asyncio.to_thread(self._encode, command, done, ready.hardware)
        await asyncio.to_thread(Path(done.output).unlink, missing_ok=True)
        self._kit.reporter.own(
            command.round,
            commitment=index.commitment.hex(),
            payload_root=index.header.payload_root.hex(),
            blob_bytes=index.total_bytes,
            tokens=done.tokens,
            inner_steps=done.inner_steps,
            mean_loss=done.mean_loss,
            last_loss=done.last_loss,
        )
        self._kit.emit(UpdateReady(command.round, index.commitment))

    async def _ready(self) -> jobs.Ready:
        ready = await self._kit.trainer.start()
        if ready.layout_root != self._kit.run.layout_root.hex():
            raise WorkerError(
                "the worker's model has other parameters than the manifest lists",
                "use the `transformers` version that the run's author used",
            )
        _LOG.info("the worker trains on %s (%s)", ready.device, ready.hardware)
        return ready

    async def _inner_steps(self, wanted: Wanted) -> jobs.Done:
        job = self._job(wanted.command)
        training = asyncio.ensure_future(self._kit.trainer.train(job, self._kit.reporter.progress))
        try:
            await asyncio.sleep(0)  # the trainer takes note of the round when its call begins to run
            while not training.done():
                if wanted.command.finish:
                    self._kit.trainer.finish(job.round)
                    break
                changed = asyncio.ensure_future(wanted.change())
                await asyncio.wait({training, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            return await training
        finally:
            training.cancel()

    def _job(self, command: Train) -> jobs.Train:
        kit, steps = self._kit, self._kit.run.manifest.inner.steps
        assert kit.run.participant is not None
        stored = kit.store.state(command.base_root)
        if stored is None:
            raise StorageError(f"the state {command.base_root.hex()} is not on disk", "give the data directory back")
        return jobs.Train(
            round=command.round,
            participant=kit.run.participant.hex(),
            base=str(stored.payload),
            output=str(kit.work / f"round-{command.round}.f32"),
            inner_steps=steps,
            first_step=command.round * steps,
            resume=str(kit.work / "inner"),
        )

    def _encode(self, command: Train, done: jobs.Done, hardware: str) -> BlobIndex:
        run, store = self._kit.run, self._kit.store
        stored = store.state(command.base_root)
        if stored is None:
            raise StorageError(f"the state {command.base_root.hex()} is not on disk", "give the data directory back")
        base = parameters_of(stored, run.layout)
        local = np.memmap(done.output, np.float32, "r", shape=(run.layout.total_elements,))
        layout, encoder = run.layout, run.codec
        size_bytes = sum(encoder.encoded_bytes(layout.chunk_elements_of(i)) for i in range(layout.chunk_count))
        header = self._header(command, done, hardware)
        with store.draft(size_bytes) as draft:
            try:
                index = encode_blob(base, local, layout, encoder, header, draft.append)
            except ValueError as error:
                raise WorkerError(f"round {command.round} trained to values that cannot be sent: {error}") from error
            draft.publish("blob", index.commitment, command.round, index)
        return index

    def _header(self, command: Train, done: jobs.Done, hardware: str) -> Header:
        run = self._kit.run
        assert run.participant is not None
        return Header(
            chain_id=run.manifest.chain_id,
            run_id=run.params.run_id,
            round=command.round,
            participant=run.participant,
            node=self._node,
            base_root=command.base_root,
            manifest_hash=run.manifest_hash,
            assignment_root=Digest(bytes.fromhex(done.assignment_root)),
            layout_root=run.layout_root,
            codec=run.codec.name,
            codec_version=run.codec.version,
            payload_root=ZERO_DIGEST,
            leaf_count=0,
            payload_bytes=0,
            trace_root=ZERO_DIGEST,
            tokens=done.tokens,
            inner_steps=done.inner_steps,
            feedback_root=ZERO_DIGEST,
            hardware=hardware,
            salt=secrets.token_bytes(SALT_BYTES),
        )
