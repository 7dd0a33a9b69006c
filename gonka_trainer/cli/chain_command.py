"""`gonka-trainer chain`: what the chain is, and what this host will use of it."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gonka_trainer.app.discovering import as_json, discover_chain, rows, signer_of, warnings
from gonka_trainer.app.keys import account_path
from gonka_trainer.chain.keys import describe_key
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, run_async


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(chain)


def chain(
    config: ConfigPath = DEFAULT_CONFIG,
    json_: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Show what the chain's nodes say of the chain, and what this host will use of it."""
    settings = host_config(config)
    signer = signer_of(settings, describe_key(account_path(settings.keys))[0].address)
    found = run_async(discover_chain(settings))
    if json_:
        typer.echo(json.dumps(as_json(settings, found, signer)))
        return
    table = Table(show_header=False)
    for name, text in rows(settings, found, signer).items():
        table.add_row(name, Text(text))
    Console().print(table)
    for text in warnings(settings, found):
        typer.echo(f"mind: {text}")
