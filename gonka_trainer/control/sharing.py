"""Whose the GPUs are, between training and a network node that drives an ML node (docs/control.md, The table)."""

from __future__ import annotations

import asyncio
import enum
import logging
from dataclasses import dataclass
from typing import Final

from gonka_trainer.control.real_node import RealNode
from gonka_trainer.controls import Gpu, Operator

_LOG: Final = logging.getLogger(__name__)
HOLDER: Final = "ml node"


class Turn(enum.StrEnum):
    """What the network node last had the GPUs for."""

    UNKNOWN = "unknown"  # the ML node behind has not said yet what it does
    TRAINING = "training"
    STOPPED = "stopped"  # everything is to stop; what follows is not known yet
    PROOF = "proof of compute"
    INFERENCE = "inference"


@dataclass(frozen=True)
class Patience:
    """Seconds: how long the worker may take to leave, how long a stop stands alone, how often the ML node is asked."""

    leave: float = 30.0
    settle: float = 60.0
    look: float = 5.0


class Sharing:
    """Takes the GPUs from training when the network node wants them, and gives them back when it is done with them."""

    def __init__(self, gpu: Gpu, operator: Operator, behind: RealNode | None, patience: Patience) -> None:
        self._gpu = gpu
        self._operator = operator
        self._behind = behind
        self._patience = patience
        self._lock = asyncio.Lock()
        self._changes = 0
        self._since = 0.0
        self._silent_since: float | None = None
        self._told = False
        self._owed: tuple[str, bytes] | None = None
        self._loading: asyncio.Task[None] | None = None
        self.turn = Turn.TRAINING

    @property
    def trains(self) -> bool:
        """Whether training has the GPUs, or is about to: what `/api/v1/state` calls TRAIN."""
        if self._gpu.in_use:
            return True
        return self.turn is Turn.TRAINING and self._operator.wants_gpus and not self._gpu.holds

    async def begin(self) -> None:
        """Find out who has the GPUs before training may; to be awaited before the first round."""
        if self._behind is None:
            return
        self._hold(Turn.UNKNOWN, "the ML node behind has not answered yet")
        self._judge(await self._behind.state())

    async def stop(self) -> None:
        """Take everything off the GPUs: the network node said stop. They come back when nothing follows it."""
        async with self._lock:
            self._owed = None
            await self._take(Turn.STOPPED, "the network node said stop")

    async def proof(self) -> None:
        """Take the GPUs for proof of compute."""
        async with self._lock:
            await self._take(Turn.PROOF, "the network node asks for proof of compute")

    async def inference(self, path: str, body: bytes) -> bool:
        """Decide who gets the GPUs now that inference may have them: whether the request is to be handed on.

        Training gets them when there is something to train. The request is kept, and made up for when there is not.
        """
        async with self._lock:
            if self._behind is None:
                self._give()
                return False
            if self._operator.wants_gpus:
                self._owed = (path, body)
                self._give()
                return False
            self._owed = None
            await self._take(Turn.INFERENCE, "the ML node serves inference")
            return True

    async def train(self) -> bool:
        """Give the GPUs to training: the network node started it. False: proof of compute has them, or may."""
        async with self._lock:
            if self.turn in {Turn.PROOF, Turn.UNKNOWN}:
                return False
            if self.turn is Turn.INFERENCE and self._behind is not None:
                await self._behind.stop()
            self._give()
            return True

    async def watch(self) -> None:
        """Look every few seconds whether the GPUs have changed hands without a request; until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._patience.look)
                changes = self._changes
                state = "" if self._behind is None else await self._behind.state()
                self._note_silence(silent=self._behind is not None and not state)
                async with self._lock:
                    if changes == self._changes:  # nothing was asked while the ML node answered
                        await self._look(state)
        finally:
            if self._loading is not None:
                self._loading.cancel()

    def _note_silence(self, *, silent: bool) -> None:
        """Say once that training waits for an ML node that is away: its GPUs are nobody's to give meanwhile."""
        now = asyncio.get_running_loop().time()
        if not silent or HOLDER not in self._gpu.holds:
            self._silent_since, self._told = None, False
        elif self._silent_since is None:
            self._silent_since = now
        elif not self._told and now - self._silent_since > self._patience.settle:
            self._told = True
            _LOG.error(
                "the ML node behind has not answered for %g s, and training waits for it: start it, or take "
                "ml_node.forward_to out of the configuration",
                now - self._silent_since,
            )

    async def _look(self, state: str) -> None:
        settled = asyncio.get_running_loop().time() - self._since > self._patience.settle
        match self.turn:
            case Turn.TRAINING | Turn.INFERENCE if state == "POW":
                await self._take(Turn.PROOF, "the ML node behind says POW")
            case Turn.UNKNOWN:
                self._judge(state)
            case Turn.STOPPED | Turn.PROOF if settled:
                self._judge(state)
            case Turn.INFERENCE if self._operator.wants_gpus and not set(self._gpu.holds) - {HOLDER}:
                await self._take_back()
            case Turn.TRAINING if self._owed is not None and not self._operator.wants_gpus:
                await self._pay(*self._owed)

    def _judge(self, state: str) -> None:
        """Let the GPUs be whose the ML node behind says they are; without one nobody else can have them."""
        if self._behind is None or state in {"STOPPED", "TRAIN"}:
            self._give()
        elif state == "INFERENCE":
            self._hold(Turn.INFERENCE, "the ML node serves inference")
        elif state == "POW" and self.turn is not Turn.PROOF:
            self._hold(Turn.PROOF, "the ML node behind says POW")

    async def _take_back(self) -> None:
        if self._behind is not None and await self._behind.stop():
            _LOG.info("there is something to train: the ML node behind was stopped")
            self._give()

    async def _pay(self, path: str, body: bytes) -> None:
        """Have the model loaded that the network node wanted while training went on."""
        await self._take(Turn.INFERENCE, "the ML node serves inference")
        self._owed = None
        # It may take many minutes, and proof of compute does not wait for them.
        self._loading = asyncio.create_task(self._load(path, body))

    async def _load(self, path: str, body: bytes) -> None:
        if self._behind is not None and await self._behind.inference_up(path, body):
            _LOG.info("there is nothing to train: the ML node behind serves inference")
        else:
            _LOG.error("the ML node behind did not take the inference/up that was kept for it: it serves no inference")

    async def _take(self, turn: Turn, why: str) -> None:
        self._hold(turn, why)
        try:
            async with asyncio.timeout(self._patience.leave):
                await self._gpu.vacated()
        except TimeoutError:
            _LOG.error(
                "the worker is on the GPUs after %g s still; the ML node gets them all the same", self._patience.leave
            )

    def _hold(self, turn: Turn, why: str) -> None:
        self._set(turn)
        self._gpu.hold(HOLDER, why)

    def _give(self) -> None:
        self._set(Turn.TRAINING)
        self._gpu.lift(HOLDER)

    def _set(self, turn: Turn) -> None:
        if turn is not self.turn:
            _LOG.info("network node: %s", turn)
        self.turn = turn
        self._changes += 1
        self._since = asyncio.get_running_loop().time()
