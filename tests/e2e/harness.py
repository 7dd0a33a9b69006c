"""Real daemons on a real devnet, for the end-to-end tests: each its own process, folder, key, port and worker.

`Net` starts a devnet and hosts with the small numpy worker (or torch), makes and announces a run, waits for what a test
names, and collects every blob before the hosts prune it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.opening import open_client
from gonka_trainer.cli.demo import collect
from gonka_trainer.cli.demo.stage import DemoHost, Stage
from gonka_trainer.cli.run_commands import announce_run
from gonka_trainer.cli.spec_builder import describe_data, initial_root
from gonka_trainer.gradient.layout import Entry, Layout
from gonka_trainer.manifest import (
    InnerSpec,
    Manifest,
    MembershipSpec,
    ModelSpec,
    OuterSpec,
    WindowSpec,
    render_manifest,
)
from gonka_trainer.manifest.document import FORMAT
from gonka_trainer.manifest.spec import EndSpec
from tests.support.tiny_run import TOY_PARAMETERS, text

NUMPY_WORKER = Path(__file__).parents[1] / "support" / "numpy_worker.py"
WINDOWS = WindowSpec(
    train_blocks=40,
    margin_blocks=1,
    commit_blocks=30,
    attest_blocks=20,
    extensions=2,
    state_blocks=30,
    absent_rounds=3,
    exclusion_rounds=2,
    challenge_blocks=4,
)
INNER = InnerSpec("adamw", 0.01, 0.9, 0.95, 1e-8, 0.1, 1.0, 4, 400, 0.1, 6, 4, 32, 7)
SEED = "5a" * 32


@dataclass
class Net:
    """A devnet with hosts, and the run that they agreed to."""

    out: Path
    stage: Stage
    run: Accepted
    blobs: Path
    extra: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[DemoHost, ...]:
        """The hosts, in the order in which they were started."""
        return self.stage.hosts

    def status(self, host: DemoHost) -> dict[str, Any]:
        """What the host last said of itself."""
        return collect.status(host)

    def rounds(self, host: DemoHost) -> list[dict[str, Any]]:
        """The rounds that the host saw end, in order."""
        return collect.lines(host, "rounds")

    def transactions(self, host: DemoHost) -> list[dict[str, Any]]:
        """The host's own records on chain."""
        return collect.lines(host, "transactions")

    def log(self, host: DemoHost) -> str:
        """The daemon's log so far."""
        return host.log.read_text() if host.log.exists() else ""

    def kill(self, host: DemoHost) -> None:
        """SIGKILL the daemon: nothing of it gets to clean up."""
        os.kill(self.stage.processes[host.name].pid, signal.SIGKILL)

    async def restart(self, host: DemoHost) -> None:
        """Wait until the killed daemon is gone and start it again."""
        await self.stage.processes[host.name].wait()
        await self.stage.start_host(host)

    async def until(self, what: str, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait for the condition, which looks at files and processes; fail with all logs' ends when it stays false."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            ends = "\n".join(f"--- {host.name}\n{self.log(host)[-3000:]}" for host in self.hosts)
            raise AssertionError(f"{what}: not within {seconds} s\n{ends}") from None

    async def until_phase(self, host: DemoHost, round_number: int, phase: str, seconds: float = 120.0) -> None:
        """Wait until the host is in this phase of this round, or past it."""

        def there() -> bool:
            now = self.status(host)
            return now.get("round", -1) > round_number or (now.get("round"), now.get("phase")) == (round_number, phase)

        await self.until(f"{host.name} in round {round_number}, {phase}", there, seconds)

    async def until_ended(self, hosts: tuple[DemoHost, ...] | None = None, seconds: float = 240.0) -> None:
        """Wait until the run is over for these hosts (all, if none are named)."""
        who = self.hosts if hosts is None else hosts
        await self.until("the run is over", lambda: all(self.status(h).get("phase") == "ended" for h in who), seconds)

    def snapshot_blobs(self) -> None:
        """Link every blob that is complete on some host: hosts prune blobs two rounds later."""
        for host in self.hosts:
            for done in (host.data / "runs").glob("*/objects/blobs/*/*/complete"):
                folder = done.parent
                target = self.blobs / folder.parent.name / folder.name
                if target.exists():
                    continue
                target.mkdir(parents=True)
                for name in ("index", "payload"):
                    os.link(folder / name, target / name)


def numpy_command() -> str:
    """The configuration line that makes a host use the numpy worker."""
    return f"command = {json.dumps([sys.executable, str(NUMPY_WORKER)])}"


def toy_manifest(
    stage: Stage,
    height: int,
    data: Path,
    carrier: str,
    rounds: int,
    windows: WindowSpec,
    min_weight: int,
    **changes: Any,
) -> Manifest:
    """A run of a thousand parameters whose worker needs no torch; `changes` replace fields of the manifest."""
    layout = Layout(tuple(Entry(*entry) for entry in TOY_PARAMETERS), 256)
    members = tuple(host.address for host in stage.hosts)
    fields: dict[str, Any] = {
        "format": FORMAT,
        "name": "toy",
        "chain_id": stage.chain.chain_id,
        "carrier": carrier,
        "log_height": height,
        "start_height": height + 3,
        "model": ModelSpec({"model_type": "toy"}),
        "tokenizer": "bytes",
        "parameters": TOY_PARAMETERS,
        "chunk_elements": 256,
        "init_seed": SEED,
        "state_root": initial_root(layout, SEED).hex(),
        "data": describe_data(data, 4096),
        "inner": INNER,
        "codec": "int8",
        "codec_version": 1,
        "outer": OuterSpec(0.7, 0.5, "clipped_mean"),
        "windows": windows,
        "membership": MembershipSpec("equal", members, min_weight),
        "end": EndSpec(rounds, 0),
    }
    return Manifest(**{**fields, **changes})


@asynccontextmanager
async def toy_net(
    out: Path,
    *,
    hosts: int = 3,
    rounds: int = 3,
    chain_version: str = "0.2.16",
    block_seconds: float = 0.3,
    before_start: Callable[[Stage, Accepted], Awaitable[None]] | None = None,
    windows: WindowSpec = WINDOWS,
    min_weight: int = 0,
    **changes: Any,
) -> AsyncIterator[Net]:
    """A devnet, a run and its hosts, started; everything is stopped at the end. `min_weight` 0: two thirds."""
    data = out / "corpus.txt"
    data.write_bytes(text())
    stage = Stage(out, hosts, chain_version, block_seconds)
    async with stage:
        await stage.start_chain()
        async with open_client(stage.chain) as client:
            node = await client.info()
        carrier = "kv" if node.training_module else "memo"
        floor = min_weight or -(-2 * hosts // 3)
        document = render_manifest(toy_manifest(stage, node.height, data, carrier, rounds, windows, floor, **changes))
        (out / "manifest.json").write_bytes(document)
        run = accept(document, "manifest.json")
        if before_start is not None:
            await before_start(stage, run)
        await stage.start_hosts(run, data, numpy_command())
        await announce_run(stage.chain, stage.researcher, run, "")
        net = Net(out, stage, run, out / "blobs")
        collector = asyncio.create_task(_collect(net))
        try:
            yield net
        finally:
            collector.cancel()


async def _collect(net: Net) -> None:
    while True:
        net.snapshot_blobs()
        await asyncio.sleep(0.1)
