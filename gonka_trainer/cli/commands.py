"""All commands, put together."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gonka_trainer import __version__
from gonka_trainer.cli import (
    chain_command,
    checkpoint_command,
    control_commands,
    gpu_command,
    host_commands,
    key_commands,
    run_commands,
    schedule_command,
    spec_commands,
    task_commands,
    worker_command,
)
from gonka_trainer.cli.demo import command as demo_commands

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__, rich_markup_mode=None)
app.info.help = "DiLoCo training between hosts that do not trust each other, agreed over the Gonka chain."


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gonka-trainer {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def devnet(context: typer.Context) -> None:
    """Run a Gonka-compatible chain on this machine, for trying things out (`devnet --help` lists its flags)."""
    # A process of its own: the devnet and the daemon share nothing but the wire.
    os.execv(sys.executable, [sys.executable, "-m", "gonka_devnet", *context.args])  # noqa: S606


host_commands.register(app)
chain_command.register(app)
checkpoint_command.register(app)
control_commands.register(app)
run_commands.register(app)
demo_commands.register(app)
worker_command.register(app)
app.command()(gpu_command.gpu)
app.command()(schedule_command.schedule)
app.add_typer(task_commands.app, name="task", help="Training tasks, and how every run on chain stands with this host.")
app.add_typer(key_commands.app, name="keys", help="The account key of this host.")
app.add_typer(spec_commands.app, name="spec", help="Run manifests: make, check, hash.")
