"""`gonka-trainer gpu`: how this host shares its GPUs, and what the network node's admin API says of its ML nodes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gonka_trainer.app.sharing import ml_nodes
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, run_async
from gonka_trainer.network_node.admin import MlNode
from gonka_trainer.network_node.drained import effects
from gonka_trainer.text import printable


def gpu(
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show how the GPUs are shared, the network node's ML nodes, and what taking one out of service would cost."""
    settings = host_config(config).gpu
    nodes = run_async(ml_nodes(settings)) if settings.admin_url else ()
    if as_json:
        typer.echo(json.dumps({"mode": settings.mode, "nodes": [asdict(node) for node in nodes]}))
        return
    typer.echo(f"gpu.mode = {settings.mode}")
    if nodes:
        Console().print(_table(nodes))
    for node in nodes:
        if node.id == settings.node and node.enabled:
            agreed = "agreed to by gpu.accept_lost_epoch" if settings.accept_lost_epoch else "not agreed to"
            typer.echo(f"{effects(node)} ({agreed})")


def _table(nodes: tuple[MlNode, ...]) -> Table:
    table = Table("ML node", "enabled", "intended", "does", "locks", "PoC weight")
    for node in nodes:
        row: list[Any] = [node.id, "yes" if node.enabled else f"no, since epoch {node.admin_epoch}"]
        row += [node.intended_status, node.current_status, node.lock_count, node.poc_weight]
        table.add_row(*(Text(printable(str(cell), 60)) for cell in row))
    return table
