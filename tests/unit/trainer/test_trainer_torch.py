"""The real worker under torchrun, and what becomes of workers whose daemon is killed."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.tiny_run import CONFIG, TinyRun, make_run

from gonka_trainer.jobs import Progress
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import open_trainer

TESTS = Path(__file__).parents[2]
H, FF, V = (CONFIG[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
# What `python -m gonka_trainer.worker describe` says of CONFIG; that it does is tested beside the worker.
LAYER = (
    ("self_attn.q_proj", (H, H)),
    ("self_attn.k_proj", (H, H)),
    ("self_attn.v_proj", (H, H)),
    ("self_attn.o_proj", (H, H)),
    ("mlp.gate_proj", (FF, H)),
    ("mlp.up_proj", (FF, H)),
    ("mlp.down_proj", (H, FF)),
    ("input_layernorm", (H,)),
    ("post_attention_layernorm", (H,)),
)
PARAMETERS = (
    ("model.embed_tokens.weight", (V, H), "uniform:0.02"),
    *((f"model.layers.{i}.{n}.weight", s, "uniform:0.02" if len(s) > 1 else "ones") for i in (0, 1) for n, s in LAYER),
    ("model.norm.weight", (H,), "ones"),
)

DAEMON = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.tiny_run import PARTICIPANT
from gonka_trainer.jobs import Train
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import open_trainer

async def main():
    folder = Path(sys.argv[2])
    settings = WorkerSettings(folder / "manifest.json", folder / "corpus.txt", folder, command=tuple(sys.argv[3:]))
    async with open_trainer(settings) as trainer:
        ready = await trainer.start()
        job = Train(0, PARTICIPANT, str(folder / "base.f32"), str(folder / "out"), 1_000_000, 0, str(folder / "r"), "")
        await trainer.train(job, lambda step: print(ready.pid, flush=True) if step.inner_step == 1 else None)

asyncio.run(main())
"""


def processes_below(pid: int) -> list[int]:
    """Every living descendant of a process."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [below for child in children for below in (int(child), *processes_below(int(child)))]


def kill_and_wait_for_the_rest(daemon: subprocess.Popen[str], wanted: int) -> None:
    assert daemon.stdout is not None
    worker = int(daemon.stdout.readline())
    below = processes_below(daemon.pid)
    assert worker in below
    assert len(below) == wanted
    handles = [os.pidfd_open(pid) for pid in below]
    daemon.send_signal(signal.SIGKILL)
    for handle in handles:
        readable, _, _ = select.select([handle], [], [], 60)
        assert readable, "a process outlived its daemon"
        os.close(handle)


def start_daemon(run: TinyRun, *command: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", DAEMON, str(TESTS), str(run.folder), *command]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_a_worker_dies_with_a_daemon_that_is_killed(run: TinyRun) -> None:
    with start_daemon(run, sys.executable, str(TESTS / "support" / "numpy_worker.py")) as daemon:
        kill_and_wait_for_the_rest(daemon, 1)


def test_a_command_that_ignores_its_socket_dies_with_its_daemon_too(run: TinyRun) -> None:
    shell = (
        f"trap '' TERM; {sys.executable} {TESTS / 'support' / 'numpy_worker.py'} \"$@\"; while :; do sleep 1000; done"
    )
    with start_daemon(run, "/bin/bash", "-c", shell, "worker") as daemon:
        kill_and_wait_for_the_rest(daemon, 2)


@pytest.mark.slow
def test_torchrun_and_its_worker_die_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    with start_daemon(make_run(tmp_path, PARAMETERS)) as daemon:
        kill_and_wait_for_the_rest(daemon, 2)


async def test_the_real_worker_from_start_to_stop(tmp_path: Path) -> None:
    run, steps, later = make_run(tmp_path, PARAMETERS), list[Progress](), list[Progress]()
    pids: list[int] = []
    others = set(processes_below(os.getpid()))  # of other tests in this process

    def note(step: Progress) -> None:
        later.append(step)
        if len(later) == 3:
            trainer.finish(1)

    async with open_trainer(WorkerSettings(run.manifest_path, run.data, run.folder)) as trainer:
        ready = await trainer.start()
        pids += set(processes_below(os.getpid())) - others
        done = await trainer.train(run.job(), steps.append)
        early = await trainer.train(run.job(round=1, inner_steps=100_000, base=done.output, first_step=10), note)
        losses = [(await trainer.evaluate("", path)).loss for path in (str(run.base), done.output, early.output)]
    assert ready.pid in pids
    assert "torch-" in ready.hardware
    assert (done.inner_steps, done.tokens) == (10, 1280)
    assert 3 <= early.inner_steps == len(later) < 100_000
    assert len(steps) == 10
    assert losses[0] > losses[1]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert trainer.starts == 1


@pytest.mark.slow
async def test_the_real_worker_killed_in_mid_round(tmp_path: Path) -> None:
    run = make_run(tmp_path, PARAMETERS)
    settings = WorkerSettings(run.manifest_path, run.data, run.folder)
    async with open_trainer(settings) as trainer:
        first = await trainer.train(run.job(inner_steps=5), lambda _: None)
        job = run.job(round=1, inner_steps=20, base=first.output, first_step=5, output=str(run.folder / "second"))
        wanted = Path((await trainer.train(job, lambda _: None)).output).read_bytes()
        pid = (await trainer.start()).pid
        killed = asyncio.Event()

        def kill(step: Progress) -> None:
            if step.inner_step == 4 and not killed.is_set():
                killed.set()
                os.kill(pid, signal.SIGKILL)

        done = await trainer.train(replace(job, output=str(run.folder / "again")), kill)
    assert trainer.starts == 2
    assert Path(done.output).read_bytes() == wanted


async def test_the_real_worker_vacates_in_mid_round_and_goes_on(tmp_path: Path) -> None:
    run, seen = make_run(tmp_path, PARAMETERS), list[int]()
    others = set(processes_below(os.getpid()))
    async with open_trainer(WorkerSettings(run.manifest_path, run.data, run.folder)) as trainer:
        job = run.job(inner_steps=30)
        third = asyncio.Event()

        def note(step: Progress) -> None:
            seen.append(step.inner_step)
            if len(seen) == 3:
                third.set()

        task = asyncio.create_task(trainer.train(job, note))
        await third.wait()
        pids = set(processes_below(os.getpid())) - others
        started = time.monotonic()
        await trainer.vacate(60)
        print(f"from the hold until the torch worker was gone: {time.monotonic() - started:.2f} s")
        part = await task
        assert part.yielded
        assert len(pids) >= 2
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        trainer.admit()
        done = await trainer.train(job, note)
        whole = await trainer.train(run.job(inner_steps=30, output=str(tmp_path / "whole")), lambda _: None)
    assert 3 <= part.inner_steps < 30
    assert seen == list(range(1, 31))
    assert (done.inner_steps, done.assignment_root) == (30, whole.assignment_root)
    assert Path(done.output).read_bytes() == Path(whole.output).read_bytes()
