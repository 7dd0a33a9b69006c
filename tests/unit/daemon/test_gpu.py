"""Turns on the GPUs, with a real worker: gone on the first hold, back after the last lift, rounds going on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.daemon.training import NO_HARDWARE, Training
from gonka_trainer.jobs import NO_SAMPLES, Done, Progress
from gonka_trainer.ports import StoredObject, Trained
from gonka_trainer.round.commands import Train
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.storage.unfinished import UnfinishedRound
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer
from gonka_trainer.types import ZERO_DIGEST, Address, Height
from tests.support.tiny_run import PARTICIPANT, TinyRun, make_run

pytestmark = pytest.mark.timeout(120)

WORKER = Path(__file__).parents[2] / "support" / "numpy_worker.py"
STEPS = 400


@dataclass
class Desk:
    """A trainer with turns, a Training over it, and what the status was told."""

    run: TinyRun
    turns: GpuTurns
    trainer: Trainer
    status: dict[str, Any] = field(default_factory=dict)
    steps: list[Progress] = field(default_factory=list)
    stepped: asyncio.Event = field(default_factory=asyncio.Event)
    stops: Path = Path()

    def tell(self, **values: Any) -> None:
        self.status.update(values)

    def progress(self, made: Progress) -> None:
        self.steps.append(made)
        self.stepped.set()

    async def step(self) -> None:
        """Wait for a further step."""
        self.stepped.clear()
        await self.stepped.wait()

    @property
    def training(self) -> Training:
        layout_root = self.trainer.ready.layout_root if self.trainer.ready else ""
        kit: Any = SimpleNamespace(
            trainer=self.trainer,
            reporter=SimpleNamespace(progress=self.progress, own=lambda _number, **facts: self.status.update(facts)),
            run=SimpleNamespace(
                participant=Address(bytes.fromhex(PARTICIPANT)),
                manifest=SimpleNamespace(inner=SimpleNamespace(steps=STEPS)),
                layout_root=bytes.fromhex(layout_root or self.status["layout_root"]),
            ),
            store=SimpleNamespace(state=lambda _root: StoredObject(b"", b"", self.run.base)),
            work=self.run.folder,
            unfinished=UnfinishedRound(self.run.folder),
        )
        return Training(kit)


def command(finish: bool = False) -> Train:
    return Train(0, ZERO_DIGEST, (), Height(10), finish=finish)


@asynccontextmanager
async def desk(folder: Path, step_seconds: float = 0.01, bound_seconds: float = 30.0) -> AsyncIterator[Desk]:
    run = make_run(folder)
    worker = (sys.executable, str(WORKER), "--step-seconds", str(step_seconds))
    settings = WorkerSettings(run.manifest_path, run.data, run.folder, command=worker)
    turns = GpuTurns(FileStops(folder / "stops.json", bound_seconds))
    async with open_trainer(settings) as trainer:
        made = Desk(run, turns, trainer, stops=folder / "stops.json")
        made.status["layout_root"] = (await trainer.start()).layout_root
        serving = asyncio.create_task(turns.serve(trainer, made.tell))
        while "gpu_holds" not in made.status:
            await asyncio.sleep(0)
        try:
            yield made
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def whole(folder: Path, steps: int) -> bytes:
    """The bits of an uninterrupted round of so many steps."""
    folder.mkdir()
    async with desk(folder, 0.0) as other:
        done = await other.trainer.train(other.run.job(inner_steps=steps, round=0), lambda _: None)
        return Path(done.output).read_bytes()


async def test_the_process_is_gone_and_training_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    async with desk(tmp_path, 0.005) as d:
        task = asyncio.create_task(d.training._trained(Wanted(command())))
        for _ in range(2):
            await d.step()
            pid = (await d.trainer.start()).pid if d.trainer.ready is None else d.trainer.ready.pid
            d.turns.hold("test", "because")
            await d.turns.vacated()
            assert not d.turns.in_use
            assert gone(pid)
            d.turns.lift("test")
        trained = await task
        assert (trained.done.inner_steps, trained.done.yielded) == (STEPS, False)
        assert [step.inner_step for step in d.steps] == list(range(1, STEPS + 1))
        assert d.trainer.starts == 3
        assert d.status["interrupted"]
        result = Path(trained.done.output).read_bytes()
        assert len(json.loads(d.stops.read_text())["stop_seconds"]) == 2
        assert d.turns.stop_seconds == max(json.loads(d.stops.read_text())["stop_seconds"])
    assert result == await whole(tmp_path / "whole", STEPS)


async def test_when_the_time_is_over_what_there_is_is_taken_without_a_worker(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        wanted = Wanted(command())
        task = asyncio.create_task(d.training._trained(wanted))
        await d.step()
        d.turns.hold("test", "because")
        await d.turns.vacated()
        wanted.update(command(finish=True))
        trained = await task
        assert 0 < trained.done.inner_steps == len(d.steps) < STEPS
        assert trained.done.tokens == trained.done.inner_steps * d.run.manifest.inner.tokens_per_step
        assert trained.hardware == "numpy stand-in"
        assert not d.turns.in_use
        assert d.trainer.starts == 1
        result = Path(trained.done.output).read_bytes()
    assert result == await whole(tmp_path / "whole", trained.done.inner_steps)


async def test_what_is_kept_stays_until_the_next_round(tmp_path: Path) -> None:
    """The journal does not know the update yet when its blob is made: after a crash then, nothing else is left."""
    async with desk(tmp_path) as d:
        wanted, kept = Wanted(command()), UnfinishedRound(d.run.folder)
        task = asyncio.create_task(d.training._trained(wanted))
        await d.step()
        d.turns.hold("test", "because")
        await d.turns.vacated()
        wanted.update(command(finish=True))
        done = (await task).done
        d.training._forget(done)
        assert kept.of(0, ZERO_DIGEST.hex()) is not None
        later = asyncio.create_task(d.training._trained(Wanted(replace(command(), round=1))))
        while Path(done.output).exists():
            await asyncio.sleep(0.01)
        later.cancel()
        await asyncio.wait((later,))


async def test_finish_that_stands_already_takes_what_a_former_daemon_kept(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        task = asyncio.create_task(d.training._trained(Wanted(command())))
        await d.step()
        d.turns.hold("test", "because")
        await d.turns.vacated()
        await asyncio.sleep(0)
        while UnfinishedRound(d.run.folder).of(0, ZERO_DIGEST.hex()) is None:
            await asyncio.sleep(0.01)
        task.cancel()  # the daemon ends here
        trained = await d.training._trained(Wanted(command(finish=True)))
        assert trained.done.inner_steps == len(d.steps)


async def test_steps_that_are_kept_are_not_given_up_for_fewer(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        wanted = Wanted(command())
        task = asyncio.create_task(d.training._trained(wanted))
        while len(d.steps) < 20:
            await d.step()
        d.turns.hold("test", "because")
        await d.turns.vacated()
        while (kept := UnfinishedRound(d.run.folder).of(0, ZERO_DIGEST.hex())) is None:
            await asyncio.sleep(0.01)
        for lost in (d.run.folder / "inner").iterdir():
            lost.unlink()  # the worker begins again
        d.turns.lift("test")
        await d.step()
        wanted.update(command(finish=True))
        trained = await task
        assert d.steps[-1].inner_step < kept.done.inner_steps
        assert trained == kept
        assert Path(trained.done.output).exists()


async def test_a_round_that_never_had_a_gpu_commits_no_steps(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        d.turns.hold("test", "because")
        await d.turns.vacated()
        wanted = Wanted(command())
        task = asyncio.create_task(d.training._trained(wanted))
        await asyncio.sleep(0)
        wanted.update(command(finish=True))
        trained = await task
        assert (trained.done.inner_steps, trained.done.tokens, trained.done.output) == (0, 0, "")
        assert (trained.done.assignment_root, trained.hardware) == (NO_SAMPLES, NO_HARDWARE)
        assert d.trainer.starts == 1


async def test_an_interruption_right_at_the_beginning_loses_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, 0.001) as d:
        task = asyncio.create_task(d.training._trained(Wanted(command())))
        await asyncio.sleep(0)
        d.turns.hold("test", "because")
        await d.turns.vacated()
        d.turns.lift("test")
        assert (await task).done.inner_steps == STEPS
        assert [step.inner_step for step in d.steps] == list(range(1, STEPS + 1))


async def test_nobody_starts_a_worker_while_somebody_holds(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        d.turns.hold("a", "one")
        d.turns.hold("b", "two")
        await d.turns.vacated()
        calls = [
            asyncio.create_task(d.trainer.start()),
            asyncio.create_task(d.trainer.evaluate("x", str(d.run.base))),
            asyncio.create_task(d.trainer.train(d.run.job(), lambda _: None)),
        ]
        d.turns.lift("a")
        await asyncio.wait(calls, timeout=0.3)
        assert not any(call.done() for call in calls)
        assert not d.turns.in_use
        assert (dict(d.turns.holds), d.status["gpu_holds"]) == ({"b": "two"}, {"b": "two"})
        d.turns.lift("b")
        await asyncio.gather(*calls)
        assert d.trainer.starts == 2


async def test_an_evaluation_is_abandoned_and_made_later(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        os.kill((await d.trainer.start()).pid, signal.SIGSTOP)  # the evaluation stays in hand
        call = asyncio.create_task(d.trainer.evaluate("x", str(d.run.base)))
        await asyncio.sleep(0.05)
        d.turns.hold("test", "because")
        await d.turns.vacated()
        assert not call.done()
        d.turns.lift("test")
        assert (await call).label == "x"
        assert d.trainer.starts == 2


async def test_a_worker_that_does_not_leave_is_killed_and_its_round_begins_again(tmp_path: Path) -> None:
    async with desk(tmp_path, 0.02, bound_seconds=0.2) as d:
        pid = (await d.trainer.start()).pid
        os.kill(pid, signal.SIGSTOP)  # it answers nothing
        task = asyncio.create_task(d.trainer.train(d.run.job(inner_steps=3), d.progress))
        await asyncio.sleep(0)
        d.turns.hold("test", "because")
        await d.turns.vacated()
        assert gone(pid)
        d.turns.lift("test")
        assert (await task).inner_steps == 3
        assert [step.inner_step for step in d.steps] == [1, 2, 3]


async def test_children_of_the_worker_are_gone_too(tmp_path: Path) -> None:
    """A grandchild that ignores SIGTERM, has no parent any more and is in the worker's session still ends."""
    run = make_run(tmp_path)
    stubborn = f"(trap '' TERM HUP; echo $BASHPID > {tmp_path}/child; exec sleep 1000)"
    shell = f'{stubborn} & exec {sys.executable} {WORKER} "$@"'
    settings = WorkerSettings(run.manifest_path, run.data, run.folder, command=("/bin/bash", "-c", shell, "worker"))
    async with open_trainer(settings) as trainer:
        await trainer.start()
        child = int((tmp_path / "child").read_text())
        assert not gone(child)
        await trainer.vacate(30)
        assert not trainer.in_use
        state = Path(f"/proc/{child}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


async def test_a_hold_before_the_run_is_served_keeps(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    settings = WorkerSettings(run.manifest_path, run.data, run.folder, command=(sys.executable, str(WORKER)))
    turns = GpuTurns(FileStops(tmp_path / "stops.json", 5.0))
    turns.hold("test", "because")
    await turns.vacated()
    async with open_trainer(settings) as trainer:
        serving = asyncio.create_task(turns.serve(trainer, lambda **_: None))
        await asyncio.sleep(0)
        call = asyncio.create_task(trainer.start())
        await asyncio.wait((call,), timeout=0.2)
        assert not call.done()
        turns.lift("test")
        await call
        serving.cancel()
        await asyncio.wait((serving,))


def test_measured_stops_are_kept_and_the_largest_counts(tmp_path: Path) -> None:
    stops = FileStops(tmp_path / "stops.json", 30.0)
    assert stops.seconds == 30.0
    for seconds in (1.0, 4.0, 2.0):
        stops.add(seconds)
    assert FileStops(tmp_path / "stops.json", 30.0).seconds == 4.0
    for _ in range(16):
        stops.add(0.5)
    assert stops.seconds == 0.5
    (tmp_path / "stops.json").write_text('{"stop_seconds": "x"}')
    assert stops.seconds == 30.0


def test_what_is_kept_of_a_round_is_of_that_round_and_base_alone(tmp_path: Path) -> None:
    kept = UnfinishedRound(tmp_path)
    output = tmp_path / "round-3.f32"
    np.arange(3, dtype="<f4").tofile(output)
    done = kept.keep(Trained(Done(3, 1, 2, 0.5, 0.5, str(output), "aa", yielded=True), "cpu"), "bb")
    assert not output.exists()
    assert UnfinishedRound(tmp_path).of(3, "bb") == done
    assert kept.of(3, "cc") is None
    assert kept.of(2, "bb") is None
    with Path(done.done.output).open("ab") as file:
        file.truncate(8)  # the disk lost its end
    assert kept.of(3, "bb") is None
    Path(done.done.output).unlink()
    assert kept.of(3, "bb") is None
    kept.clear()
    assert list(tmp_path.iterdir()) == []
