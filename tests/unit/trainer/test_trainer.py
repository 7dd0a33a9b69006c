from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.tiny_run import TinyRun, make_run

from gonka_trainer.errors import WorkerError
from gonka_trainer.gradient.layout import layout_root
from gonka_trainer.jobs import Done, Progress, Train
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer

FOREVER = 1_000_000


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def nothing(_: Progress) -> None:
    return None


def script(settings: WorkerSettings, body: str) -> WorkerSettings:
    """A worker that is a few lines of Python; it finds its socket in `link`, connected."""
    head = (
        "import os, signal, sys, socket, time\n"
        "link = socket.socket(socket.AF_UNIX)\n"
        "os.chdir(os.path.dirname(sys.argv[2]))\n"
        "link.connect(os.path.basename(sys.argv[2]))\n"
    )
    return replace(settings, command=(sys.executable, "-c", head + body))


READY = 'link.sendall(b\'{"kind":"Ready","device":"cpu","hardware":"x","layout_root":"","pid":1}\\n\')\n'


class Steps:
    """Counts progress and lets a test wait for the first step, or do something at it."""

    def __init__(self, at_first: Callable[[], object] = lambda: None) -> None:
        self.seen: list[Progress] = []
        self.first = asyncio.Event()
        self._at_first = at_first

    def __call__(self, step: Progress) -> None:
        if not self.seen:
            self._at_first()
        self.seen.append(step)
        self.first.set()


async def reference(settings: WorkerSettings, job: Train) -> bytes:
    async with open_trainer(settings) as trainer:
        return Path((await trainer.train(job, nothing)).output).read_bytes()


async def test_train_and_evaluate_and_nothing_is_left(run: TinyRun, settings: WorkerSettings) -> None:
    steps = Steps()
    async with open_trainer(settings) as trainer:
        ready = await trainer.start()
        done = await trainer.train(run.job(), steps)
        losses = [await trainer.evaluate("x", path) for path in (str(run.base), done.output)]
    assert ready.layout_root == layout_root(run.manifest.layout).hex()
    assert (done.round, done.inner_steps, done.tokens, done.last_loss) == (0, 10, 1280, steps.seen[-1].loss)
    assert [step.inner_step for step in steps.seen] == list(range(1, 11))
    assert losses[1].loss < losses[0].loss
    assert gone(ready.pid)
    assert trainer.starts == 1
    assert not settings.socket.exists()


async def test_a_start_is_not_needed_and_the_socket_is_private(run: TinyRun, settings: WorkerSettings) -> None:
    async with open_trainer(settings) as trainer:
        assert trainer.ready is None
        assert settings.socket.stat().st_mode & 0o777 == 0o600
        assert (await trainer.train(run.job(inner_steps=0), nothing)).inner_steps == 0
    assert Path(run.job().output).read_bytes() == run.base.read_bytes()


async def test_finish_ends_a_round_early(run: TinyRun, settings: WorkerSettings) -> None:
    async with open_trainer(settings) as trainer:
        steps = Steps(lambda: trainer.finish(4))
        trainer.finish(4)  # nobody trains round 4 yet: nothing
        done = await trainer.train(run.job(round=4, inner_steps=FOREVER), steps)
        trainer.finish(4)
    assert 1 <= done.inner_steps < FOREVER
    assert done.inner_steps == len(steps.seen)


async def test_finish_before_the_worker_has_the_round(run: TinyRun, settings: WorkerSettings) -> None:
    async with open_trainer(settings) as trainer, asyncio.TaskGroup() as group:
        task = group.create_task(trainer.train(run.job(inner_steps=FOREVER), nothing))
        group.create_task(_call_soon(lambda: trainer.finish(0)))
        assert (await task).inner_steps < FOREVER


async def _call_soon(call: Callable[[], None]) -> None:
    call()


async def test_jobs_run_in_the_order_of_the_calls(run: TinyRun, settings: WorkerSettings) -> None:
    order: list[str] = []

    async def note(name: str, trainer: Trainer) -> None:
        if name.startswith("e"):
            await trainer.evaluate(name, str(run.base))
        else:
            await trainer.train(run.job(round=int(name)), nothing)
        order.append(name)

    async with open_trainer(settings) as trainer, asyncio.TaskGroup() as group:
        for name in ("3", "e1", "1", "e2"):
            group.create_task(note(name, trainer))
    assert order == ["3", "e1", "1", "e2"]


async def test_a_cancelled_round_ends_and_its_answer_is_dropped(run: TinyRun, settings: WorkerSettings) -> None:
    wanted = await reference(settings, run.job())
    async with open_trainer(settings) as trainer:
        steps = Steps()
        task = asyncio.create_task(trainer.train(run.job(inner_steps=FOREVER), steps))
        await steps.first.wait()
        task.cancel()
        later = Steps()
        done = await trainer.train(run.job(), later)  # the same round and output: told apart by order alone
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await trainer.evaluate("x", done.output)).label == "x"
    assert [step.inner_step for step in later.seen] == list(range(1, 11))
    assert Path(done.output).read_bytes() == wanted
    assert trainer.starts == 1


async def test_a_call_cancelled_while_the_worker_starts_leaves_the_start(
    run: TinyRun, settings: WorkerSettings
) -> None:
    async with open_trainer(settings) as trainer:
        task = asyncio.create_task(trainer.train(run.job(), nothing))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await trainer.train(run.job(), nothing)
    assert trainer.starts == 1


async def test_a_worker_killed_in_mid_round_is_replaced_and_the_bits_are_the_same(
    run: TinyRun, settings: WorkerSettings
) -> None:
    wanted = await reference(settings, run.job(inner_steps=200))
    async with open_trainer(settings) as trainer:
        pid = (await trainer.start()).pid
        steps = Steps(lambda: os.kill(pid, signal.SIGKILL))
        done = await trainer.train(run.job(inner_steps=200), steps)
    assert trainer.starts == 2
    assert (done.inner_steps, Path(done.output).read_bytes()) == (200, wanted)


async def test_a_worker_killed_while_idle_is_replaced(run: TinyRun, settings: WorkerSettings) -> None:
    async with open_trainer(settings) as trainer:
        for number in range(4):  # more often than failures in a row would be borne
            pid = (await trainer.start()).pid
            os.kill(pid, signal.SIGKILL)
            assert (await trainer.train(run.job(round=number), nothing)).round == number


async def test_a_worker_that_dies_in_every_try_is_given_up_with_its_log(run: TinyRun, settings: WorkerSettings) -> None:
    dying = script(settings, READY + "link.recv(100); sys.exit('out of coffee')")
    async with open_trainer(dying) as trainer:
        with pytest.raises(WorkerError, match=r"3 times in a row[\s\S]*out of coffee"):
            await trainer.train(run.job(), nothing)
    assert trainer.starts == 3


async def test_a_command_that_ends_before_it_connects(settings: WorkerSettings) -> None:
    broken = replace(settings, command=(sys.executable, "-c", "raise SystemExit('no such thing')"), failures=2)
    async with open_trainer(broken) as trainer:
        with pytest.raises(WorkerError, match=r"status 1 before it connected[\s\S]*no such thing"):
            await trainer.start()
        with pytest.raises(WorkerError, match="2 times in a row"):
            await trainer.start()


async def test_a_command_that_is_not_there(settings: WorkerSettings) -> None:
    async with open_trainer(replace(settings, command=("/no/such/worker",), failures=1)) as trainer:
        with pytest.raises(WorkerError, match="/no/such/worker: No such file"):
            await trainer.start()


async def test_a_worker_that_says_nothing_is_not_waited_for(settings: WorkerSettings) -> None:
    silent = replace(settings, command=(sys.executable, "-c", "import time; time.sleep(1000)"))
    async with open_trainer(replace(silent, start_seconds=0.2, failures=1)) as trainer:
        with pytest.raises(WorkerError, match=r"not ready within 0\.2 s"):
            await trainer.start()


async def test_a_worker_that_hangs_in_a_job_is_replaced(run: TinyRun, settings: WorkerSettings) -> None:
    hanging = replace(script(settings, READY + "time.sleep(1000)"), silent_seconds=0.2, failures=2)
    async with open_trainer(hanging) as trainer:
        with pytest.raises(WorkerError, match=r"2 times in a row: the worker said nothing for 0\.2 s"):
            await trainer.train(run.job(), nothing)
    assert trainer.starts == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"hello", "not JSON"),
        (b'{"kind":"Shutdown"}', "not its to send"),
        (b'{"kind":"Evaluated","label":"x","loss":1.0,"tokens":1}', "answered"),
        (b'{"kind":"Done"}', "has fields"),
        (b" " * (1 << 21), "a line of more than"),
    ],
)
async def test_a_worker_that_breaks_the_rules(run: TinyRun, settings: WorkerSettings, line: bytes, said: str) -> None:
    (run.folder / "line").write_bytes(line + b"\n")
    breaking = script(settings, READY + "link.recv(100); link.sendall(open('line', 'rb').read()); link.recv(9)")
    async with open_trainer(replace(breaking, failures=1)) as trainer:
        with pytest.raises(WorkerError, match=said):
            await trainer.train(run.job(), nothing)


async def test_what_the_worker_says_it_cannot_do_is_said_once(run: TinyRun, settings: WorkerSettings) -> None:
    run.data.write_bytes(b"x" + run.data.read_bytes()[1:])
    async with open_trainer(settings) as trainer:
        with pytest.raises(WorkerError, match=r"the manifest pins[\s\S]*worker\.data"):
            await trainer.start()
    assert trainer.starts == 1


async def test_a_job_that_cannot_be_done_leaves_the_worker(run: TinyRun, settings: WorkerSettings) -> None:
    async with open_trainer(settings) as trainer:
        with pytest.raises(WorkerError, match="cannot be read"):
            await trainer.evaluate("x", str(run.folder / "absent"))
        await trainer.train(run.job(), nothing)
    assert trainer.starts == 1


async def test_a_worker_that_will_not_go_is_killed(settings: WorkerSettings) -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY.replace('"pid":1', '"pid":%d')
    body = body.replace("\\n')", "\\n' % os.getpid())") + "while True: time.sleep(1000)"
    async with open_trainer(replace(script(settings, body), stop_seconds=0.1)) as trainer:
        pid = (await trainer.start()).pid
        assert not gone(pid)
    assert gone(pid)


async def test_a_path_longer_than_a_socket_address(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    run = make_run(folder)
    stand_in = (sys.executable, str(Path(__file__).parents[2] / "support" / "numpy_worker.py"))
    async with open_trainer(WorkerSettings(run.manifest_path, run.data, folder, command=stand_in)) as trainer:
        done: Done = await trainer.train(run.job(), nothing)
    assert done.inner_steps == 10
