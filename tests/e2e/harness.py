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
from gonka_trainer.app.audit import Audit, audit
from gonka_trainer.app.opening import open_client
from gonka_trainer.app.reading import RunReader, carrier_of
from gonka_trainer.chain.attribution import block_records
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
from gonka_trainer.round.records import Commit, PlacedRecord, Record, StateRoot
from gonka_trainer.types import Height
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
    stage: CastStage
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

    async def records(self) -> list[PlacedRecord]:
        """All records of the run that are on chain, in order."""
        async with open_client(self.stage.chain) as client:
            carrier = await carrier_of(
                client,
                self.run.manifest.carrier,
                self.stage.chain.chain_id,
                self.run.hash,
                Height(self.run.manifest.log_height),
            )
            tip = (await client.info()).height
            blocks = [await client.block(Height(h)) for h in range(self.run.manifest.log_height, tip + 1)]
        return [placed for block in blocks for placed in block_records(block, carrier)]

    async def audit(self) -> Audit:
        """The run, judged from the chain alone."""
        async with open_client(self.stage.chain) as client:
            return await audit(RunReader(client, self.run))

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

    def outcomes(self, host: DemoHost) -> dict[int, str]:
        """How the rounds that the host saw end ended: the root, or nothing for a void one."""
        return {r["round"]: r["root"] or "" for r in self.rounds(host)}

    async def until_round_ended(self, host: DemoHost, round_number: int, seconds: float = 180.0) -> dict[str, Any]:
        """Wait until the host saw the round end, and return what it says of it."""
        what = f"{host.name} saw round {round_number} end"
        await self.until(what, lambda: round_number in self.outcomes(host), seconds)
        return next(r for r in self.rounds(host) if r["round"] == round_number)

    async def assert_single_words(self) -> None:
        """Every key said at most one commitment and one root a round, and nothing on chain contradicts the protocol."""
        said: dict[Any, set[Record]] = {}
        for placed in await self.records():
            if isinstance(placed.record, Commit | StateRoot):
                key = (placed.author, type(placed.record), placed.record.round)
                said.setdefault(key, set()).add(placed.record)
        assert said
        assert [key for key, records in said.items() if len(records) > 1] == []
        assert (await self.audit()).contradictions == ()

    async def assert_same_roots(self, hosts: tuple[DemoHost, ...] | None = None) -> None:
        """In every round all posts are one root, and it is what every host reports of the rounds that it saw."""
        told = {host.name: self.outcomes(host) for host in (self.hosts if hosts is None else hosts)}
        found = {summary.round: summary for summary in (await self.audit()).rounds}
        for summary in found.values():
            assert {post.root for post in summary.posts} <= {summary.root}
        for name, seen in told.items():
            assert seen == {number: (found[number].root or b"").hex() for number in seen}, name

    def snapshot_blobs(self) -> None:
        """Link every blob that is complete on some host: hosts prune blobs two rounds later."""
        for host in self.hosts:
            try:
                for done in (host.data / "runs").glob("*/objects/blobs/*/*/complete"):
                    self._link_blob(done.parent)
            except FileNotFoundError:
                continue  # pruned, or moved to its place, while we looked: the next turn looks again

    def _link_blob(self, folder: Path) -> None:
        target = self.blobs / folder.parent.name / folder.name
        target.mkdir(parents=True, exist_ok=True)
        for name in ("payload", "index"):
            if not (target / name).exists():
                os.link(folder / name, target / name)


class CastStage(Stage):
    """A stage on which some hosts run another program than the daemon, and on which the devnet takes more flags.

    `programs`: a host's name -> what stands before `--config FILE` on its command line. `edits`: a host's name -> what
    to replace in its configuration before its daemon starts. `absent`: hosts that are not started with the others.
    """

    def __init__(
        self,
        out: Path,
        host_count: int,
        chain_version: str,
        block_seconds: float,
        programs: dict[str, list[str]],
        devnet_flags: tuple[str, ...],
    ) -> None:
        super().__init__(out, host_count, chain_version, block_seconds)
        self.programs = programs
        self.edits: dict[str, dict[str, str]] = {}
        self.absent: set[str] = set()
        self.control = ""  # where the devnet takes faults, with the flag --control
        self._devnet_flags = devnet_flags
        self._accounts: list[str] = []

    async def start_host(self, host: DemoHost) -> None:
        if host.name in self.absent:
            return
        for old, new in self.edits.pop(host.name, {}).items():
            assert old in host.config.read_text()
            host.config.write_text(host.config.read_text().replace(old, new))
        program = self.programs.get(host.name, ["-m", "gonka_trainer", "run"])
        await self._start(host.name, [*program, "--config", str(host.config)], host.log)

    async def _devnet(self, accounts: list[str]) -> dict[str, Any]:
        self._accounts = accounts
        ready = await super()._devnet([*accounts, *self._devnet_flags])
        self.control = str(ready.get("control", ""))
        return ready

    async def restart_chain(self, number: signal.Signals, pause: Callable[[], Awaitable[None]]) -> None:
        """End the devnet by a signal and, after the pause, start it again on the same home and ports."""
        self.processes["devnet"].send_signal(number)
        await self.processes["devnet"].wait()
        await pause()
        addresses = ["--grpc", self.chain.grpc, "--rpc", self.chain.rpc.removeprefix("http://")]
        await super()._devnet([*self._accounts, *self._devnet_flags, *addresses])


async def command(*arguments: str) -> tuple[int, str, str]:
    """Run `gonka-trainer` as a user does; return the exit status and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gonka_trainer",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 180)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


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
    before_start: Callable[[CastStage, Accepted], Awaitable[None]] | None = None,
    windows: WindowSpec = WINDOWS,
    min_weight: int = 0,
    programs: dict[str, list[str]] | None = None,
    devnet_flags: tuple[str, ...] = (),
    **changes: Any,
) -> AsyncIterator[Net]:
    """A devnet, a run and its hosts, started; everything is stopped at the end. `min_weight` 0: two thirds."""
    data = out / "corpus.txt"
    data.write_bytes(text())
    stage = CastStage(out, hosts, chain_version, block_seconds, programs or {}, devnet_flags)
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
        net = Net(out, stage, run, out / "blobs")
        await net.until("the daemons wait for the run", lambda: all(_waits(net, host) for host in net.hosts))
        await announce_run(stage.chain, stage.researcher, run, "")
        collector = asyncio.create_task(_collect(net))
        try:
            yield net
        finally:
            collector.cancel()


def _waits(net: Net, host: DemoHost) -> bool:
    return host.name not in net.stage.processes or "no agreed run is on chain yet" in net.log(host)


async def _collect(net: Net) -> None:
    while True:
        net.snapshot_blobs()
        await asyncio.sleep(0.1)
