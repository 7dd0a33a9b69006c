"""What the host's services (control, ML-node surface, network node) need of the daemon, as interfaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from gonka_trainer.types import Digest


class Gpu(Protocol):
    """Who may use this host's GPUs now: training, unless somebody holds them. Holds are named; any one is enough.

    Who holds says so by a short fixed name ("proof of compute", "operator", "ml node"), and lifts it by the same.
    """

    def hold(self, who: str, why: str) -> None:
        """Take the GPUs from training at once: the worker checkpoints and ends. Repeating it changes the reason."""

    def lift(self, who: str) -> None:
        """Give them back, as far as this holder is concerned; nothing happens when it holds none."""

    @property
    def holds(self) -> Mapping[str, str]:
        """Return who holds the GPUs, and why."""

    @property
    def in_use(self) -> bool:
        """Whether a process of the worker is alive."""

    async def vacated(self) -> None:
        """Wait until no process of the worker is left; returns at once when there is none."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A run that is on chain, and whether this host takes part in it: `standing` is serving, agreed, refused or over.

    `why` says why it is refused, in words for the operator.
    """

    manifest_hash: Digest
    task_id: int
    author: str
    height: int
    url: str
    standing: str
    why: str


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Something that happened in the host: `kind` is one of a fixed few, `details` are plain values."""

    sequence: int
    time_seconds: float
    kind: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Operator(Protocol):
    """The daemon as its operator, or the network node in his place, drives it. UserError says what is wrong."""

    def status(self) -> Mapping[str, Any]:
        """Return what `status.json` of the served run says, and the daemon's standing: plain values, no secrets."""

    async def tasks(self) -> tuple[TaskLine, ...]:
        """Return the runs on chain that this host knows of, with their standing."""

    async def start(self, run: Digest) -> None:
        """Agree to a run, as `gonka-trainer join` does."""

    def pause(self, why: str) -> None:
        """Free the GPUs at once and stay a member: an unfinished round commits what it has."""

    def resume(self) -> None:
        """Take a pause or a drain back."""

    async def drain(self) -> None:
        """End the round in hand with what there is, commit it, train no more and free the GPUs; returns when free."""

    def stop(self) -> None:
        """End the daemon in order, as SIGTERM does."""

    def events(self) -> AbstractContextManager[AsyncIterator[HostEvent]]:
        """Give, while entered, the events from then on, in order.

        A reader that is too slow gets a `missed` event with the number of those that were dropped.
        """

    @property
    def wants_gpus(self) -> bool:
        """Whether there is something to train that the operator has not paused, whoever else holds the GPUs."""
