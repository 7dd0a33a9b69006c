"""Proof of compute in mid-round: the workers of hosts that share their GPUs are gone in time, and every root agrees."""

from __future__ import annotations

import asyncio
import json
import re
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.opening import open_client
from gonka_trainer.chain.address import decode_address
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.jobs import Train
from gonka_trainer.worker.data import open_corpus
from gonka_trainer.worker.link import Job
from tests.e2e.harness import INNER, WINDOWS, CastStage, Net, command, numpy_command, toy_net
from tests.e2e.reference import Reference, read_blob, read_header
from tests.support.numpy_worker import Toy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]

EPOCH = {
    "epoch_length": 50,
    "poc_stage_duration": 6,
    "poc_validation_delay": 2,
    "poc_validation_duration": 4,
    "set_new_validators_delay": 1,
}
POC_BLOCKS = 12
BLOCK_SECONDS = 0.4
GRACE_BLOCKS = 8
WINDOWS_OF_ROUND = replace(WINDOWS, train_blocks=60, commit_blocks=30)
SHARED = '[gpu]\nmode = "ml-node"\nstop_seconds = 3.0\n'
ROUNDS = 2


@dataclass(frozen=True)
class Process:
    """A process as nobody else can be it: its number and when it started."""

    pid: int
    started: str


def read_stat(pid: int) -> tuple[str, int, str] | None:
    """State, parent and start of a living process; zombies hold nothing any more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else (fields[0], int(fields[1]), fields[19])


def below(pid: int) -> set[Process]:
    """Every living descendant of a process."""
    table = {int(path.name): read_stat(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()}
    found, family = set(), {pid}
    while more := {p for p, stat in table.items() if stat is not None and stat[1] in family and p not in family}:
        family |= more
        found |= {Process(p, stat[2]) for p in more if (stat := table[p]) is not None}
    return found


def lives(process: Process) -> bool:
    stat = read_stat(process.pid)
    return stat is not None and stat[2] == process.started


@dataclass
class Watch:
    """Looks at heights and at the workers' processes, from outside; knows no more than the operating system does."""

    net: Net
    shared: tuple[DemoHost, ...]
    seen: dict[str, set[Process]] = field(default_factory=dict)
    windows: list[tuple[int, int]] = field(default_factory=list)
    looked: dict[tuple[int, int], int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    async def run(self) -> None:
        async with open_client(self.net.stage.chain) as client:
            while True:
                before = (await client.info()).height
                living = {host.name: self._living(host) for host in self.shared}
                after = (await client.info()).height
                for window in (w for w in self.windows if w[0] <= before and after < w[1]):
                    self.looked[window] = self.looked.get(window, 0) + 1
                    self.left += [f"{name}: {who} at {before}-{after}" for name, who in living.items() if who]
                await asyncio.sleep(0.1)

    def _living(self, host: DemoHost) -> set[Process]:
        now = below(self.net.stage.processes[host.name].pid)
        seen = self.seen.setdefault(host.name, set())
        seen |= now
        return {process for process in seen if lives(process)}


@asynccontextmanager
async def watching(net: Net, shared: tuple[DemoHost, ...]) -> AsyncIterator[Watch]:
    watch = Watch(net, shared)
    first = EPOCH["epoch_length"]
    watch.windows += [(s, s + POC_BLOCKS) for s in range(first, 40 * first, first)]
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()


def flags(out: Path) -> tuple[str, ...]:
    genesis = out / "genesis.json"
    genesis.write_text(json.dumps({"inference": {"epoch_params": EPOCH}}))
    return ("--genesis", str(genesis), "--control", "127.0.0.1:0")


async def share(stage: CastStage, _: Accepted) -> None:
    """Steps take a quarter of a second on every host; two share their GPUs, one has them for itself."""
    paced = numpy_command().replace('.py"]', '.py", "--step-seconds", "0.25"]')
    for host, gpu in zip(stage.hosts, (SHARED, SHARED, ""), strict=True):
        stage.edits[host.name] = {numpy_command(): f"{paced}\n{gpu}"}


async def height(net: Net) -> int:
    async with open_client(net.stage.chain) as client:
        return (await client.info()).height


async def until_clear_of_poc(net: Net) -> None:
    """Wait, in training, for a height from which a confirmation is over well before the next scheduled one."""
    length = EPOCH["epoch_length"]
    last = length - GRACE_BLOCKS - POC_BLOCKS - 4
    async with open_client(net.stage.chain) as client:
        while True:
            place, phase = (await client.info()).height % length, net.status(net.hosts[0])["phase"]
            assert phase != "ended", "the run was over before a confirmation could be called"
            if phase == "train" and POC_BLOCKS + 2 <= place <= last:
                return
            await asyncio.sleep(0.05)


async def confirm(net: Net, watch: Watch) -> tuple[int, int]:
    """Have the chain call a confirmation, and return its window."""
    async with aiohttp.ClientSession() as session:
        url = f"http://{net.stage.control}/confirmation_poc"
        async with session.post(url, json={"grace_blocks": GRACE_BLOCKS}) as answer:
            assert answer.status == 200, await answer.text()
    async with open_client(net.stage.chain) as client:
        while (found := (await client.proof_of_compute()).confirmation) is None:
            await asyncio.sleep(0.05)
    window = (int(found.generation_start), int(found.end))
    watch.windows.append(window)
    return window


def own(net: Net, host: DemoHost) -> list[dict[str, Any]]:
    return [r["own"] for r in net.rounds(host)]


def toy(net: Net) -> Toy:
    manifest = net.run.manifest
    return Toy(manifest, open_corpus(net.out / "corpus.txt", manifest.data))


def trained_alone(net: Net, host: DemoHost, round_number: int, steps: int, base: list[float]) -> bytes:
    """What the host's worker makes of the base in so many steps without any interruption, as a blob's payload."""
    folder = net.out / "alone"
    folder.mkdir(exist_ok=True)
    np.asarray(base, "<f4").tofile(folder / "base")
    participant = decode_address(host.address, "gonka").hex()
    ask = Train(
        round_number, participant, str(folder / "base"), str(folder / "out"), steps, 0, str(folder / "none"), ""
    )
    toy(net).train(Job(ask, threading.Event(), threading.Event()), ask, lambda _: None)
    return (np.asarray(base, "<f4") - np.fromfile(folder / "out", "<f4")).astype("<f4").tobytes()


async def test_workers_are_gone_during_proof_of_compute_and_all_roots_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with toy_net(
        tmp_path,
        rounds=ROUNDS,
        min_weight=3,
        codec="f32",
        block_seconds=BLOCK_SECONDS,
        windows=WINDOWS_OF_ROUND,
        inner=replace(INNER, steps=400),
        devnet_flags=flags(tmp_path),
        before_start=share,
    ) as net:
        shared = net.hosts[:2]
        async with watching(net, shared) as watch:
            await net.until_phase(net.hosts[0], 0, "train", 200)
            await until_clear_of_poc(net)
            confirmation = await confirm(net, watch)
            await net.until_phase(net.hosts[0], 1, "train", 200)
            await check_schedule(net, shared[0])
            await net.until_ended(seconds=300)
        await agree(net)
        assert watch.left == []
        assert watch.looked[confirmation] > 0
        assert len(watch.looked) >= 3, watch.looked
        check_interruptions(net, shared)
        check_commits(net, tmp_path)
        await net.assert_single_words()
        with capsys.disabled():
            for host in shared:
                print(f"\n{host.name}: GPU free after", re.findall(r"GPU: free ([\d.]+) s", net.log(host)), "s")


async def check_schedule(net: Net, host: DemoHost) -> None:
    """The command shows the epoch that the chain is in, and the run's rounds in it."""
    before = await height(net)
    code, out, err = await command("schedule", "--config", str(host.config), "--json")
    assert code == 0, err
    said = json.loads(out)
    assert before <= said["height"] <= await height(net)
    assert all(w["start"] % EPOCH["epoch_length"] == 0 for w in said["windows"])
    assert said["end"] - said["first"] == EPOCH["epoch_length"] + POC_BLOCKS
    assert said["run"]["rounds"][0]["number"] >= 1
    assert said["lead_blocks"] > 0
    code, out, err = await command("schedule", str(net.out / "manifest.json"), "--config", str(host.config))
    assert code == 0, err
    assert "PoC" in out
    assert "Run toy" in out


async def agree(net: Net) -> None:
    """All hosts saw the same rounds, and each root is the reference's."""
    await net.assert_same_roots()
    histories = [[(r["root"], r["included"], r["heights"]) for r in net.rounds(host)] for host in net.hosts]
    assert histories[0] == histories[1] == histories[2]
    assert [r["outcome"] for r in net.rounds(net.hosts[0])] == ["final"] * ROUNDS
    assert all(len(r["included"]) == 3 for r in net.rounds(net.hosts[0]))


def check_interruptions(net: Net, shared: tuple[DemoHost, ...]) -> None:
    """Every host that shares was interrupted in mid-round and went on; the dedicated one never was."""
    dedicated = net.hosts[2]
    assert not any(each.get("interrupted") for each in own(net, dedicated))
    assert "GPU: held" not in net.log(dedicated)
    for host in shared:
        assert re.search(r"GPU: held for proof of compute: scheduled", net.log(host))
        assert re.search(r"GPU: held for proof of compute: confirmation", net.log(host))
        assert len([each for each in own(net, host) if each.get("interrupted")]) >= 2, net.log(host)
        went_on = 0
        for number, each in enumerate(own(net, host)):
            found = re.findall(rf"round {number}: interrupted after (\d+) inner steps", net.log(host))
            places = [int(place) for place in found]
            assert places == sorted(places)
            assert max(places, default=0) <= each["inner_steps"], net.log(host)
            went_on += sum(place < each["inner_steps"] for place in places)
        assert went_on >= 2, net.log(host)
        wide = sum(each["inner_steps"] for each in own(net, dedicated))
        assert 0 < sum(each["inner_steps"] for each in own(net, host)) < wide


def check_commits(net: Net, out: Path) -> None:
    """Each blob's tokens are those of its steps, and its values those of an uninterrupted training of as many steps."""
    reference = Reference(out / "manifest.json", net.blobs)
    for r in net.rounds(net.hosts[0]):
        for host in net.hosts:
            facts = own(net, host)[r["round"]]
            commitment = r["commitments"][host.address]["commitment"]
            preamble, _, payload = read_blob(net.blobs / f"{r['round']:08d}" / commitment)
            assert read_header(preamble).tokens == facts["tokens"] == facts["inner_steps"] * INNER.tokens_per_step
            alone = trained_alone(net, host, r["round"], facts["inner_steps"], list(reference.parameters))
            assert struct.calcsize("f") * len(reference.parameters) == len(payload)
            assert payload == alone, f"{host.name} in round {r['round']}"
        reference.apply(r)
        assert reference.root() == r["root"]
