"""`gonka-trainer worker`: what the other machines of a host run (docs/trainshards.md)."""

from __future__ import annotations

from typing import Annotated

import typer

from gonka_trainer.app.machines import run_worker_machine
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, run_async, start_logging


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(worker)


def worker(
    config: ConfigPath = DEFAULT_CONFIG,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Run the worker's agent on a machine other than the daemon's: NODE_RANK, NNODES, MASTER_ADDR, MASTER_PORT."""
    start_logging(verbose)
    run_async(run_worker_machine(host_config(config)))
