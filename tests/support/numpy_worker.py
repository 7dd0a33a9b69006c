"""A stand-in for the torch worker: the same flags, the same job link, the same data, numpy alone.

It makes real steps on the real samples, of a toy loss: every sample asks for a value of its own in every element of the
flat vector, and a step goes towards the mean of what the batch asks for. The result is a pure function of
(seed, participant, round, base, steps), and it starts in a fraction of a second. Protocol faults are tested with it.
`--step-seconds` is how long a step takes at least.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gonka_trainer.errors import UserError
from gonka_trainer.gradient.layout import layout_root
from gonka_trainer.jobs import Done, Evaluate, Evaluated, Failed, Progress, Ready, Train
from gonka_trainer.manifest import Manifest, load_manifest
from gonka_trainer.worker.data import Assignment, Corpus, Samples, Tokens, batch, held_out, open_corpus
from gonka_trainer.worker.flat import F32, read_flat, write_flat
from gonka_trainer.worker.link import Job, JobLink, connect

RATE = np.float32(0.05)
SCALE = np.float32(0.01)


@dataclass(frozen=True)
class Toy:
    """A manifest, its corpus, and the toy's loss on them."""

    manifest: Manifest
    corpus: Corpus
    step_seconds: float = 0.0

    def wanted(self, tokens: Tokens) -> F32:
        """Return what a batch asks for, shape (total_elements,): a fixed pattern, scaled by the bytes' frequencies."""
        elements = self.manifest.layout.total_elements
        counts = np.bincount(tokens.ravel(), minlength=256).astype(np.float32) / np.float32(tokens.size)
        pattern = (np.arange(elements, dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(7)) & np.uint64(0xFF)
        wanted: F32 = (counts[pattern] - np.float32(1 / 256)) * SCALE
        return wanted

    def train(self, job: Job, ask: Train, report: Callable[[Progress], None]) -> Done:
        """Do what the torch worker's `train_round` does, without an optimizer."""
        inner, assignment = self.manifest.inner, Assignment()
        samples = Samples(inner.seed, bytes.fromhex(ask.participant), ask.round)
        kept = Kept(Path(ask.resume) / "unfinished", ask)
        values, losses = kept.load() or (np.array(read_flat(Path(ask.base), self.manifest.layout)), [])
        for step in range(len(losses)):
            batch(self.corpus, samples, inner, step, assignment)
        yielded = False
        for step in range(len(losses), ask.inner_steps):
            yielded = job.give_way.is_set() and not job.finish.is_set()
            if job.finish.is_set() or yielded:
                break
            time.sleep(self.step_seconds)
            distance = values - self.wanted(batch(self.corpus, samples, inner, step, assignment))
            losses.append(float(np.mean(np.abs(distance))))
            values -= RATE * distance
            tokens = len(losses) * inner.tokens_per_step
            report(Progress(ask.round, len(losses), losses[-1], float(RATE), tokens))
        if yielded:
            kept.save(values, losses)
        else:
            kept.clear()
        if losses or not yielded:
            write_flat(Path(ask.output), [values])
        mean, last = (sum(losses) / len(losses), losses[-1]) if losses else (0.0, 0.0)
        tokens = len(losses) * inner.tokens_per_step
        return Done(ask.round, len(losses), tokens, mean, last, ask.output, assignment.root.hex(), yielded)

    def evaluate(self, ask: Evaluate) -> Evaluated:
        """Return the toy's loss on the held-out part."""
        tokens = held_out(self.corpus, self.manifest.inner.sequence_tokens)
        values = read_flat(Path(ask.parameters), self.manifest.layout)
        loss = float(np.mean(np.abs(values - self.wanted(tokens))))
        return Evaluated(ask.label, loss, tokens.shape[0] * (tokens.shape[1] - 1))

    def answer(self, job: Job, link: JobLink) -> Done | Evaluated | Failed:
        """Do one job."""
        try:
            if isinstance(job.ask, Train):
                return self.train(job, job.ask, link.send)
            return self.evaluate(job.ask)
        except UserError as error:
            return Failed(error.what, error.remedy)


@dataclass(frozen=True)
class Kept:
    """An interrupted round: its values, and its losses with what says that it is the same round."""

    path: Path
    ask: Train

    @property
    def place(self) -> list[int | str]:
        return [self.ask.round, self.ask.participant, self.ask.base_root]

    def load(self) -> tuple[F32, list[float]] | None:
        facts, values = self.path.with_suffix(".json"), self.path.with_suffix(".npy")
        if not facts.exists():
            return None
        kept = json.loads(facts.read_text())
        return (np.load(values), kept["losses"]) if kept["place"] == self.place else None

    def save(self, values: F32, losses: list[float]) -> None:
        self.clear()
        self.path.parent.mkdir(exist_ok=True)
        np.save(self.path.with_suffix(".npy"), values)
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps({"place": self.place, "losses": losses}))
        aside.replace(self.path.with_suffix(".json"))

    def clear(self) -> None:
        self.path.with_suffix(".json").unlink(missing_ok=True)


def main() -> int:
    """Serve the daemon's job link until Shutdown."""
    parser = argparse.ArgumentParser()
    for name in ("--socket", "--manifest", "--data"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--step-seconds", type=float, default=0.0)
    options = parser.parse_args()
    with JobLink(connect(options.socket)) as link:
        try:
            manifest = load_manifest(options.manifest)
            toy = Toy(manifest, open_corpus(options.data, manifest.data), options.step_seconds)
        except UserError as error:
            link.send(Failed(error.what, error.remedy))
            return 1
        link.send(Ready("cpu", "numpy stand-in", layout_root(manifest.layout).hex(), os.getpid()))
        while (job := link.next_job()) is not None:
            link.send(toy.answer(job, link))
    return 0


if __name__ == "__main__":
    sys.exit(main())
