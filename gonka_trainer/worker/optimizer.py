"""AdamW, its schedule, and its state on disk between rounds."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from gonka_trainer.errors import StorageError
from gonka_trainer.manifest import InnerSpec
from gonka_trainer.types import Digest, lp, u32
from gonka_trainer.worker.flat import replacing
from gonka_trainer.worker.model import parameters_once

Tensors = dict[str, torch.Tensor]

_PARTS: Final = ("step", "exp_avg", "exp_avg_sq")
_TAG: Final = b"gonka-trainer/inner-optimizer/1"
_KEPT: Final = 2
_log = logging.getLogger(__name__)


def learning_rate(inner: InnerSpec, step: int) -> float:
    """Return the rate of the run's inner step `step`, from 0: linear warm-up, then half a cosine to `final_ratio`."""
    if step < inner.warmup_steps:
        return inner.learning_rate * (step + 1) / inner.warmup_steps
    done = min(1.0, (step - inner.warmup_steps) / max(1, inner.total_steps - inner.warmup_steps))
    return inner.learning_rate * (inner.final_ratio + (1 - inner.final_ratio) * 0.5 * (1 + math.cos(math.pi * done)))


def make_optimizer(model: nn.Module, inner: InnerSpec) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov and Hutter, arXiv:1711.05101) without state; only matrices decay."""
    parameters = [parameter for _, parameter in parameters_once(model)]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": inner.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=inner.learning_rate,
        betas=(inner.beta1, inner.beta2),
        eps=inner.epsilon,
        fused=parameters[0].device.type == "cuda",
    )


@dataclass(frozen=True)
class OptimizerStore:
    """The optimizer's states at the ends of rounds, one safetensors file each, the last two kept.

    A round starts from the newest state of an earlier round, never of itself, so a round that is trained again gives
    the same bits. safetensors orders its metadata at random, so the digest in it is over the tensors, not the file.
    """

    folder: Path
    layout_root: Digest

    def restore(self, optimizer: torch.optim.AdamW, model: nn.Module, round_number: int) -> int | None:
        """Load the newest state before the round and return its round; None, and said in the log, for a fresh start."""
        earlier = [number for number in self._rounds() if number < round_number]
        if not earlier:
            _log.info("round %d: the inner optimizer starts fresh", round_number)
            return None
        try:
            tensors = self._load(earlier[-1], _names(model))
        except StorageError as error:
            _log.warning("round %d: the inner optimizer starts fresh: %s", round_number, error)
            return None
        _put(optimizer, model, tensors)
        return earlier[-1]

    def restore_exactly(self, optimizer: torch.optim.AdamW, model: nn.Module, round_number: int, digest: str) -> None:
        """Load the state of this round, which `save` gave this digest; StorageError when it is another or not there."""
        tensors = self._load(round_number, _names(model))
        if self._digest(round_number, tensors) != digest:
            raise StorageError(f"{self._path(round_number)}: not the state that the unfinished round had")
        _put(optimizer, model, tensors)

    def save(self, optimizer: torch.optim.AdamW, model: nn.Module, round_number: int) -> str:
        """Write the state that the round ended with, remove what is no longer needed, and return its digest.

        StorageError when it cannot be written; an optimizer without state (no step was ever made) has no file and an
        empty digest.
        """
        tensors = _get(optimizer, model)
        if not tensors:
            return ""
        digest = self._digest(round_number, tensors)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(round_number)) as aside:
                save_file(tensors, aside, {"digest": digest})
            self._prune(round_number)
        except (OSError, SafetensorError) as error:
            raise StorageError(
                f"{self._path(round_number)}: cannot be written: {error}", "is the disk full?"
            ) from error
        return digest

    def _prune(self, round_number: int) -> None:
        """Keep the newest states up to the round; later ones are of rounds that will be trained again."""
        kept = [number for number in self._rounds() if number <= round_number][-_KEPT:]
        for number in self._rounds():
            if number not in kept:
                self._path(number).unlink()

    def _load(self, round_number: int, names: list[str]) -> Tensors:
        path = self._path(round_number)
        try:
            with safe_open(path, framework="pt") as file:
                digest = (file.metadata() or {}).get("digest")
                if set(file.keys()) != set(names):
                    raise StorageError(f"{path}: not this model's tensors")
                tensors = {name: file.get_tensor(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise StorageError(f"{path}: damaged: {error}") from error
        if digest != self._digest(round_number, tensors):
            raise StorageError(f"{path}: damaged, or of another layout or round")
        return tensors

    def _digest(self, round_number: int, tensors: Tensors) -> str:
        return tensors_digest(_TAG + self.layout_root + u32(round_number), tensors)

    def _rounds(self) -> list[int]:
        numbers = (path.stem.removeprefix("round-") for path in self.folder.glob("round-*.safetensors"))
        return sorted(int(number) for number in numbers if number.isascii() and number.isdigit())

    def _path(self, round_number: int) -> Path:
        return self.folder / f"round-{round_number:08d}.safetensors"


def tensors_digest(start: bytes, tensors: Tensors) -> str:
    """Return hex of SHA-256 over `start` and each tensor in order: name, type, shape, bytes."""
    state = hashlib.sha256(start)
    for name, tensor in tensors.items():
        state.update(lp(name.encode()) + lp(str(tensor.dtype).encode()) + lp(str(tuple(tensor.shape)).encode()))
        state.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def _names(model: nn.Module) -> list[str]:
    return [f"{part}.{name}" for name, _ in parameters_once(model) for part in _PARTS]


def _get(optimizer: torch.optim.AdamW, model: nn.Module) -> Tensors:
    """Return every state tensor in the layout's order; empty when no step was ever made."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in _states(optimizer, model)}


def _states(optimizer: torch.optim.AdamW, model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in parameters_once(model):
        for part in _PARTS if optimizer.state[parameter] else ():
            yield f"{part}.{name}", optimizer.state[parameter][part]


def _put(optimizer: torch.optim.AdamW, model: nn.Module, tensors: Tensors) -> None:
    """Give every parameter its state; AdamW keeps the step count on the host unless it is fused."""
    for name, parameter in parameters_once(model):
        state = {part: tensors[f"{part}.{name}"].to(parameter.device) for part in _PARTS}
        if parameter.device.type != "cuda":
            state["step"] = state["step"].cpu()
        optimizer.state[parameter] = state
