"""Which of a host's machines this is: the daemon is on machine 0, an agent of the worker on every other one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gonka_trainer.config import Config, WorkerConfig
from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.trainer.rendezvous import Rendezvous, read_rendezvous, run_agent


def own_rendezvous(worker: WorkerConfig, environment: Mapping[str, str] = os.environ) -> Rendezvous | None:
    """Return where the daemon's worker meets the other machines, None without any; ConfigError unless this is 0."""
    if worker.rendezvous == "standalone":
        return None
    found = read_rendezvous(environment)
    if found.node_rank != 0:
        raise ConfigError(
            f"NODE_RANK={found.node_rank}: the daemon runs on machine 0 of {found.nodes}",
            "run `gonka-trainer worker` on this machine",
        )
    return found


async def run_worker_machine(config: Config, environment: Mapping[str, str] = os.environ) -> None:
    """Be one of a host's other machines, until cancelled; ConfigError on machine 0, or where there is only one."""
    if config.worker.rendezvous != "environment":
        raise ConfigError(
            f'worker.rendezvous is "{config.worker.rendezvous}": this host has one machine, and `gonka-trainer run` '
            "starts its worker",
            'set worker.rendezvous = "environment" on all machines of the host',
        )
    found = read_rendezvous(environment)
    if found.node_rank == 0:
        raise ConfigError("NODE_RANK=0: this is the daemon's machine", "run `gonka-trainer run` on this machine")
    worker, folder = config.worker, config.data_path
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"data_dir {folder}: {error.strerror}", "name a folder that can be written") from error
    log = folder / f"worker-{found.node_rank}.log"
    await run_agent(found, Path(worker.data), worker.processes, worker.threads, log)
