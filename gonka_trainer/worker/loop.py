"""The inner loop: one round of training, from the base parameters to a result on disk."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
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
from gonka_trainer.worker.unfinished import Tally, UnfinishedStore

SKIPPED_STEPS_LIMIT: Final = 5
_log = logging.getLogger(__name__)


def train_round(
    session: Session,
    job: Train,
    finish: threading.Event,
    give_way: threading.Event,
    report: Callable[[Progress], None],
) -> Done:
    """Train one round and return what came of it; no step at all is a result too, with losses of 0.

    Everything starts from what `job` names: base parameters, the optimizer state of the end of an earlier round, the
    place in the schedule and in the data. So a round that is begun again ends with the same bits, and so does one that
    was interrupted: when `give_way` is set it is kept after the step in hand, and the same job goes on from there.
    """
    inner, model = session.manifest.inner, session.model
    _check(job, inner)
    optimizer = make_optimizer(model, inner)
    optimizers = OptimizerStore(Path(job.resume), session.layout_root)
    unfinished = UnfinishedStore(Path(job.resume), session.layout_root, optimizers)
    assignment, buffers = Assignment(), buffers_digest(model)
    tally = _stand(session, job, optimizer, unfinished, assignment)
    yielded = _steps(session, job, optimizer, tally, assignment, (finish, give_way), report)
    if buffers_digest(model) != buffers:
        raise WorkerError("the model changed its buffers, which no state carries", "take another model for this run")
    if not yielded:
        _end(job, model, optimizer, optimizers, unfinished)
    elif tally.step:
        _keep(job, model, optimizer, tally, unfinished)
    return Done(
        round=job.round,
        inner_steps=tally.made,
        tokens=tally.made * inner.tokens_per_step,
        mean_loss=tally.loss_sum / max(1, tally.made),
        last_loss=tally.last_loss,
        output=job.output,
        assignment_root=assignment.root.hex(),
        yielded=yielded,
    )


def _stand(
    session: Session,
    job: Train,
    optimizer: torch.optim.AdamW,
    unfinished: UnfinishedStore,
    assignment: Assignment,
) -> Tally:
    """Put everything where the round was interrupted, else at its beginning, and return what it has come to."""
    inner, model = session.manifest.inner, session.model
    tally = unfinished.restore(job, model, optimizer)
    if tally is not None:
        samples = _samples(inner, job)
        for step in range(tally.step):
            batch(session.corpus, samples, inner, step, assignment)
        _log.info("round %d: goes on after %d inner steps", job.round, tally.made)
        return tally
    unfinished.clear()
    seed_generators(inner.seed, job)
    load_parameters(model, read_flat(Path(job.base), session.layout), session.layout)
    unfinished.optimizers.restore(optimizer, model, job.round)
    return Tally()


def _steps(
    session: Session,
    job: Train,
    optimizer: torch.optim.AdamW,
    tally: Tally,
    assignment: Assignment,
    signals: tuple[threading.Event, threading.Event],
    report: Callable[[Progress], None],
) -> bool:
    """Make the round's steps that are left; return whether it gave way before its end."""
    inner, samples = session.manifest.inner, _samples(session.manifest.inner, job)
    finish, give_way = signals
    for step in range(tally.step, job.inner_steps):
        if finish.is_set():
            return False
        if give_way.is_set():
            return True
        tokens = batch(session.corpus, samples, inner, step, assignment)
        rate = learning_rate(inner, job.first_step + step)
        loss = inner_step(session.model, optimizer, tokens, rate, inner.clip_norm)
        if loss is None:
            _skip(tally, job, step)
            continue
        tally.add(loss)
        report(Progress(job.round, step + 1, loss, rate, tally.made * inner.tokens_per_step))
    return False


def _samples(inner: InnerSpec, job: Train) -> Samples:
    return Samples(inner.seed, bytes.fromhex(job.participant), job.round)


def _skip(tally: Tally, job: Train, step: int) -> None:
    """Count a step that was not made; WorkerError when there are too many for this round to be of use."""
    tally.skipped += 1
    _log.warning("round %d: inner step %d has a loss or gradient that is not finite: skipped", job.round, step)
    if tally.skipped >= SKIPPED_STEPS_LIMIT:
        raise WorkerError(
            f"round {job.round}: {tally.skipped} inner steps had a loss or gradient that is not finite",
            "a lower inner learning rate or clip_norm in the manifest; a GPU that errs if other hosts are well",
        )


def _end(
    job: Train,
    model: nn.Module,
    optimizer: torch.optim.AdamW,
    optimizers: OptimizerStore,
    unfinished: UnfinishedStore,
) -> None:
    """Write the round's result, and the optimizer's state for the next one."""
    write_flat(Path(job.output), flat_parts(model))
    try:
        optimizers.save(optimizer, model, job.round)
    except StorageError as error:  # the round's result is whole all the same
        _log.warning("round %d: the next round starts from an older optimizer state: %s", job.round, error)
    unfinished.clear()


def _keep(
    job: Train, model: nn.Module, optimizer: torch.optim.AdamW, tally: Tally, unfinished: UnfinishedStore
) -> None:
    """Write the result so far, which is committed if the time is over before the round can go on, and the round."""
    write_flat(Path(job.output), flat_parts(model))
    try:
        unfinished.save(job, model, optimizer, tally)
        _log.info("round %d: gives way after %d inner steps", job.round, tally.made)
    except StorageError as error:
        _log.warning("round %d: it cannot be kept and will begin again: %s", job.round, error)


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
