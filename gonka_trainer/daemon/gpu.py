"""Whose turn it is on this host's GPUs: training's, unless somebody holds them (docs/gpu.md)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from gonka_trainer.ports import Stops, Trainer

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.05


class GpuTurns:
    """`controls.Gpu`: holds by name. It outlives the runs; each run lends its trainer to it while it is served.

    At the first hold no worker starts any more and the one that runs checkpoints and ends; at the last lift workers may
    start again. What a stop took, from the hold until no process was left, is measured and kept over restarts.
    """

    def __init__(self, stops: Stops) -> None:
        self._stops = stops
        self._holds: dict[str, str] = {}
        self._since = 0.0
        self._held = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._trainer: Trainer | None = None
        self._report: Callable[..., None] = _unheard
        self.tell: Callable[[str, Mapping[str, Any]], None] = _untold
        """Called with each hold and lift, for those who read along (control.proto, Event)."""
        self.freed_seconds: float | None = None
        """What the last hold took until the GPU was free; None before the first."""

    def hold(self, who: str, why: str) -> None:
        """Take the GPUs from training at once: the worker checkpoints and ends. Repeating it changes the reason."""
        if self._holds.get(who) == why:
            return
        _LOG.info("GPU: held for %s: %s", who, why)
        self.tell("gpu_held", {"who": who, "why": why})
        if not self._holds:
            self._since = time.monotonic()
            self._free.clear()
            self._held.set()
            if self._trainer is not None:
                self._trainer.bar()
        self._holds[who] = why
        self._report(gpu_holds=dict(self._holds))

    def lift(self, who: str) -> None:
        """Give them back, as far as this holder is concerned; nothing happens when it holds none."""
        if self._holds.pop(who, None) is None:
            return
        _LOG.info("GPU: no longer held for %s%s", who, "" if self._holds else ": training goes on")
        self.tell("gpu_freed", {"who": who})
        if not self._holds:
            self._held.clear()
            self._free.set()
        self._report(gpu_holds=dict(self._holds))

    @property
    def holds(self) -> Mapping[str, str]:
        """Return who holds the GPUs, and why."""
        return MappingProxyType(self._holds)

    @property
    def in_use(self) -> bool:
        """Whether a process of the worker is alive, also of a run's that is just being left."""
        return self._trainer is not None and self._trainer.in_use

    @property
    def stop_seconds(self) -> float:
        """How long a stop takes: the longest of the last ones that were measured, or what the settings say."""
        return self._stops.seconds

    async def vacated(self) -> None:
        """Wait until no process of the worker is left; returns at once when there is none."""
        while self.in_use:
            await asyncio.sleep(_LOOK_SECONDS)

    async def serve(self, trainer: Trainer, report: Callable[..., None]) -> None:
        """Give and take the trainer's turn until cancelled; `report` takes values for the status."""
        self._trainer, self._report = trainer, report
        if self._holds:
            trainer.bar()
        report(gpu_holds=dict(self._holds), gpu_freed_seconds=self.freed_seconds)
        try:
            await self._turns(trainer)
        finally:
            self._report = _unheard  # the trainer stays: its worker takes some seconds to end

    async def _turns(self, trainer: Trainer) -> None:
        while True:
            await self._held.wait()
            used = trainer.in_use
            await trainer.vacate(self._stops.bound_seconds)
            if used:
                self._freed(time.monotonic() - self._since)
            while self._holds:  # the lift that ended a wait may have been followed by a hold
                await self._free.wait()
            trainer.admit()

    def _freed(self, seconds: float) -> None:
        _LOG.info("GPU: free %.2f s after the hold; no process of the worker is left", seconds)
        self.freed_seconds = seconds
        self._stops.add(seconds)
        self._report(gpu_freed_seconds=round(seconds, 3))


def _unheard(**_: Any) -> None:
    """Nobody reports while no run is served."""


def _untold(_kind: str, _details: Mapping[str, Any]) -> None:
    """Nobody reads along."""
