"""What a worker holds while it lives: the manifest, the corpus and the model on its device."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from gonka_trainer.gradient.layout import Layout, layout_root
from gonka_trainer.jobs import Ready
from gonka_trainer.manifest import Manifest
from gonka_trainer.types import Digest
from gonka_trainer.worker.data import Corpus, open_corpus
from gonka_trainer.worker.model import build_model, check_layout

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Session:
    """Everything that jobs share. The model's values are those of the last job: every job loads its own."""

    manifest: Manifest
    layout: Layout
    layout_root: Digest
    corpus: Corpus
    model: nn.Module
    device: torch.device

    @property
    def ready(self) -> Ready:
        """What the worker says of itself."""
        return Ready(str(self.device), hardware_class(self.device), self.layout_root.hex(), os.getpid())


def open_session(manifest: Manifest, data: Path, threads: int) -> Session:
    """Check the corpus, build the model; ConfigError or WorkerError when this host cannot train the manifest's run."""
    started = time.monotonic()
    settle(threads)
    device = pick_device()
    corpus = open_corpus(data, manifest.data)
    layout = manifest.layout
    with torch.device("meta"):  # a stranger's configuration takes no memory before its parameters are those agreed to
        check_layout(build_model(manifest.model.config), layout)
    model = build_model(manifest.model.config)
    check_layout(model, layout)
    # FSDP2: `fully_shard` each block and then the model here, before the move to the device.
    model.to(device).train()
    _log.info("ready on %s after %.1f s", device, time.monotonic() - started)
    return Session(manifest, layout, layout_root(layout), corpus, model, device)


def settle(threads: int) -> None:
    """Make torch deterministic where it can be: the same inputs give the same bits on the same machine and settings."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = False


def pick_device() -> torch.device:
    """Return the GPU of this rank, or the CPU where there is none."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def hardware_class(device: torch.device) -> str:
    """Return what must be alike on two machines for a re-run to give the same bits, at most 128 bytes."""
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device).replace(" ", "-")
        text = f"cuda {name} {os.environ.get('WORLD_SIZE', '1')} torch-{torch.__version__}"
    else:
        level = torch.backends.cpu.get_cpu_capability()
        text = f"cpu {os.uname().machine} {level} threads-{torch.get_num_threads()} torch-{torch.__version__}"
    return "".join(c if c.isascii() and c.isprintable() else "-" for c in text)[:128]
