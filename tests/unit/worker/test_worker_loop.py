from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.tiny_run import TinyRun

from gonka_trainer.errors import StorageError, WorkerError
from gonka_trainer.jobs import Done, Evaluate, Progress, Train
from gonka_trainer.worker.data import Assignment, Samples, batch
from gonka_trainer.worker.evaluate import evaluate
from gonka_trainer.worker.flat import read_flat
from gonka_trainer.worker.loop import SKIPPED_STEPS_LIMIT, inner_step, train_round
from gonka_trainer.worker.model import flat_parts, load_parameters
from gonka_trainer.worker.optimizer import learning_rate, make_optimizer
from gonka_trainer.worker.session import Session, open_session

LOSSES = Path(__file__).with_name("loss_20_steps.json")


def train(
    session: Session, job: Train, finish_after: int | None = None, give_way_after: int | None = None
) -> tuple[Done, list[Progress]]:
    finish, give_way, steps = threading.Event(), threading.Event(), list[Progress]()

    def look() -> None:
        if len(steps) == finish_after:
            finish.set()
        if len(steps) == give_way_after:
            give_way.set()

    def note(step: Progress) -> None:
        steps.append(step)
        look()

    look()
    return train_round(session, job, finish, give_way, note), steps


def bits(path: str) -> bytes:
    return Path(path).read_bytes()


def poison(session: Session, calls: set[int]) -> Any:
    """Make the model's answer NaN in the given forward passes."""
    count = iter(range(1_000_000))

    def hook(_module: object, _inputs: object, output: Any) -> Any:
        if next(count) in calls:
            output.logits = output.logits * float("nan")
        return output

    return session.model.register_forward_hook(hook)


def test_twenty_steps_have_the_committed_losses_and_the_same_bits_twice(run: TinyRun, session: Session) -> None:
    done, steps = train(session, run.job(inner_steps=20))
    first = bits(done.output)
    again, steps_again = train(open_session(run.manifest, run.data, threads=1), run.job(inner_steps=20))
    assert [step.loss for step in steps] == pytest.approx(json.loads(LOSSES.read_text()), rel=1e-6)
    assert (again, steps_again, bits(again.output)) == (done, steps, first)
    assert steps[-1].loss < steps[0].loss - 1


def test_done_counts_exactly(run: TinyRun, session: Session) -> None:
    done, steps = train(session, run.job(round=3))
    losses = [step.loss for step in steps]
    assert [step.inner_step for step in steps] == list(range(1, 11))
    assert [step.tokens for step in steps] == [128 * n for n in range(1, 11)]
    assert (done.round, done.inner_steps, done.tokens) == (3, 10, 1280)
    assert (done.mean_loss, done.last_loss) == (pytest.approx(sum(losses) / 10), losses[-1])


def test_every_rate_is_the_schedules(run: TinyRun, session: Session) -> None:
    _, first = train(session, run.job())
    _, steps = train(session, run.job(round=1, first_step=10))
    assert [s.learning_rate for s in first + steps] == [learning_rate(run.manifest.inner, n) for n in range(20)]


@pytest.mark.parametrize("after", [0, 1, 4])
def test_finish_ends_after_the_step_in_hand(run: TinyRun, session: Session, after: int) -> None:
    done, steps = train(session, run.job(), finish_after=after)
    assert (done.inner_steps, done.tokens, len(steps)) == (after, 128 * after, after)
    assert (bits(done.output) == bits(str(run.base))) == (after == 0)


def test_a_round_begun_again_ends_with_the_same_bits(run: TinyRun, session: Session) -> None:
    first, _ = train(session, run.job())
    job = run.job(round=1, base=first.output, first_step=10, output=str(run.folder / "one.f32"))
    done, _ = train(session, job)
    wanted = bits(done.output)
    train(session, replace(job, output=str(run.folder / "half.f32")), finish_after=3)  # its state is now round 1's
    again, _ = train(open_session(run.manifest, run.data, threads=1), job)
    assert (again, bits(again.output)) == (done, wanted)


def test_two_rounds_by_way_of_the_disk_are_the_uninterrupted_run(run: TinyRun, session: Session) -> None:
    first, _ = train(session, run.job())
    second, _ = train(session, run.job(round=1, base=first.output, first_step=10, output=str(run.folder / "two.f32")))
    inner, model = run.manifest.inner, session.model
    load_parameters(model, read_flat(run.base, session.layout), session.layout)
    optimizer = make_optimizer(model, inner)
    for number in range(20):
        samples = Samples(inner.seed, bytes.fromhex(run.job().participant), number // 10)
        tokens = batch(session.corpus, samples, inner, number % 10, Assignment())
        inner_step(model, optimizer, tokens, learning_rate(inner, number), inner.clip_norm)
    assert np.concatenate([part.ravel() for part in flat_parts(model)]).tobytes() == bits(second.output)


def test_the_optimizers_state_matters(run: TinyRun, session: Session) -> None:
    first, _ = train(session, run.job())
    job = run.job(round=1, base=first.output, first_step=10, output=str(run.folder / "one.f32"))
    kept, _ = train(session, job)
    wanted = bits(kept.output)
    fresh, _ = train(session, replace(job, resume=str(run.folder / "empty")))
    assert bits(fresh.output) != wanted


def test_participants_and_rounds_read_other_samples(run: TinyRun, session: Session) -> None:
    jobs = [run.job(), run.job(participant="22" * 20), run.job(round=1)]
    roots = {
        train(session, replace(job, resume=str(run.folder / str(i))))[0].assignment_root for i, job in enumerate(jobs)
    }
    assert len(roots) == 3


def test_a_step_that_is_not_finite_is_skipped_and_not_counted(run: TinyRun, session: Session) -> None:
    with poison(session, {2, 5}):
        done, steps = train(session, run.job())
    assert (done.inner_steps, done.tokens) == (8, 8 * 128)
    assert [step.inner_step for step in steps] == [1, 2, 4, 5, 7, 8, 9, 10]
    assert np.isfinite(read_flat(Path(done.output), session.layout)).all()


def test_too_many_steps_that_are_not_finite_end_the_round(run: TinyRun, session: Session) -> None:
    with poison(session, set(range(SKIPPED_STEPS_LIMIT))), pytest.raises(WorkerError, match="not finite"):
        train(session, run.job())
    assert not Path(run.job().output).exists()
    assert not Path(run.job().resume).exists()


def test_an_optimizer_state_that_cannot_be_written_costs_no_round(
    run: TinyRun, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    (run.folder / "file").touch()
    done, _ = train(session, run.job(resume=str(run.folder / "file" / "resume")))
    assert done.inner_steps == 10
    assert len(bits(done.output)) == 4 * session.layout.total_elements
    assert "older optimizer state" in caplog.text


def test_more_steps_than_the_manifest_allows_are_refused(run: TinyRun, session: Session) -> None:
    with pytest.raises(WorkerError, match="the manifest allows 1000000"):
        train(session, run.job(inner_steps=1_000_001))


def test_a_model_that_changes_its_buffers_is_refused(run: TinyRun, session: Session) -> None:
    session.model.register_buffer("calls", torch.zeros(1), persistent=False)

    def count(module: Any, *_: object) -> None:
        module.calls += 1

    session.model.register_forward_hook(count)
    with pytest.raises(WorkerError, match="buffers"):
        train(session, run.job())


def test_a_base_of_another_size_is_refused(run: TinyRun, session: Session) -> None:
    run.base.write_bytes(run.base.read_bytes()[:-4])
    with pytest.raises(StorageError, match=r"base\.f32"):
        train(session, run.job())


def test_evaluating_repeats_and_disturbs_nothing(run: TinyRun, session: Session) -> None:
    before = evaluate(session, Evaluate("0", str(run.base)))
    done, _ = train(session, run.job())
    wanted, after = bits(done.output), evaluate(session, Evaluate("1", done.output))
    assert evaluate(session, Evaluate("0", str(run.base))) == before
    assert before.loss == pytest.approx(np.log(256), abs=0.2)
    assert after.loss < before.loss - 1
    assert before.tokens == after.tokens == 48 * 32
    assert (train(session, run.job())[0], bits(done.output)) == (done, wanted)
