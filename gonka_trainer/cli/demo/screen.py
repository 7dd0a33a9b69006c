"""What the demo shows: live progress, the table at the end, the loss picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def live_table(statuses: dict[str, dict[str, Any]], seconds: float) -> Table:
    """Return the state of all hosts as a table."""
    table = Table(title=f"gonka-trainer demo, {seconds:.0f} s")
    columns = ("host", "block", "round", "phase", "inner step", "loss", "validation", "got", "transactions")
    for name in columns:
        table.add_column(name, justify="left" if name in {"host", "phase"} else "right")
    for name, s in statuses.items():
        got = f"{s.get('got_bytes', 0) / 1e6:.1f} MB"
        loss, validation = _number(s.get("loss")), _number(s.get("validation_loss"))
        step = f"{s['inner_step']}" if "inner_step" in s else ""
        row = (str(s.get("height", "")), str(s.get("round", "")), s.get("phase", "starting"), step, loss, validation)
        table.add_row(name, *row, got, str(s.get("transactions", 0)))
    return table


def line(statuses: dict[str, dict[str, Any]], seconds: float) -> str:
    """Return the state of all hosts as one line, for a log."""
    parts = [
        f"{name}: round {s.get('round', '-')} {s.get('phase', 'starting')} step {s.get('inner_step', '-')}"
        f" loss {_number(s.get('loss')) or '-'} tx {s.get('transactions', 0)} got {s.get('got_bytes', 0) / 1e6:.1f} MB"
        for name, s in statuses.items()
    ]
    return f"{seconds:4.0f} s  " + "; ".join(parts)


def result_table(report: dict[str, Any]) -> Table:
    """Return the rounds as a table that fits 80 columns."""
    before = _number(report["validation_loss"]["initial"])
    table = Table(title="rounds", caption=f"validation loss before round 0: {before}")
    for name in ("round", "outcome", "in", "steps", "train loss", "validation", "state root", "equal"):
        table.add_column(name, no_wrap=True)
    for r in report["rounds"]:
        hosts = r["hosts"].values()
        roots = {h["state_root"] for h in hosts if h["state_root"]}
        losses = [h["train_loss"] for h in hosts if h["train_loss"] is not None]
        table.add_row(
            str(r["round"]),
            r["outcome"],
            str(len(r["included"])),
            "/".join(str(h["inner_steps"]) for h in hosts),
            _number(sum(losses) / len(losses)) if losses else "",
            _number(r["validation_loss"]),
            (r["state_root"] or "")[:8],
            "yes" if len(roots) == 1 else "NO",
        )
    return table


def draw(path: Path, report: dict[str, Any], baseline: dict[str, Any] | None) -> None:
    """Draw validation loss by inner steps of each host, beside one host alone if that was run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    axes.plot(*_curve(report), marker="o", label=f"{len(report['hosts'])} hosts, DiLoCo (outer model)")
    if baseline is not None:
        axes.plot(*_curve(baseline), marker="s", linestyle="--", label="one host alone")
    axes.set_xlabel("inner steps of each host")
    axes.set_ylabel("validation loss, nats a byte")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def show(console: Console, report: dict[str, Any]) -> None:
    """Print the result."""
    console.print(result_table(report))
    losses = [loss for loss in report["validation_loss"].values() if loss is not None]
    equal = all(len({h["state_root"] for h in r["hosts"].values()} - {None}) == 1 for r in report["rounds"])
    agreed = "all hosts have the same state root in every round" if equal else "STATE ROOTS DIFFER"
    console.print(f"validation loss {losses[0]:.4f} -> {losses[-1]:.4f} nats a byte; {agreed}", soft_wrap=True)


def _curve(report: dict[str, Any]) -> tuple[list[int], list[float]]:
    losses = report["validation_loss"]
    points = [(0, losses["initial"])]
    points += [((int(r) + 1) * report["inner_steps"], loss) for r, loss in losses.items() if r != "initial"]
    found = [(x, y) for x, y in points if y is not None]
    return [x for x, _ in found], [y for _, y in found]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
