"""The held-out loss of a set of parameters."""

from __future__ import annotations

from pathlib import Path

import torch

from gonka_trainer.jobs import Evaluate, Evaluated
from gonka_trainer.worker.data import held_out
from gonka_trainer.worker.flat import read_flat
from gonka_trainer.worker.loop import mean_loss
from gonka_trainer.worker.model import load_parameters
from gonka_trainer.worker.session import Session


def evaluate(session: Session, job: Evaluate) -> Evaluated:
    """Return the mean loss over a fixed set of held-out sequences, the same for every call and host."""
    inner = session.manifest.inner
    rows = held_out(session.corpus, inner.sequence_tokens)
    load_parameters(session.model, read_flat(Path(job.parameters), session.layout), session.layout)
    session.model.eval()
    total = 0.0
    with torch.no_grad():
        for first in range(0, len(rows), inner.batch_sequences):
            part = rows[first : first + inner.batch_sequences]
            total += float(mean_loss(session.model, part)) * len(part)
    session.model.train()
    return Evaluated(job.label, total / len(rows), len(rows) * inner.sequence_tokens)
