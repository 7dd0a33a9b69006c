"""Plant a fault in a copy of the core, play cases and seeds against the copy, and see what kills it.

`python -m tests.sim.mutants [--only TEXT] [--seeds N]` prints which seed and which case kills which mutant.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .mutant import Mutant
from .mutant_list import MUTANTS

ROOT: Final = Path(__file__).resolve().parents[2]
PARTS: Final = ("__init__.py", "types.py", "errors.py", "round")
SEEDS: Final = 60
CASES: Final = tuple(f"tests/sim/test_{name}.py" for name in ("cases", "members", "worlds", "checkpoints"))


@dataclass(frozen=True)
class Death:
    """What killed a mutant: the first seed, and the hand-made cases; both empty when it lives."""

    seed: str = ""
    cases: tuple[str, ...] = ()

    @property
    def dead(self) -> bool:
        return bool(self.seed or self.cases)


def plant(mutant: Mutant, folder: Path) -> None:
    """Copy the core and the simulation, with the mutant's patches; AssertionError if a pattern is not there once."""
    skip = shutil.ignore_patterns("__pycache__")
    (folder / "gonka_trainer").mkdir()
    for part in PARTS:
        source, target = ROOT / "gonka_trainer" / part, folder / "gonka_trainer" / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=skip)
        else:
            shutil.copy(source, target)
    shutil.copytree(Path(__file__).parent, folder / "tests" / "sim", ignore=skip)
    for patch in mutant.patches:
        path = folder / patch.file
        text = path.read_text()
        assert text.count(patch.old) == 1, f"{mutant.name}: {patch.file} has the pattern {text.count(patch.old)} times"
        path.write_text(text.replace(patch.old, patch.new))


def run_in(folder: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TMPDIR": str(folder),
    }
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def refuse(text: str) -> None:
    """A mutant that is no program is no mutant."""
    for error in ("NameError", "SyntaxError", "ImportError", "UnboundLocalError"):
        if error in text:
            raise RuntimeError(text)


def die_by_cases(folder: Path, first: bool) -> tuple[str, ...]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: slow\n")
    stop = ("-x",) if first else ()
    plain = ("-q", "--tb=line", "-p", "no:cacheprovider", "-rfE")
    text = run_in(folder, "-m", "pytest", *plain, *stop, "-m", "not slow", *CASES)
    refuse(text)
    failed = [line.split()[1] for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed and " passed" not in text:
        raise RuntimeError(text)
    return tuple(name.rsplit("::", 1)[-1] for name in failed)


def die_by_seeds(folder: Path, seeds: int) -> str:
    text = run_in(folder, "-m", "tests.sim", "--seeds", f"0-{seeds - 1}", "--first")
    if " seeds, " not in text:
        raise RuntimeError(text)
    refuse(text)
    found = [line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith("seed ")]
    return found[0] if found else ""


def kill(mutant: Mutant, seeds: int = SEEDS, everything: bool = False) -> Death:
    """Hand-made cases first, for they are quick; then seeds. `everything`: both, and all the cases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plant(mutant, folder)
        cases = die_by_cases(folder, first=True)
        seed = die_by_seeds(folder, seeds) if seeds and (everything or not cases) else ""
        return Death(seed, cases)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutants")
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    chosen = parser.parse_args()
    alive = []
    for mutant in MUTANTS:
        if chosen.only not in mutant.name:
            continue
        death = kill(mutant, chosen.seeds, everything=True)
        if not death.dead:
            alive.append(mutant.name)
        cases = f"{len(death.cases)} cases" + (f" ({death.cases[0]})" if death.cases else "")
        print(f"{mutant.name:55s} seed {death.seed or '-':4s} {cases}", flush=True)
    print(f"{len(MUTANTS)} mutants, alive: {alive}")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
