"""Commands to the daemon that runs: pause, resume, drain, stop, events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gonka_trainer.app.services import control_socket
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, run_async
from gonka_trainer.control.client import open_control
from gonka_trainer.text import printable

Why = Annotated[str, typer.Option(help="Why, for the status and the log.")]
Kind = Annotated[list[str] | None, typer.Option(help="Only events of this kind, repeated; none: all.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, one event a line.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume, drain, stop, events):
        app.command()(command)


def pause(config: ConfigPath = DEFAULT_CONFIG, why: Why = "") -> None:
    """Free the GPUs at once and stay a member; `resume` takes it back, a restart does not."""
    run_async(_pause(_socket(config), why))
    typer.echo("paused: the GPUs are free, or will be as soon as the worker has kept its round")


def resume(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Train again after a pause or a drain."""
    run_async(_resume(_socket(config)))
    typer.echo("resumed")


def drain(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """End the round in hand with what there is, commit it, free the GPUs; waits until they are free."""
    run_async(_drain(_socket(config)))
    typer.echo("drained: the GPUs are free until `gonka-trainer resume`")


def stop(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """End the daemon in order, as SIGTERM does."""
    run_async(_stop(_socket(config)))
    typer.echo("the daemon ends")


def events(config: ConfigPath = DEFAULT_CONFIG, kind: Kind = None, as_json: AsJson = False) -> None:
    """Show what happens in the daemon from now on, until interrupted or until it ends."""
    run_async(_events(_socket(config), kind or [], as_json))


def _socket(config: Path) -> Path:
    return control_socket(host_config(config))


async def _pause(socket: Path, why: str) -> None:
    async with open_control(socket) as daemon:
        await daemon.pause(why)


async def _resume(socket: Path) -> None:
    async with open_control(socket) as daemon:
        await daemon.resume()


async def _drain(socket: Path) -> None:
    async with open_control(socket) as daemon:
        await daemon.drain()


async def _stop(socket: Path) -> None:
    async with open_control(socket) as daemon:
        await daemon.stop()


async def _events(socket: Path, kinds: list[str], as_json: bool) -> None:
    async with open_control(socket) as daemon:
        async for event in daemon.events(kinds):
            typer.echo(json.dumps(event) if as_json else _line(event))


def _line(event: dict[str, Any]) -> str:
    details = " ".join(f"{name}={_plain(value)}" for name, value in sorted(event["details"].items()))
    return f"{event['sequence']:>6} {event['kind']:<12} {details}"


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return printable(str(value))
