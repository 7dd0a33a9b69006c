"""Answering jobs, one after the other, until the daemon says stop."""

from __future__ import annotations

import torch

from gonka_trainer.errors import UserError
from gonka_trainer.jobs import Done, Evaluate, Evaluated, Failed, Train
from gonka_trainer.worker.evaluate import evaluate
from gonka_trainer.worker.link import Job, JobLink
from gonka_trainer.worker.loop import train_round
from gonka_trainer.worker.session import Session


def serve(session: Session, link: JobLink) -> None:
    """Say Ready, then do jobs until Shutdown. What a person must mend is answered as Failed; the rest is a crash.

    With more than one rank, rank 0 passes each job, finish and yield on to the others here (a broadcast of the line).
    """
    link.send(session.ready)
    while (job := link.next_job()) is not None:
        link.send(_answer(session, job, link))


def _answer(session: Session, job: Job, link: JobLink) -> Done | Evaluated | Failed:
    try:
        match job.ask:
            case Train() as train:
                return train_round(session, train, job.finish, job.give_way, link.send)
            case Evaluate() as ask:
                return evaluate(session, ask)
    except UserError as error:
        return Failed(error.what, error.remedy)
    except torch.cuda.OutOfMemoryError as error:
        return Failed(f"the GPU is out of memory: {error}", "free the GPU, or join a run with a smaller batch or model")
