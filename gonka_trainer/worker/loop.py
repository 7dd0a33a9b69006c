"""The inner loop: one round of training, from the base parameters to a result on disk."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import nn

from gonka_trainer.errors import StorageError, WorkerError
from gonka_trainer.jobs import Done, Progress, Train
from gonka_trainer.manifest import InnerSpec
from gonka_trainer.types import sha256, u32, u64
from gonka_trainer.worker.data import Assignment, Samples, Tokens, batch
from gonka_trainer.worker.flat import read_flat, write_flat
from gonka_trainer.worker.model import buffers_digest, flat_parts, load_parameters
from gonka_trainer.worker.optimizer import OptimizerStore, learning_rate, make_optimizer
from gonka_trainer.worker.session import Session

SKIPPED_STEPS_LIMIT: Final = 5
_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """What a round has come to: steps made and skipped, and the losses of those made."""

    made: int = 0
    skipped: int = 0
    loss_sum: float = 0.0
    last_loss: float = 0.0

    def add(self, loss: float) -> None:
        """Count a step that was made."""
        self.made += 1
        self.loss_sum += loss
        self.last_loss = loss

    def skip(self, job: Train, step: int) -> None:
        """Count a step that was not made; WorkerError when there are too many for this round to be of use."""
        self.skipped += 1
        _log.warning("round %d: inner step %d has a loss or gradient that is not finite: skipped", job.round, step)
        if self.skipped >= SKIPPED_STEPS_LIMIT:
            raise WorkerError(
                f"round {job.round}: {self.skipped} inner steps had a loss or gradient that is not finite",
                "a lower inner learning rate or clip_norm in the manifest; a GPU that errs if other hosts are well",
            )


def train_round(session: Session, job: Train, finish: threading.Event, report: Callable[[Progress], None]) -> Done:
    """Train one round and return what came of it; no step at all is a result too, with losses of 0.

    Everything starts from what `job` names: base parameters, the optimizer state of the end of an earlier round, the
    place in the schedule and in the data. So a round that is begun again ends with the same bits.
    """
    inner, model = session.manifest.inner, session.model
    _check(job, inner)
    seed_generators(inner.seed, job)
    load_parameters(model, read_flat(Path(job.base), session.layout), session.layout)
    optimizer = make_optimizer(model, inner)
    store = OptimizerStore(Path(job.resume), session.layout_root)
    store.restore(optimizer, model, job.round)
    samples = Samples(inner.seed, bytes.fromhex(job.participant), job.round)
    assignment, tally, buffers = Assignment(), Tally(), buffers_digest(model)

    for step in range(job.inner_steps):
        if finish.is_set():
            break
        tokens = batch(session.corpus, samples, inner, step, assignment)
        rate = learning_rate(inner, job.first_step + step)
        loss = inner_step(model, optimizer, tokens, rate, inner.clip_norm)
        if loss is None:
            tally.skip(job, step)
            continue
        tally.add(loss)
        report(Progress(job.round, step + 1, loss, rate, tally.made * inner.tokens_per_step))

    if buffers_digest(model) != buffers:
        raise WorkerError("the model changed its buffers, which no state carries", "take another model for this run")
    write_flat(Path(job.output), flat_parts(model))
    try:
        store.save(optimizer, model, job.round)
    except StorageError as error:  # the round's result is whole all the same
        _log.warning("round %d: the next round starts from an older optimizer state: %s", job.round, error)
    return Done(
        round=job.round,
        inner_steps=tally.made,
        tokens=tally.made * inner.tokens_per_step,
        mean_loss=tally.loss_sum / max(1, tally.made),
        last_loss=tally.last_loss,
        output=job.output,
        assignment_root=assignment.root.hex(),
    )


def inner_step(
    model: nn.Module, optimizer: torch.optim.AdamW, tokens: Tokens, rate: float, clip_norm: float
) -> float | None:
    """Make one step on tokens of shape (sequences, length + 1); return its loss, or None when it is skipped.

    With FSDP2 each rank takes its rows of `tokens`, and the loss that is judged is the mean over the ranks: all of
    them must skip, or none.
    """
    optimizer.zero_grad(set_to_none=True)
    loss = mean_loss(model, tokens)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    value = float(loss.detach())
    if not (math.isfinite(value) and math.isfinite(float(norm))):
        return None
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return value


def mean_loss(model: nn.Module, tokens: Tokens) -> torch.Tensor:
    """Return the mean cross-entropy in nats a token: float32 on CPU, products in bfloat16 on CUDA."""
    device = next(model.parameters()).device
    rows = torch.from_numpy(tokens).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        logits = model(input_ids=rows[:, :-1], use_cache=False).logits
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return nn.functional.cross_entropy(logits.to(dtype).flatten(0, 1), rows[:, 1:].flatten())


def seed_generators(seed: int, job: Train) -> None:
    """Seed torch's generators (dropout draws from them) from run seed, participant and round."""
    place = sha256(b"gonka-trainer/generator/1", u64(seed), u32(job.round), bytes.fromhex(job.participant))
    torch.manual_seed(int.from_bytes(place[:8], "big"))


def _check(job: Train, inner: InnerSpec) -> None:
    if not 0 <= job.inner_steps <= inner.steps:
        raise WorkerError(f"round {job.round}: {job.inner_steps} inner steps asked, the manifest allows {inner.steps}")
