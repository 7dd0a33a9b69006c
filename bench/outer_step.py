"""Times a round's bytes: encode, hash, check, and decode + mean + Nesterov of int8 blobs, next to torch's ways.

    python bench/outer_step.py [--elements 32000000] [--hosts 4] [--repeats 9] [--no-gloo]

Everything is timed in turn, several times over, and the fastest of each is kept: other work on the machine slows all
alike. Prints a table and writes one JSON file, named by date and time, to bench/results/.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numba
import numpy as np
import peers
import torch
from rich.console import Console
from rich.table import Table

from gonka_trainer.gradient import digest
from gonka_trainer.gradient.aggregate import Contribution, coefficients
from gonka_trainer.gradient.arithmetic import prove_default_mode
from gonka_trainer.gradient.blob import encode_blob
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.header import Header
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.gradient.layout import Entry, Layout, layout_root
from gonka_trainer.gradient.outer import OuterSettings, outer_step
from gonka_trainer.gradient.parallel import default_threads, run_all
from gonka_trainer.gradient.state import index_state
from gonka_trainer.types import ZERO_DIGEST, Address, sha256

RESULTS = Path(__file__).parent / "results"
SETTINGS = OuterSettings(np.float32(peers.RATE), np.float32(peers.MU))


@dataclass
class Case:
    """One thing to time: what it is, the bytes it touches in memory or makes, and its fastest time so far."""

    name: str
    bytes_touched: float
    run: Callable[[], Any]
    seconds: float = float("inf")

    def once(self) -> None:
        start = time.perf_counter()
        own = self.run()
        took = own if isinstance(own, float) else time.perf_counter() - start
        self.seconds = min(self.seconds, took)


class Round:
    """Vectors and blobs of one round of `hosts` hosts."""

    def __init__(self, layout: Layout, hosts: int) -> None:
        self.layout = layout
        self.base = initial_parameters(layout, b"bench")
        self.momentum = np.zeros_like(self.base)
        self.new = np.zeros_like(self.base), np.zeros_like(self.base)
        self.local = self.base * np.float32(0.99)
        self.int8 = codec("int8", 1)
        self.blobs = [self.blob(host) for host in range(hosts)]
        self.factors = coefficients(self.blobs)

    def blob(self, host: int) -> Contribution:
        participant = Address(sha256(bytes([host]))[:20])
        payload = bytearray()
        index = encode_blob(self.base, self.local, self.layout, self.int8, self.header(participant), payload.extend)
        return Contribution(participant, 1, index, np.frombuffer(payload, np.uint8), True)

    def header(self, participant: Address) -> Header:
        return Header(
            chain_id="bench",
            run_id=ZERO_DIGEST,
            round=0,
            participant=participant,
            node="node",
            base_root=ZERO_DIGEST,
            manifest_hash=ZERO_DIGEST,
            assignment_root=ZERO_DIGEST,
            layout_root=layout_root(self.layout),
            codec="int8",
            codec_version=1,
            payload_root=ZERO_DIGEST,
            leaf_count=0,
            payload_bytes=0,
            trace_root=ZERO_DIGEST,
            tokens=1000,
            inner_steps=10,
            feedback_root=ZERO_DIGEST,
            hardware="cpu",
            salt=bytes(32),
        )

    def encode(self) -> None:
        header = self.header(self.blobs[0].participant)
        encode_blob(self.base, self.local, self.layout, self.int8, header, lambda _: None)

    def hash_blob(self) -> None:
        blob = self.blobs[0]

        def leaf(i: int) -> None:
            digest.chunk_leaf(i, self.layout.chunk_elements_of(i), 0.0, self.chunk(blob, i))

        run_all(leaf, blob.index.count)

    def check_blob(self) -> None:
        blob = self.blobs[0]
        run_all(lambda i: require(blob.index.check(i, self.chunk(blob, i)).good), blob.index.count)

    def chunk(self, blob: Contribution, i: int) -> memoryview:
        return memoryview(blob.payload)[blob.index.offset(i) : blob.index.offset(i) + blob.index.chunk_bytes(i)]

    def step(self) -> None:
        state = self.base, self.momentum
        outer_step(*state, *self.new, self.blobs, self.factors, SETTINGS, self.layout, self.int8)

    def step_in_place(self) -> None:
        outer_step(*self.new, *self.new, self.blobs, self.factors, SETTINGS, self.layout, self.int8)

    def state_root(self) -> None:
        index_state(self.layout, self.base, self.momentum, 0, 0)

    def copy(self) -> None:
        """Copy one vector to another by all threads, in pieces of a chunk: the machine's limit for such passes."""

        def part(i: int) -> None:
            start, stop = self.layout.chunk_range(i)
            np.copyto(self.new[0][start:stop], self.base[start:stop])

        run_all(part, self.layout.chunk_count)


def require(condition: bool) -> None:
    if not condition:
        raise SystemExit("a blob is not good")


COPY, STEP, STEP_IN_PLACE = "memory copy", "decode + mean + Nesterov, former state kept", "the same in place"
SGD, SGD_FUSED, GLOO = (
    "torch SGD(nesterov).step alone",
    "torch SGD(nesterov, fused).step alone",
    "gloo all-reduce + SGD",
)


def cases(work: Round, group: peers.Group | None) -> list[Case]:
    vector = 4.0 * work.layout.total_elements
    payload = float(work.blobs[0].index.total_bytes)
    hosts = len(work.blobs)
    pass_bytes = 4 * vector + hosts * payload  # parameters and momentum read and written, payloads read
    listed = [
        Case(COPY, 2 * vector, work.copy),
        Case("encode one blob, hashed", 2 * vector + payload, work.encode),
        Case("hash one blob", payload, work.hash_blob),
        Case("check one blob (hash, form, norm)", payload, work.check_blob),
        Case("state root", 2 * vector, work.state_root),
        Case(STEP, pass_bytes, work.step),
        Case(STEP_IN_PLACE, pass_bytes, work.step_in_place),
        Case(SGD, 5 * vector, peers.sgd(work.layout.total_elements, fused=False)),
        Case(SGD_FUSED, 5 * vector, peers.sgd(work.layout.total_elements, fused=True)),
    ]
    return listed + ([Case(f"{GLOO}, {hosts} processes", 5 * vector, group.seconds)] if group else [])


def limit_seconds(measured: list[Case], case: Case) -> float:
    """Return how long touching the case's bytes takes at the rate of the memory copy of this run."""
    copy = next(each for each in measured if each.name == COPY)
    return case.bytes_touched * copy.seconds / copy.bytes_touched


def report(measured: list[Case], elements: int) -> dict[str, Any]:
    by_name = {case.name: case for case in measured}
    step = by_name[STEP].seconds
    rows = [
        {
            "name": case.name,
            "seconds": case.seconds,
            "bytes": case.bytes_touched,
            "bytes_per_second": case.bytes_touched / case.seconds,
            "parameters_per_second": elements / case.seconds,
            "times_the_memory_copy_limit": case.seconds / limit_seconds(measured, case),
            "times_the_outer_step": case.seconds / step,
        }
        for case in measured
    ]
    aims = {
        "within 2x of the memory-copy limit": step <= 2 * limit_seconds(measured, by_name[STEP]),
        "less time than torch SGD(nesterov).step alone": step < by_name[SGD].seconds,
    }
    return {"rows": rows, "aims": aims}


def machine() -> dict[str, Any]:
    versions = {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}
    cpu = {
        "machine": platform.machine(),
        "numba_cpu": numba.core.config.CPU_NAME or "host",
        "threads": default_threads(),
    }
    return {**cpu, **versions, "torch": torch.__version__, "torch_threads": torch.get_num_threads()}


def show(result: dict[str, Any], title: str) -> None:
    table = Table(title=title)
    for column in ("", "seconds", "GB/s", "M parameters/s", "x copy limit", "x outer step"):
        table.add_column(column, justify="left" if column == "" else "right", no_wrap=True)
    for row in result["rows"]:
        table.add_row(
            row["name"],
            f"{row['seconds']:.4f}",
            f"{row['bytes_per_second'] / 1e9:.2f}",
            f"{row['parameters_per_second'] / 1e6:.0f}",
            f"{row['times_the_memory_copy_limit']:.2f}",
            f"{row['times_the_outer_step']:.2f}",
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for aim, met in result["aims"].items():
        console.print(f"{'met' if met else 'NOT met'}: {aim}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=32_000_000)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--no-gloo", action="store_true", help="leave out the all-reduce of local processes")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    prove_default_mode()
    layout = Layout((Entry("w", (asked.elements,), "uniform:0.02"),), 1 << 19)
    group = None if asked.no_gloo else peers.gloo(asked.elements, asked.hosts)
    measured = cases(Round(layout, asked.hosts), group)
    for _ in range(asked.repeats):
        for case in measured:
            case.once()
    if group:
        group.close()
    result = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), **vars(asked)}
    result |= report(measured, asked.elements)
    show(result, f"{asked.elements:,} parameters, {asked.hosts} hosts, int8, {default_threads()} threads")
    RESULTS.mkdir(exist_ok=True)
    name = result["when"].replace(":", "").replace("+0000", "Z")
    (RESULTS / f"outer_step-{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
