"""What the operator gave to enter runs by, and the task of a run: with both, no old block need be read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.carriers import run_log
from gonka_trainer.app.checkpoint_start import refuse_lost_history
from gonka_trainer.app.checkpoint_text import CheckpointText, parse_checkpoint, render_checkpoint
from gonka_trainer.app.opening import open_run_log
from gonka_trainer.chain.attribution import KvCarrier
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.runlog import KvRunLog
from gonka_trainer.chain.sender import Sender
from gonka_trainer.config import Config
from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.ports import RunLog
from gonka_trainer.round.naming import run_id
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.types import Digest, Height

_KV: Final = "kv"


def keep_checkpoint(data_dir: Path, run: Accepted, text: str) -> CheckpointText:
    """Keep a checkpoint for a run; ConfigError when it is of another run."""
    said = parse_checkpoint(text, "--checkpoint")
    if said.run_id != _run_id(run):
        raise ConfigError(
            f"the checkpoint is of run {said.run_id.hex()[:16]}, the manifest of run {_run_id(run).hex()[:16]}",
            "give a checkpoint that a host of this very run printed",
        )
    path = _path(data_dir, said.run_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: {error.strerror}", "name a data_dir that can be written") from error
    write_atomic(path, render_checkpoint(said).encode() + b"\n")
    return said


def checkpoint_for(config: Config, run: Accepted) -> CheckpointText | None:
    """Return the latest checkpoint that the operator gave for the run, by command or in `runs.checkpoints`."""
    wanted, path = _run_id(run), _path(config.data_path, _run_id(run))
    given = [parse_checkpoint(text, "runs.checkpoints") for text in config.runs.checkpoints]
    if path.exists():
        given.append(parse_checkpoint(path.read_text(errors="replace"), str(path)))
    return max((each for each in given if each.run_id == wanted), key=lambda each: each.checkpoint.height, default=None)


async def open_known_log(config: Config, chain: ChainClient, sender: Sender, run: Accepted) -> RunLog:
    """Return the run's log; the task on the kv carrier is read from the blocks only if nothing here names it."""
    folder = config.data_path / "runs" / _run_id(run).hex()[:16]
    said = checkpoint_for(config, run)
    task = known_task(folder) or (0 if said is None else said.task_id)
    if run.manifest.carrier == _KV and task:
        log = run_log(sender, KvCarrier(task, chain.prefix))
    else:
        if run.manifest.carrier == _KV:  # its task is in the first blocks
            await refuse_lost_history(chain, run.manifest.name, Height(run.manifest.log_height))
        log = await open_run_log(chain, sender, run.manifest, run.hash)
    if isinstance(log, KvRunLog):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "task", str(log.task_id).encode())
    return log


def known_task(folder: Path) -> int:
    """Return the run's task on the kv carrier as this host found it; 0 when there is none, or none is known."""
    try:
        text = (folder / "task").read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return 0
    return int(text) if text.isascii() and text.isdigit() else 0


def _run_id(run: Accepted) -> Digest:
    return run_id(run.manifest.chain_id, run.hash)


def _path(data_dir: Path, run: Digest) -> Path:
    return data_dir / "checkpoints" / f"{run.hex()[:16]}.txt"
