"""Commands of a host's operator: run, status, join, leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gonka_trainer.app.accepted import AcceptedRuns
from gonka_trainer.app.checkpoint_store import keep_checkpoint
from gonka_trainer.app.daemon import run_daemon
from gonka_trainer.app.keys import open_account
from gonka_trainer.app.leaving import publish_record
from gonka_trainer.app.opening import acting_for
from gonka_trainer.app.rules import parse_address, round_params
from gonka_trainer.cli.options import (
    DEFAULT_CONFIG,
    ConfigPath,
    host_config,
    parse_hash,
    read_manifest,
    run_async,
    start_logging,
)
from gonka_trainer.config import Config
from gonka_trainer.errors import ConfigError
from gonka_trainer.round.records import Leave

Manifest = Annotated[str, typer.Argument(help="A manifest's file, or its hash.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (run, status, join, leave):
        app.command()(command)


def run(
    config: ConfigPath = DEFAULT_CONFIG,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Run the host's daemon until it is stopped."""
    start_logging(verbose)
    run_async(run_daemon(host_config(config)))


def status(
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Show where the host's runs stand, from what the daemon last wrote."""
    found = _statuses(host_config(config))
    if as_json:
        typer.echo(json.dumps(found))
        return
    if not found:
        typer.echo("no run yet: `gonka-trainer join MANIFEST` agrees to one, `gonka-trainer run` starts the daemon")
        return
    for each in found:
        Console().print(_table(each))


def join(
    manifest: Manifest,
    config: ConfigPath = DEFAULT_CONFIG,
    checkpoint: Annotated[
        str, typer.Option(help="Enter the run here, without its history: what `checkpoint` printed on its hosts.")
    ] = "",
) -> None:
    """Agree to a run: the daemon joins it as soon as it is on chain."""
    settings = host_config(config)
    path = Path(manifest)
    if not path.exists():
        if checkpoint:
            raise ConfigError("a checkpoint needs the manifest's document", "give the manifest's file, not its hash")
        run_hash = parse_hash(manifest)
        AcceptedRuns(settings.data_path).agree(run_hash)
        typer.echo(f"agreed to {run_hash.hex()}: the daemon gets the manifest from the run's hosts")
        return
    run_ = read_manifest(path)
    if settings.chain.chain_id and run_.manifest.chain_id != settings.chain.chain_id:
        raise ConfigError(
            f"{path} is a run on chain {run_.manifest.chain_id}, this host is on {settings.chain.chain_id}",
            "join runs of your own chain",
        )
    round_params(run_.manifest, run_.hash, settings.chain.prefix)
    if checkpoint:
        said = keep_checkpoint(settings.data_path, run_, checkpoint).checkpoint
        typer.echo(f"enters at round {said.round}, after block {said.height}, if its own journal does not go on")
    AcceptedRuns(settings.data_path).add(run_)
    typer.echo(f"agreed to run {run_.manifest.name}, manifest {run_.hash.hex()}")


def leave(manifest: Manifest, config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Leave a run at its next round: says so on chain, and keeps the daemon from joining again."""
    settings = host_config(config)
    path = Path(manifest)
    run_hash = read_manifest(path).hash if path.exists() else parse_hash(manifest)
    runs = AcceptedRuns(settings.data_path)
    run_ = runs.get(run_hash)
    runs.leave(run_hash)
    if run_ is None:
        typer.echo("marked as left; this host never had the manifest, so it never joined: nothing to say on chain")
        return
    key, named = open_account(settings.keys), settings.keys.participant
    participant = parse_address(named, settings.chain.prefix, "keys.participant") if named else key.address
    folder = settings.data_path / "sent-by-hand"
    acts_for = acting_for(settings, key)
    work = publish_record(settings.chain, folder, key, run_, lambda height: Leave(participant, height), acts_for)
    receipt = run_async(work)
    typer.echo(f"left at block {receipt.height}: {receipt.tx_hash}")


def _statuses(config: Config) -> list[dict[str, Any]]:
    paths = sorted((config.data_path / "runs").glob("*/status.json"))
    return [json.loads(path.read_text()) for path in paths]


def _table(values: dict[str, Any]) -> Table:
    table = Table(title=f"run {values['run'][:16]}", show_header=False)
    for name, value in values.items():
        table.add_row(name.replace("_", " "), Text(_shown(value)))  # as it is: brackets are no markup
    return table


def _shown(value: Any) -> str:
    """Return a value of the status for a person: nothing known, or nobody, is a dash."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {each}" for key, each in value.items()) or "-"
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
