"""`gonka-trainer checkpoint`: where a new host may start, as one line of text."""

from __future__ import annotations

from typing import Annotated

import typer

from gonka_trainer.app.checkpoint_own import own_checkpoint
from gonka_trainer.app.checkpoint_text import render_checkpoint
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, parse_hash


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(checkpoint)


def checkpoint(
    run: Annotated[str, typer.Argument(help="The manifest's hash; not needed where the host is in one run.")] = "",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Print where a new host may enter the run without its history, for `gonka-trainer join --checkpoint`.

    Compare the part before the @ with that of another host: whoever starts from it trusts it.
    """
    typer.echo(render_checkpoint(own_checkpoint(host_config(config), parse_hash(run) if run else None)))
