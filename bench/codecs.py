"""Bytes, errors and times of every codec, on real pseudo-gradients of the demo's tiny Llama.

    python bench/codecs.py [--rounds 8] [--hosts 2] [--repeats 15] [--gradients FOLDER]

A process of its own trains (`pseudo_gradients.py`), into a temporary folder unless one that it filled before is given.

Relative error is |decoded - gradient| / |gradient| in the 2-norm: of a round (mean over the rounds), and of the sum of
all rounds, with and without error feedback: what the receivers have got in the end, against what was to be sent.
Times are of one chunk of 2**19 elements, one thread, everything in turn and the fastest of each kept, as ratios to
int8's in the same run. The step is of four hosts. Prints two tables and writes a dated file to bench/results/.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from gonka_trainer.gradient.arithmetic import prove_default_mode
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.codec import Codec, codec
from gonka_trainer.gradient.feedback import compensated, left_over

RESULTS = Path(__file__).parent / "results"
NAMES = ("f32", "bf16", "int8", "int4", "topk")
CHUNK = 1 << 19
HOSTS = 4
REFERENCE = "int8"


class Gradients:
    """The pseudo-gradients of one host, round by round, and how they are cut."""

    def __init__(self, folder: Path) -> None:
        self.sizes: dict[str, int] = json.loads((folder / "layout.json").read_text())
        self.rounds = [np.fromfile(folder / f"gradient-{i}.f32", "<f4") for i in range(self.sizes["rounds"])]

    def cuts(self, vector: F32) -> list[F32]:
        size = self.sizes["chunk_elements"]
        return [vector[start : start + size] for start in range(0, vector.size, size)]


def through(each: Codec, work: Gradients, values: F32) -> tuple[F32, int]:
    """Return what a vector decodes to, and its bytes."""
    payloads = [(each.encode(chunk)[0], chunk.size) for chunk in work.cuts(values)]
    decoded = np.concatenate([each.decode(payload, size) for payload, size in payloads])
    return decoded, sum(len(payload) for payload, _ in payloads)


def relative(got: F32, wanted: F32) -> float:
    difference = np.subtract(got, wanted, dtype=np.float64)
    return float(np.linalg.norm(difference) / np.linalg.norm(wanted.astype(np.float64)))


def errors(each: Codec, work: Gradients) -> dict[str, Any]:
    """Send all rounds, with and without feedback."""
    wanted = np.sum(work.rounds, axis=0, dtype=np.float64)
    residual = np.zeros_like(work.rounds[0])
    alone, fed, singles, size_bytes = np.zeros(wanted.size), np.zeros(wanted.size), [], 0
    by_round = []
    for number, gradient in enumerate(work.rounds):
        decoded, size_bytes = through(each, work, gradient)
        singles.append(relative(decoded, gradient))
        alone += decoded
        values = compensated(gradient, residual)
        decoded, _ = through(each, work, values)
        residual = left_over(values, decoded)
        fed += decoded
        so_far = np.sum(work.rounds[: number + 1], axis=0, dtype=np.float64)
        by_round.append({"without": relative(alone, so_far), "with": relative(fed, so_far)})
    return {
        "bytes_per_parameter": size_bytes / wanted.size,
        "error_of_a_round": float(np.mean(singles)),
        "error_of_the_sum": relative(alone, wanted),
        "error_of_the_sum_with_feedback": relative(fed, wanted),
        "errors_by_round": by_round,
    }


def timed(each: Codec, values: F32) -> dict[str, Callable[[], Any]]:
    """Return what is timed of a codec, on one chunk."""
    payload, _ = each.encode(values)
    payloads = [np.frombuffer(payload, np.uint8)] * HOSTS
    factors = np.full(HOSTS, 1 / HOSTS, np.float32)
    state = tuple(np.zeros_like(values) for _ in range(2))
    new = tuple(np.zeros_like(values) for _ in range(2))
    rate, mu = np.float32(0.7), np.float32(0.9)
    return {
        "encode": lambda: each.encode(values),
        "check": lambda: each.sum_squares(payload, values.size),
        "decode": lambda: each.decode(payload, values.size),
        "step": lambda: each.step(payloads, factors, state, new, rate, mu),  # type: ignore[arg-type]
    }


def times(values: F32, repeats: int) -> dict[str, dict[str, float]]:
    """Return the least seconds of each codec's each operation."""
    asked = {name: timed(codec(name, 1), values) for name in NAMES}
    least = {name: dict.fromkeys(runs, float("inf")) for name, runs in asked.items()}
    for _ in range(repeats):
        for name, runs in asked.items():
            for what, run in runs.items():
                start = time.perf_counter()
                run()
                least[name][what] = min(least[name][what], time.perf_counter() - start)
    return least


def measure(work: Gradients, repeats: int) -> list[dict[str, Any]]:
    """Return one row a codec."""
    values = np.resize(work.rounds[-1], CHUNK)
    seconds = times(values, repeats)
    return [
        {
            "name": name,
            **errors(codec(name, 1), work),
            "seconds": seconds[name],
            "times_int8": {what: took / seconds[REFERENCE][what] for what, took in seconds[name].items()},
        }
        for name in NAMES
    ]


def show(rows: list[dict[str, Any]], title: str) -> None:
    """Print the table of errors and that of times."""
    first = Table(title=title)
    for column in ("", "bytes a parameter", "error of a round", "of the sum", "of the sum, feedback"):
        first.add_column(column, justify="left" if column == "" else "right", no_wrap=True)
    second = Table(title=f"times int8's, a chunk of {CHUNK:,}")
    for column in ("", "encode", "check", "decode", f"step, {HOSTS} hosts"):
        second.add_column(column, justify="left" if column == "" else "right", no_wrap=True)
    for row in rows:
        kinds = ("error_of_a_round", "error_of_the_sum", "error_of_the_sum_with_feedback")
        first.add_row(row["name"], f"{row['bytes_per_parameter']:.4f}", *(f"{row[kind]:.6f}" for kind in kinds))
        second.add_row(row["name"], *(f"{ratio:.2f}" for ratio in row["times_int8"].values()))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(first)
    console.print(second)


def train(folder: Path, rounds: int, hosts: int) -> None:
    """Let a process of its own train: it needs torch, and threads of its own."""
    script = Path(__file__).parent / "pseudo_gradients.py"
    command = [sys.executable, str(script), str(folder), "--rounds", str(rounds), "--hosts", str(hosts)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def gradients(asked: argparse.Namespace) -> Gradients:
    """Read a folder that is already filled, or train."""
    if asked.gradients is not None and (asked.gradients / "layout.json").exists():
        return Gradients(asked.gradients)
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder), asked.rounds, asked.hosts)
        return Gradients(Path(folder))


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--gradients", type=Path, help="a folder that pseudo_gradients.py has filled")
    asked = parser.parse_args()
    prove_default_mode()
    work = gradients(asked)
    rows = measure(work, asked.repeats)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    machine |= {"numpy": np.__version__, "numba": numba.__version__}
    result = {"when": when, "machine": machine, "repeats": asked.repeats, "gradients": work.sizes, "rows": rows}
    sizes = work.sizes
    show(
        rows, f"{sizes['elements']:,} parameters, {sizes['rounds']} rounds of {sizes['inner_steps']} steps, error in L2"
    )
    RESULTS.mkdir(exist_ok=True)
    name = when.replace(":", "").replace("+0000", "Z")
    (RESULTS / f"codecs-{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
