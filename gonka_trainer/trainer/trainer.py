"""What the daemon asks of its worker, as calls: train, finish, evaluate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gonka_trainer.errors import WorkerError
from gonka_trainer.jobs import Done, Evaluate, Evaluated, Failed, Finish, FromWorker, Progress, Ready, Train, Yield
from gonka_trainer.trainer.link import LinkError, WorkerLink
from gonka_trainer.trainer.process import TrainerProcess, WorkerSettings, open_process

_log = logging.getLogger(__name__)


@dataclass
class _Round:
    """A round that was asked for: whether it is to end early, and the link on which the worker has it, if any."""

    number: int
    finish: bool = False
    link: WorkerLink | None = None

    def send_finish(self) -> None:
        """Pass a finish on to a worker that has the round."""
        if self.finish and self.link is not None and not self.link.closed:
            self.link.send(Finish(self.number))

    def send_yield(self) -> None:
        """Ask a worker that has the round to keep it for later."""
        if self.link is not None and not self.link.closed:
            self.link.send(Yield(self.number))


class Trainer:
    """Jobs for the worker, one at a time in the order of the calls. Any call may be cancelled at any time.

    A worker that dies in a job is started again and the job sent again: a round is begun from its base, so what comes
    out is the same. While the trainer is barred no worker is started, and calls wait. Use `open_trainer`.
    """

    def __init__(self, process: TrainerProcess, silent_seconds: float) -> None:
        self._process = process
        self._silent_seconds = silent_seconds
        self._turn = asyncio.Lock()
        self._rounds: list[_Round] = []
        self._starting: asyncio.Task[WorkerLink] | None = None
        self._admitted = asyncio.Event()
        self._admitted.set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def ready(self) -> Ready | None:
        """What the running worker said of itself; None while there is none."""
        return self._process.ready

    @property
    def starts(self) -> int:
        """How often the worker was started."""
        return self._process.starts

    async def start(self) -> Ready:
        """Have a worker ready and return what it says of itself; WorkerError. Jobs start one by themselves."""
        async with self._turn:
            while (ready := self._process.ready) is None or not self.admitted:
                await self._worker()
            return ready

    async def train(self, job: Train, progress: Callable[[Progress], None]) -> Done:
        """Train one round, calling `progress` after every inner step; WorkerError when it cannot be done.

        After a restart of the worker `progress` begins again at the round's first step. A cancelled call ends the
        round in the worker, and what the worker still answers is dropped. An answer that is `yielded` is of a round
        that `vacate` interrupted: the same job goes on from there.
        """
        entry = _Round(job.round)
        self._rounds.append(entry)
        try:
            async with self._turn:
                answer = await self._do(job, progress, entry)
        finally:
            self._rounds.remove(entry)
        assert isinstance(answer, Done)
        return answer

    def finish(self, round_number: int) -> None:
        """End the round after the step in hand: `train` returns with what there is. Safe at any time, repeatedly."""
        for entry in self._rounds:
            if entry.number == round_number and not entry.finish:
                entry.finish = True
                entry.send_finish()

    async def evaluate(self, label: str, path: str) -> Evaluated:
        """Return the held-out loss of the parameters in a flat file; WorkerError when it cannot be done."""
        async with self._turn:
            answer = await self._do(Evaluate(label, path), _ignore, None)
        assert isinstance(answer, Evaluated)
        return answer

    async def stop(self) -> None:
        """Have the worker end, once the job in hand is done: the GPU is free afterwards. The next job starts one."""
        async with self._turn:
            await self._process.stop()

    @property
    def admitted(self) -> bool:
        """Whether a worker may be started."""
        return self._admitted.is_set()

    @property
    def in_use(self) -> bool:
        """Whether any process of a worker is alive, or about to be."""
        starting = self._starting is not None and not self._starting.done()
        return starting or self._process.present

    def bar(self) -> None:
        """From now on no worker is started: calls wait for `admit`."""
        self._admitted.clear()

    def admit(self) -> None:
        """Let workers start again."""
        self._admitted.set()

    async def vacate(self, seconds: float) -> None:
        """Bar, let the worker keep the round in hand, and end it; when this returns no process of it is left.

        A start is given up and an evaluation abandoned (its call does it again later). A round that is not kept after
        `seconds` is trained again from its base. Once the worker has ended torchrun is killed: it would take seconds.
        """
        self.bar()
        try:
            async with asyncio.timeout(seconds):
                await self.close()
                await self._keep_round()
                await self._process.leave()
        except TimeoutError:
            _log.warning("worker: not gone %g s after it was told to leave: killed; its round begins again", seconds)
        finally:
            await self._process.discard()

    async def close(self) -> None:
        """Give up a start that is under way."""
        if self._starting is not None and self._starting.cancel():
            await asyncio.wait((self._starting,))

    async def _keep_round(self) -> None:
        """Have the worker keep the round in hand, if it has one; whatever else it does is of no use to wait for."""
        if self._idle.is_set():
            return
        rounds = [entry for entry in self._rounds if entry.link is not None]
        if not rounds:
            await self._process.discard()
        for entry in rounds:
            entry.send_yield()
        await self._idle.wait()

    async def _do(
        self, job: Train | Evaluate, progress: Callable[[Progress], None], entry: _Round | None
    ) -> Done | Evaluated:
        """Send the job until it is answered; the process counts the failures and says when there were too many."""
        while True:
            link = await self._worker()
            try:
                answer = await self._ask(link, job, progress, entry)
            except LinkError as error:
                await self._process.discard()
                if self.admitted:
                    self._process.failed(error.what)
                continue
            self._process.succeeded()
            if isinstance(answer, Failed):
                raise WorkerError(answer.what, answer.remedy)
            return answer

    async def _worker(self) -> WorkerLink:
        """Return the link to a ready worker. A start goes on when the call that wanted it is cancelled.

        One that `vacate` gave up is made again once workers are admitted.
        """
        while True:
            while not self.admitted:  # a wait that was woken by `admit` may go on after a further `bar`
                await self._admitted.wait()
            if self._starting is None or self._starting.done():
                self._starting = asyncio.create_task(self._process.link())
                self._starting.add_done_callback(_say_failure)
            starting = self._starting
            await asyncio.wait((starting,))
            if not starting.cancelled():
                return starting.result()

    async def _ask(
        self, link: WorkerLink, job: Train | Evaluate, progress: Callable[[Progress], None], entry: _Round | None
    ) -> Done | Evaluated | Failed:
        answer = None
        self._idle.clear()
        try:
            link.send(job)
            if entry is not None:
                entry.link = link
                entry.send_finish()
            answer = await _answer(link, progress, self._silent_seconds)
        finally:
            self._idle.set()
            if entry is not None:
                entry.link = None
            if answer is None:
                _leave(link, job)
        if isinstance(answer, Failed) or _answers(answer, job):
            return answer
        raise LinkError(f"the worker answered {job} with {answer}")


async def _answer(
    link: WorkerLink, progress: Callable[[Progress], None], silent_seconds: float
) -> Done | Evaluated | Failed:
    """Return the answer to the job sent last, past those that are owed to jobs before it."""
    while True:
        match await _receive(link, silent_seconds):
            case Progress() as step:
                if link.owed == 0:
                    progress(step)
            case Ready():
                raise LinkError("the worker said Ready again")
            case _ if link.owed > 0:
                link.owed -= 1
            case answer:
                return answer


async def _receive(link: WorkerLink, silent_seconds: float) -> FromWorker:
    try:
        async with asyncio.timeout(silent_seconds):
            return await link.receive()
    except TimeoutError as error:
        raise LinkError(f"the worker said nothing for {silent_seconds:g} s in a job") from error


def _answers(answer: Done | Evaluated, job: Train | Evaluate) -> bool:
    if isinstance(job, Train):
        return isinstance(answer, Done) and (answer.round, answer.output) == (job.round, job.output)
    return isinstance(answer, Evaluated) and answer.label == job.label


def _leave(link: WorkerLink, job: Train | Evaluate) -> None:
    """Nobody waits for the answer any more: it is owed, and a round need not be trained to its end."""
    link.owed += 1
    if isinstance(job, Train) and not link.closed:
        link.send(Finish(job.round))


def _ignore(_: Progress) -> None:
    """Evaluating has no progress."""


def _say_failure(start: asyncio.Task[WorkerLink]) -> None:
    """Say why a start failed also when the call that wanted it was cancelled."""
    if not start.cancelled() and (error := start.exception()) is not None:
        _log.warning("worker: %s", error)


@asynccontextmanager
async def open_trainer(settings: WorkerSettings) -> AsyncIterator[Trainer]:
    """Give a trainer whose worker starts with the first call; at the end no process of it is left."""
    async with open_process(settings) as process:
        trainer = Trainer(process, settings.silent_seconds)
        try:
            yield trainer
        finally:
            trainer.bar()
            await trainer.close()
