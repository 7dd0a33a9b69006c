"""`gonka-trainer keys grants`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.key_grants import Finding, find_grants
from gonka_trainer.app.keys import account_path
from gonka_trainer.app.opening import open_client
from gonka_trainer.chain.keys import describe_key
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, read_manifest, run_async
from gonka_trainer.config import Config
from gonka_trainer.types import Address


def grants(
    manifests: Annotated[list[Path] | None, typer.Argument(help="Runs to look up delegate records in.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Say what the daemon's key may do and what it lacks, with the commands that grant it; status 1 if it lacks."""
    settings = host_config(config)
    key = describe_key(account_path(settings.keys))[0].address
    runs = {str(path): read_manifest(path) for path in manifests or []}
    findings = run_async(_find(settings, key, runs))
    for found in findings:
        typer.echo(f"{'ok     ' if found.good else 'MISSING'} {found.what}")
        for line in found.command.splitlines():
            typer.echo(f"        {line}")
    if not all(found.good for found in findings):
        raise typer.Exit(1)


async def _find(settings: Config, key: Address, runs: dict[str, Accepted]) -> list[Finding]:
    async with open_client(settings.chain) as client:
        return await find_grants(client, settings, key, runs)
