"""A round that was interrupted, on disk: all that it takes to go on to the bits that an uninterrupted one ends with.

Parameters, generators and the place in the round are in one file of their own; the optimizer's state is in the
optimizer store, as at the end of a round, and named by its digest. What was read is read and digested again.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from gonka_trainer.errors import StorageError
from gonka_trainer.jobs import Train
from gonka_trainer.types import Digest
from gonka_trainer.worker.flat import replacing
from gonka_trainer.worker.model import parameters_once
from gonka_trainer.worker.optimizer import OptimizerStore, Tensors, tensors_digest

_TAG: Final = b"gonka-trainer/unfinished-round/1"
_PARAMETER: Final = "parameter."
_GENERATOR: Final = "generator.cpu"
_CUDA_GENERATOR: Final = "generator.cuda"
_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """What a round has come to: steps made and skipped, and the losses of those made."""

    made: int = 0
    skipped: int = 0
    loss_sum: float = 0.0
    last_loss: float = 0.0

    def add(self, loss: float) -> None:
        """Count a step that was made."""
        self.made += 1
        self.loss_sum += loss
        self.last_loss = loss

    @property
    def step(self) -> int:
        """The round's next step, from 0."""
        return self.made + self.skipped


@dataclass(frozen=True)
class UnfinishedStore:
    """One round's file at most. `optimizers` keeps the other half."""

    folder: Path
    layout_root: Digest
    optimizers: OptimizerStore

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "unfinished.safetensors"

    def save(self, job: Train, model: torch.nn.Module, optimizer: torch.optim.AdamW, tally: Tally) -> None:
        """Keep the round as it stands between two steps; StorageError when the disk refuses."""
        self.clear()
        place = _place(job) | asdict(tally) | {"optimizer": self.optimizers.save(optimizer, model, job.round)}
        text, tensors = json.dumps(place), _tensors(model)
        facts = {"place": text, "digest": self._digest(text, tensors)}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as aside:
                save_file(tensors, aside, facts)
        except (OSError, SafetensorError) as error:
            raise StorageError(f"{self.path}: cannot be written: {error}", "is the disk full?") from error

    def restore(self, job: Train, model: torch.nn.Module, optimizer: torch.optim.AdamW) -> Tally | None:
        """Put model, optimizer and generators where the round stood; None when this round was not interrupted.

        What is damaged is told in the log, and the round begins again from its base.
        """
        if not self.path.exists():
            return None
        try:
            place, tensors = self._load(model)
            if {key: place.get(key) for key in _place(job)} != _place(job):
                return None
            self.optimizers.restore_exactly(optimizer, model, job.round, place["optimizer"])
            _put(model, tensors)
            return Tally(place["made"], place["skipped"], place["loss_sum"], place["last_loss"])
        except StorageError as error:
            _log.warning("round %d: begins again: %s", job.round, error)
            optimizer.state.clear()
            return None

    def clear(self) -> None:
        """Forget it: the round is done, or another one begins. What cannot be removed is no other round's."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _load(self, model: torch.nn.Module) -> tuple[dict[str, Any], Tensors]:
        names = list(_tensors(model))
        try:
            with safe_open(self.path, framework="pt") as file:
                facts = file.metadata() or {}
                if set(file.keys()) != set(names):
                    raise StorageError(f"{self.path}: not this model's tensors")
                tensors = {name: file.get_tensor(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise StorageError(f"{self.path}: damaged: {error}") from error
        text = facts.get("place", "")
        if facts.get("digest") != self._digest(text, tensors):
            raise StorageError(f"{self.path}: damaged, or of another layout")
        place: dict[str, Any] = json.loads(text)  # this program wrote it, as the digest says
        return place, tensors

    def _digest(self, place: str, tensors: Tensors) -> str:
        return tensors_digest(_TAG + self.layout_root + place.encode(), tensors)


def _place(job: Train) -> dict[str, Any]:
    """Return what makes it the same round: how many steps it has does not matter, nor where its result goes."""
    return {
        "round": job.round,
        "participant": job.participant,
        "base_root": job.base_root,
        "first_step": job.first_step,
    }


def _tensors(model: torch.nn.Module) -> Tensors:
    """Return the parameters in the layout's order, then torch's generators."""
    tensors = {_PARAMETER + name: parameter.detach().cpu().contiguous() for name, parameter in parameters_once(model)}
    tensors[_GENERATOR] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors[_CUDA_GENERATOR] = torch.cuda.get_rng_state()
    return tensors


def _put(model: torch.nn.Module, tensors: Tensors) -> None:
    with torch.no_grad():
        for name, parameter in parameters_once(model):
            parameter.copy_(tensors[_PARAMETER + name])
    torch.set_rng_state(tensors[_GENERATOR])
    if _CUDA_GENERATOR in tensors:
        torch.cuda.set_rng_state(tensors[_CUDA_GENERATOR])
