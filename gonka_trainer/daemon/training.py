"""The Train action: a job for the worker, then this host's blob."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from gonka_trainer import jobs
from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.daemon.states import parameters_of
from gonka_trainer.errors import StorageError, WorkerError
from gonka_trainer.gradient.blob import BlobIndex, encode_blob
from gonka_trainer.gradient.header import Header
from gonka_trainer.ports import Trained
from gonka_trainer.round.commands import Train
from gonka_trainer.round.events import UpdateReady
from gonka_trainer.types import ZERO_DIGEST, Digest

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.25
SALT_BYTES: Final = 32
NO_HARDWARE: Final = "none"
"""The hardware class of an update for which nothing was computed."""


class Training:
    """Runs a round's inner steps and encodes what they changed."""

    def __init__(self, kit: Kit, node: str = "0") -> None:
        self._kit = kit
        self._node = node

    async def train(self, wanted: Wanted) -> None:
        """Train, encode, store the blob with its salt, and only then say that the update is ready."""
        command: Train = wanted.command
        trained = await self._trained(wanted)
        done = trained.done
        index = await asyncio.to_thread(self._encode, command, done, trained.hardware)
        await asyncio.to_thread(self._forget, done)
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

    async def _trained(self, wanted: Wanted) -> Trained:
        """Return what came of the round: all of it, or what there is when the time is over.

        While the GPUs are held nothing is trained; when they come back the worker goes on from where it was.
        """
        kit, base_root = self._kit, wanted.command.base_root.hex()
        kept = kit.unfinished.of(wanted.command.round, base_root)
        if kept is None:
            await asyncio.to_thread(kit.unfinished.clear)  # of an earlier round
        while True:
            got = await self._stretch(wanted, kept)
            if not got.done.yielded or got is kept:
                return _longer(got, kept)
            _LOG.info("round %d: interrupted after %d inner steps", got.done.round, got.done.inner_steps)
            kit.reporter.own(got.done.round, interrupted=True)
            if got.done.inner_steps and _longer(got, kept) is got:
                kept = await asyncio.to_thread(kit.unfinished.keep, got, base_root)

    async def _stretch(self, wanted: Wanted, kept: Trained | None) -> Trained:
        """Train until the round is over or interrupted; without a worker when `kept` must do or the GPUs are away."""
        trainer, number = self._kit.trainer, wanted.command.round
        stretch = _Stretch(self._kit.reporter.progress)
        work = asyncio.ensure_future(self._work(self._job(wanted.command), stretch))
        try:
            await asyncio.sleep(0)  # the trainer takes note of the round when its call begins to run
            while not work.done():
                if wanted.command.finish:
                    if kept is not None and not stretch.stepped:
                        return kept
                    if not (trainer.admitted or trainer.in_use):
                        return kept or _nothing(number)
                    trainer.finish(number)
                await _either(work, wanted, _LOOK_SECONDS if wanted.command.finish else None)
            return await work
        finally:
            work.cancel()

    async def _work(self, job: jobs.Train, stretch: _Stretch) -> Trained:
        ready = await self._ready()
        return Trained(await self._kit.trainer.train(job, stretch.progress), ready.hardware)

    async def _ready(self) -> jobs.Ready:
        ready = await self._kit.trainer.start()
        if ready.layout_root != self._kit.run.layout_root.hex():
            raise WorkerError(
                "the worker's model has other parameters than the manifest lists",
                "use the `transformers` version that the run's author used",
            )
        _LOG.info("the worker trains on %s (%s)", ready.device, ready.hardware)
        return ready

    def _forget(self, done: jobs.Done) -> None:
        """Remove the result, which is in a blob now.

        What is kept of an interruption stays until the next round: a crash before the journal knows the update would
        leave nothing else to commit.
        """
        self._output(done.round).unlink(missing_ok=True)

    def _output(self, round_number: int) -> Path:
        return self._kit.work / f"round-{round_number}.f32"

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
            output=str(self._output(command.round)),
            inner_steps=steps,
            first_step=command.round * steps,
            resume=str(kit.work / "inner"),
            base_root=command.base_root.hex(),
        )

    def _encode(self, command: Train, done: jobs.Done, hardware: str) -> BlobIndex:
        run, store = self._kit.run, self._kit.store
        stored = store.state(command.base_root)
        if stored is None:
            raise StorageError(f"the state {command.base_root.hex()} is not on disk", "give the data directory back")
        base = parameters_of(stored, run.layout)
        local = base
        if done.output:
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


class _Stretch:
    """Passes progress on, and remembers whether there was any."""

    def __init__(self, report: Callable[[jobs.Progress], None]) -> None:
        self._report = report
        self.stepped = False

    def progress(self, made: jobs.Progress) -> None:
        """One inner step was made."""
        self.stepped = True
        self._report(made)


async def _either(work: asyncio.Future[Trained], wanted: Wanted, timeout_seconds: float | None) -> None:
    """Wait until the work is done or the command has changed, or for the timeout."""
    changed = asyncio.ensure_future(wanted.change())
    either: set[asyncio.Future[Any]] = {work, changed}
    await asyncio.wait(either, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
    changed.cancel()


def _longer(got: Trained, kept: Trained | None) -> Trained:
    """Return the result of more steps: what is kept may be, when the worker had to begin the round again."""
    return got if kept is None or got.done.inner_steps >= kept.done.inner_steps else kept


def _nothing(round_number: int) -> Trained:
    """Return the result of a round for which there was no GPU: the base itself, as of a round without a step."""
    done = jobs.Done(round_number, 0, 0, 0.0, 0.0, "", jobs.NO_SAMPLES)
    return Trained(done, NO_HARDWARE)
