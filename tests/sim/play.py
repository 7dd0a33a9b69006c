"""Play one seed and judge it; a failing one leaves a trace file that says everything needed to look at it."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .check import Findings, check, short
from .gaps import Broken
from .plan import Plan
from .seeds import plan_of
from .world import World

THROWN = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The core never raises: whatever it throws is a finding, with its seed."""


@dataclass
class Result:
    """The outcome of a world: `wrong` is empty when it is green; `text` is what to print when it is not."""

    seed: str
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    text: str = ""


def play(seed: int) -> Result:
    return play_plan(plan_of(seed))


def play_plan(plan: Plan) -> Result:
    world = World(plan)
    try:
        found = check(world.run())
    except THROWN as error:
        trace = traceback.format_exc().splitlines()
        found = Findings(wrong=[f"{type(error).__name__} at block {world.chain.tip}: {error}", *trace[-6:]])
        if isinstance(error, Broken):
            found.wrong = found.wrong[:1]
    result = Result(plan.seed, found.wrong, found.counts)
    if found.wrong:
        path = write_trace(world, found)
        lines = [f"seed {plan.seed}: {len(found.wrong)} findings (python -m tests.sim --seed {plan.seed}; {path})"]
        result.text = "\n".join(lines + [f"  {w}" for w in found.wrong[:8]])
    return result


def write_trace(world: World, found: Findings) -> Path:
    folder = Path(tempfile.gettempdir()) / "gonka-trainer-sim"
    folder.mkdir(exist_ok=True)
    path = folder / f"seed-{world.plan.seed}.txt"
    names = {h.participant: h.name for h in world.plan.hosts} | {h.key: h.name for h in world.plan.hosts}
    lines = [str(world.plan.params), str(world.plan.noise), *map(str, world.plan.hosts), *map(str, world.plan.actions)]
    lines += found.wrong
    for r in found.rounds:
        seats = " ".join(f"{names.get(a, short(a))}:{w}{'' if v else ' silent'}" for a, w, v in r.seats)
        lines.append(
            f"round {r.number} O={r.opened} T={r.deadline} close={r.closed} freeze={r.frozen} end={r.ended} "
            f"{'final ' + short(r.root) if r.final else 'void ' + r.reason} W={r.weight} [{seats}] "
            f"commits={[names.get(a) for a in r.commits]} included={[names.get(a) for a in r.included]} "
            f"dropped={[names.get(a) for a in r.dropped]} excluded={[names.get(a) for a in r.excluded]}"
        )
    for block in world.chain.blocks:
        for placed in block.records:
            who = names.get(placed.author, short(placed.author))
            lines.append(f"block {block.height}.{placed.transaction}.{placed.message} {who} {said(placed.record)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def said(record: object) -> str:
    values = {k: getattr(record, k) for k in record.__dataclass_fields__}  # type: ignore[attr-defined]
    return f"{type(record).__name__} " + " ".join(f"{k}={short(v)}" for k, v in values.items())
