"""`gonka-trainer schedule`: the coming epoch as a picture."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from gonka_trainer.app.coming import Coming, RoundPlan, look_ahead
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, read_manifest, run_async
from gonka_trainer.text import printable

_LABEL: Final = 8
_LEAST_COLUMNS: Final = 16
_POC, _CONFIRMATION, _LEAD, _NOTHING, _NOW = "█", "▓", "░", "·", "▲"
_TRAIN, _ATTEST, _STATE, _OPENS = "━", "a", "s", "┣"
_STYLES: Final = {_POC: "red", _CONFIRMATION: "magenta", _LEAD: "yellow", _TRAIN: "green", _OPENS: "green"}


def schedule(
    manifest: Annotated[Path | None, typer.Argument(help="A run manifest; without it, the run that is served.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Show the coming epoch: when proof of compute wants the GPUs, and the rounds that are to be expected."""
    coming = run_async(look_ahead(host_config(config), None if manifest is None else read_manifest(manifest)))
    if as_json:
        typer.echo(json.dumps(asdict(coming)))
    else:
        draw(coming, Console())


def draw(coming: Coming, console: Console) -> None:
    """Print the picture, as wide as the terminal lets it be."""
    _say(console, f"{printable(coming.chain_id, 48)}, epoch {coming.epoch}, block {coming.height}", coming)
    if coming.windows or coming.run is not None:
        for line in picture(coming, max(_LEAST_COLUMNS, min(console.width, 160) - _LABEL)):
            console.print(line, no_wrap=True, overflow="crop", soft_wrap=False)
    for text in (*facts(coming), *_legend(coming)):
        console.print(text, markup=False, highlight=False)


def _say(console: Console, text: str, coming: Coming) -> None:
    pace = f", {coming.block_seconds:.2f} s a block" if coming.block_seconds else ""
    console.print(text + pace, markup=False, highlight=False)


def picture(coming: Coming, columns: int) -> list[Text]:
    """Return the rows: proof of compute with the lead before it, the run's rounds, now, heights and minutes."""
    scale = _Scale(coming.first, coming.end, columns)
    rows = [_row("PoC", scale.cells(lambda first, last: _gpu(coming, first, last)))]
    if coming.run is not None:
        rounds = coming.run.rounds
        rows.append(_row("rounds", scale.cells(lambda first, last: _round(rounds, first, last))))
    now = scale.column(coming.height)
    rows.append(_row("now", " " * now + _NOW))
    marks = sorted({coming.first, coming.height, *(window.start for window in coming.windows), coming.end - 1})
    rows.append(_row("block", scale.labels([(mark, str(mark)) for mark in marks])))
    if coming.block_seconds:
        times = [(mark, f"{coming.minutes(mark):+.0f}" if mark != coming.height else "0") for mark in marks]
        rows.append(_row("minutes", scale.labels(times)))
    return rows


def facts(coming: Coming) -> list[str]:
    """Return what the picture cannot say exactly, a sentence each."""
    said = ["" if coming.windows else "This chain has no scheduled proof of compute."]
    for window in coming.windows:
        kind = "Confirmation PoC" if window.confirmation else "PoC"
        said.append(f"{kind}: blocks {window.start} to {window.end - 1} ({_when(coming, window.start, window.end)}).")
    if coming.lead_blocks:
        said.append(
            f"The worker is told to leave {coming.lead_blocks} blocks before a PoC ({_LEAD}): a stop takes "
            f"{coming.stop_seconds:.1f} s."
        )
    elif coming.windows:
        said.append("The GPUs are not shared with proof of compute (gpu.mode): training goes on through it.")
    run = coming.run
    if run is not None:
        count = len(run.rounds)
        span = f"{count}" if run.fewest >= count else f"{run.fewest} to {count}"
        said.append(f"Run {printable(run.name, 60)}: {span} rounds open before block {coming.end}.")
        said += [_first_round(coming, run.rounds[0])] if run.rounds else []
    return [text for text in said if text]


def _legend(coming: Coming) -> list[str]:
    """Return what the signs of the rounds mean."""
    return [f"{_OPENS} opens, {_TRAIN} trains, {_ATTEST} attests, {_STATE} states."] if coming.run is not None else []


def _first_round(coming: Coming, first: RoundPlan) -> str:
    minutes = coming.minutes(first.trained)
    left = f", in {minutes:.0f} min" if minutes > 0 else ""
    return f"Round {first.number}: trains until block {first.trained}{left}, over at block {first.ended} or later."


def _when(coming: Coming, start: int, end: int) -> str:
    if not coming.block_seconds:
        return f"{start - coming.height:+d} blocks"
    if start <= coming.height < end:
        return f"now, {coming.minutes(end):.1f} min left"
    minutes = coming.minutes(start)
    return f"in {minutes:.1f} min" if minutes > 0 else f"{-minutes:.1f} min ago"


def _gpu(coming: Coming, first: int, last: int) -> str:
    """Return the sign of the blocks first to last: whatever of them matters most."""
    touched = [w for w in coming.windows if w.start <= last and first < w.end]
    if touched:
        return _CONFIRMATION if all(w.confirmation for w in touched) else _POC
    planned = [w for w in coming.windows if not w.confirmation and coming.lead_blocks]
    leads = any(w.start - coming.lead_blocks <= last and first < w.start for w in planned)
    return _LEAD if leads else _NOTHING


def _round(rounds: tuple[RoundPlan, ...], first: int, last: int) -> str:
    if any(first <= plan.opened <= last for plan in rounds):
        return _OPENS
    middle = (first + last) // 2
    for plan in rounds:
        if plan.opened <= middle <= plan.ended:
            return _TRAIN if middle <= plan.trained else _ATTEST if middle <= plan.attested else _STATE
    return _NOTHING


class _Scale:
    """Blocks first <= h < end over a number of columns."""

    def __init__(self, first: int, end: int, columns: int) -> None:
        self._first = first
        self._blocks = max(1, end - first)
        self._columns = columns

    def column(self, height: int) -> int:
        """Return the column in which a block is, the nearest one for a block outside."""
        return min(max((height - self._first) * self._columns // self._blocks, 0), self._columns - 1)

    def cells(self, sign: Callable[[int, int], str]) -> str:
        """Return a sign for each column, given its first and last block."""
        edges = [self._first + self._blocks * i // self._columns for i in range(self._columns + 1)]
        return "".join(sign(first, max(first, after - 1)) for first, after in itertools.pairwise(edges))

    def labels(self, marks: list[tuple[int, str]]) -> str:
        """Return texts at their columns; one that has no room is left out, the last one ends at the edge."""
        line = ""
        for height, text in marks:
            at = min(self.column(height), self._columns - len(text))
            if at >= len(line) + (1 if line else 0):
                line = line.ljust(at) + text
        return line


def _row(label: str, cells: str) -> Text:
    row = Text(label.ljust(_LABEL), style="bold")
    for cell in cells:
        row.append(cell, style=_STYLES.get(cell, "not bold"))
    return row
