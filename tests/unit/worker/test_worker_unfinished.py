"""A round that was interrupted goes on to the bits of the uninterrupted one, or begins again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.tiny_run import TinyRun, make_run

from gonka_trainer.jobs import NO_SAMPLES, Done, Progress, Train
from gonka_trainer.worker.data import Assignment
from gonka_trainer.worker.loop import train_round
from gonka_trainer.worker.model import describe
from gonka_trainer.worker.session import Session, open_session

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 32,
    "vocab_size": 256,
    "resid_pdrop": 0.2,
    "embd_pdrop": 0.2,
    "attn_pdrop": 0.2,
    "bos_token_id": None,
    "eos_token_id": None,
}


def train(
    session: Session, job: Train, give_way_after: int | None = None, stands: int = 0
) -> tuple[Done, list[Progress]]:
    """Train, and give way once the round stands at so many steps; it `stands` at some already."""
    give_way, steps = threading.Event(), list[Progress]()

    def note(step: Progress) -> None:
        steps.append(step)
        if step.inner_step == give_way_after:
            give_way.set()

    if give_way_after == stands:
        give_way.set()
    return train_round(session, job, threading.Event(), give_way, note), steps


def again(run: TinyRun) -> Session:
    """The worker of a new process."""
    torch.manual_seed(12345)
    return open_session(run.manifest, run.data, threads=1)


def unfinished(job: Train) -> Path:
    return Path(job.resume) / "unfinished.safetensors"


def optimizer_of(job: Train) -> Path:
    return Path(job.resume) / f"round-{job.round:08d}.safetensors"


@pytest.fixture
def dropout_run(tmp_path: Path) -> TinyRun:
    run = make_run(tmp_path, tuple(describe(GPT2)))
    manifest = replace(run.manifest, model=replace(run.manifest.model, config=GPT2))
    return TinyRun(run.folder, manifest)


def compare(run: TinyRun, places: tuple[int, ...]) -> None:
    """Train two rounds without a break, then the second again with breaks, each in another process."""
    first, _ = train(again(run), run.job())
    job = run.job(round=1, base=first.output, base_root="55" * 32, first_step=10, output=str(run.folder / "whole.f32"))
    wanted, steps = train(again(run), job)
    state = optimizer_of(job).read_bytes()
    broken = replace(job, output=str(run.folder / "broken.f32"))
    seen: list[Progress] = []
    for stands, place in zip((0, *places), places, strict=False):
        part, made = train(again(run), broken, give_way_after=place, stands=stands)
        assert (part.yielded, part.inner_steps, part.tokens) == (True, place, 128 * place)
        assert Path(part.output).stat().st_size == run.base.stat().st_size
        seen += made
    done, made = train(again(run), broken)
    assert seen + made == steps
    assert replace(done, output=job.output) == wanted
    assert not wanted.yielded
    assert Path(broken.output).read_bytes() == Path(job.output).read_bytes()
    assert len(optimizer_of(job).read_bytes()) == len(state)
    assert not unfinished(job).exists()


@pytest.mark.parametrize("places", [(1,), (4,), (9,), (3, 3, 7)])
def test_a_round_with_breaks_has_the_bits_of_the_whole_one(run: TinyRun, places: tuple[int, ...]) -> None:
    compare(run, places)


def test_dropout_goes_on_where_its_generator_was(dropout_run: TinyRun) -> None:
    compare(dropout_run, (4,))


def test_dropout_would_show_a_generator_that_is_not_kept(dropout_run: TinyRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_rng_state", lambda _: None)
    with pytest.raises(AssertionError):
        compare(dropout_run, (4,))


def test_the_next_round_starts_from_the_optimizer_of_an_interrupted_one(run: TinyRun, session: Session) -> None:
    part, _ = train(session, run.job(), give_way_after=6)
    job = run.job(round=1, base=part.output, base_root="55" * 32, first_step=10, output=str(run.folder / "one.f32"))
    kept, _ = train(session, job)
    fresh, _ = train(session, replace(job, resume=str(run.folder / "empty"), output=str(run.folder / "two.f32")))
    assert Path(kept.output).read_bytes() != Path(fresh.output).read_bytes()
    assert not unfinished(job).exists()


def test_giving_way_before_the_first_step_leaves_nothing(run: TinyRun, session: Session) -> None:
    part, steps = train(session, run.job(), give_way_after=0)
    assert (part.yielded, part.inner_steps, part.assignment_root, steps) == (True, 0, NO_SAMPLES, [])
    assert not Path(part.output).exists()
    assert not unfinished(run.job()).exists()
    assert train(session, run.job())[0].inner_steps == 10


def test_no_samples_is_the_root_of_no_samples() -> None:
    assert Assignment().root.hex() == NO_SAMPLES


def test_finish_beats_giving_way(run: TinyRun, session: Session) -> None:
    both = threading.Event()
    both.set()
    done = train_round(session, run.job(), both, both, lambda _: None)
    assert not done.yielded


@pytest.mark.parametrize(
    "change", [{"base_root": "66" * 32}, {"participant": "22" * 20}, {"round": 2}, {"first_step": 10}], ids=str
)
def test_another_round_or_base_begins_at_its_beginning(run: TinyRun, session: Session, change: dict[str, Any]) -> None:
    train(session, run.job(), give_way_after=4)
    done, steps = train(session, run.job(**change))
    assert [step.inner_step for step in steps] == list(range(1, 11))
    assert not done.yielded
    assert not unfinished(run.job()).exists()


def test_skipped_steps_are_kept(run: TinyRun, session: Session) -> None:
    calls = iter(range(1000))

    def poison(_module: object, _inputs: object, output: Any) -> Any:
        if next(calls) in {1, 6}:
            output.logits = output.logits * float("nan")
        return output

    with session.model.register_forward_hook(poison):
        part, first = train(session, run.job(), give_way_after=4)
        done, second = train(session, run.job())
    assert [step.inner_step for step in first + second] == [1, 3, 4, 5, 6, 8, 9, 10]
    assert (part.inner_steps, done.inner_steps) == (3, 8)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Train], object]] = {
    "one bit": lambda job: flip(unfinished(job)),
    "cut short": lambda job: unfinished(job).write_bytes(unfinished(job).read_bytes()[:-1]),
    "garbage": lambda job: unfinished(job).write_bytes(b"\xff" * 100),
    "one bit of the optimizer": lambda job: flip(optimizer_of(job)),
    "no optimizer": lambda job: optimizer_of(job).unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_damaged_is_told_and_the_round_begins_again(
    run: TinyRun, session: Session, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = Path(train(session, run.job(resume=str(run.folder / "whole")))[0].output).read_bytes()
    train(session, run.job(), give_way_after=4)
    DAMAGE[kind](run.job())
    done, steps = train(session, run.job())
    assert len(steps) == 10
    assert "begins again" in caplog.text
    assert Path(done.output).read_bytes() == wanted


def test_an_optimizer_of_the_same_round_but_another_try_is_refused(
    run: TinyRun, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    train(session, run.job(), give_way_after=4)
    kept = unfinished(run.job()).read_bytes()
    train(session, run.job(), give_way_after=6)
    unfinished(run.job()).write_bytes(kept)
    _, steps = train(session, run.job())
    assert len(steps) == 10
    assert "not the state that the unfinished round had" in caplog.text
