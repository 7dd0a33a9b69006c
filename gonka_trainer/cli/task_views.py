"""How tasks are shown in the terminal."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gonka_trainer.app.tasklist import Listed
from gonka_trainer.chain.hardware import Hardware, Match
from gonka_trainer.chain.tasks import Task


def stands(task: Task) -> str:
    """Return who asked for the task, claimed and assigned it, a line each."""
    lines = [f"  requested by {task.requested_by} in block {task.created}"]
    if task.assigner:
        lines.append(f"  last claimed by {task.assigner} in block {task.claimed} (anybody may claim over it)")
    if task.assigned:
        lines.append(f"  assigned in block {task.assigned}:")
        lines += [f"    {participant}: {', '.join(nodes)}" for participant, nodes in task.assignees]
    else:
        lines.append("  assigned to nobody yet")
    return "\n".join(lines)


def summary(each: Listed) -> str:
    """Return a run or task with its standing, and why, in a few lines."""
    facts = each.document()
    name = f"manifest {facts['manifest']}" if facts["manifest"] else f"task {each.task.id if each.task else 0}"
    lines = [f"{facts['standing']}: {name}"]
    if facts["why"]:
        lines.append(f"  {facts['why']}")
    task = f"task {each.task.id}, " if each.task and facts["manifest"] else ""
    if facts["height"]:
        lines.append(f"  {task}requested by {facts['requester']} in block {facts['height']}")
    if each.task and each.task.assignees:
        lines.append(f"  assigned to {', '.join(participant for participant, _ in each.task.assignees)}")
    if each.task and each.task.hardware:
        own = f"; your nodes with some of it: {', '.join(each.nodes)}" if each.nodes else "; you have none of it"
        lines.append(f"  asks for {hardware_text(each.task.hardware)}{own}")
    return "\n".join(lines)


def print_matches(found: tuple[Match, ...]) -> None:
    """Print which participants have the hardware that a task asks for."""
    if not found:
        typer.echo("no participant has registered hardware for it")
        return
    table = Table("participant", "nodes", "has of it", "enough alone", title="hardware for it", title_justify="left")
    for each in found:
        table.add_row(
            Text(each.participant),
            Text(", ".join(each.node_ids)),
            Text(hardware_text(each.has)),
            "yes" if each.suffices else "no",
        )
    Console().print(table)


def hardware_text(hardware: tuple[Hardware, ...]) -> str:
    """Return hardware as people write it."""
    return ", ".join(f"{count} x {kind}" for kind, count in hardware)
