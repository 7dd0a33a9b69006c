"""A host that lies, in every way that the protocol knows: it is excluded or bounded, by all alike, and named."""

from __future__ import annotations

import json
import math
import re
import signal
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gonka_trainer.app.audit import audit
from gonka_trainer.app.opening import open_client
from gonka_trainer.app.reading import RunReader
from gonka_trainer.chain.address import encode_address
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.types import Address
from tests.e2e.harness import WINDOWS, Net, toy_net
from tests.e2e.reference import Reference, read_blob
from tests.support.liar import JUNK

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PATIENT = replace(WINDOWS, train_blocks=120, commit_blocks=200, attest_blocks=26, state_blocks=200)
"""Wide where a round goes on as soon as all have spoken; the attestation window is waited for after most lies."""
LIAR_PROGRAM = Path(__file__).parents[1] / "support" / "liar.py"
BOUNDED = ("huge", "selfish")
"""The lies after which the liar's blob is in all the same; after every other one it is not."""
NAMED = {
    "mismatch": r"blob of {liar} in round {n}: {liar}: digest \(chunk 0 does not match its leaf\)",
    "huge": r"round {n}: the update of {liar} is [0-9.]+ times as long as the median: clipped to it",
    "nan": r"round {n}: the blob of {liar} breaks a rule \(form: chunk 0: .*\): not attested, weight 0",
    "withhold": r"blob of {liar} in round {n}: {liar}: unreachable \(FAILED_PRECONDITION: not served to this caller",
    "selfish": r"{liar}: round {n}: posted root " + JUNK.hex() + ", final is ",
    "tokens": r"round {n}: the blob of {liar} breaks a rule \(header: 1000000000000000 tokens.*\): not attested",
    "copycat": r"round {n}: {liar} attests blobs that it did not read: its possession proof is wrong",
}
"""What every honest host's log says of each lie."""


def programs(lies: list[str]) -> dict[str, list[str]]:
    named = json.dumps({str(number): kind for number, kind in enumerate(lies)})
    return {"host-4": [str(LIAR_PROGRAM), "--lies", named]}


def histories(net: Net, hosts: tuple[DemoHost, ...]) -> list[list[Any]]:
    return [[(r["outcome"], r["root"], r["included"], r["heights"]) for r in net.rounds(host)] for host in hosts]


def norm_of(blobs: Path, summary: dict[str, Any], who: str) -> float:
    """The length of a blob's update, from its leaf list."""
    _, leaves, _ = read_blob(blobs / f"{summary['round']:08d}" / summary["commitments"][who]["commitment"])
    return math.sqrt(sum(struct.unpack(">d", leaves[i + 32 : i + 40])[0] for i in range(0, len(leaves), 44)))


async def test_every_lie_is_excluded_or_bounded_and_named(tmp_path: Path) -> None:
    lies = ["", "mismatch", "huge", "nan", "withhold", "selfish", "tokens", "copycat"]
    async with toy_net(
        tmp_path, hosts=4, rounds=len(lies), min_weight=3, windows=PATIENT, programs=programs(lies)
    ) as net:
        *honest, liar = net.hosts
        await net.until_ended(seconds=500)
        rounds = net.rounds(honest[0])
        assert [r["outcome"] for r in rounds] == ["final"] * len(lies), net.log(honest[0])
        same = histories(net, tuple(honest))
        assert same[0] == same[1] == same[2]
        reference = Reference(tmp_path / "manifest.json", net.blobs)
        for kind, r in zip(lies, rounds, strict=True):
            present = {seat["participant"] for seat in r["roster"]}
            if kind:  # round 0 opens as soon as three have joined
                assert present == {host.address for host in net.hosts}
                assert (liar.address in r["included"]) == (kind in BOUNDED), kind
            assert present - {liar.address} <= set(r["included"])
            momentum = reference.momentum
            reference.apply(r)
            assert reference.root() == r["root"], kind
            if kind == "selfish":
                assert r["attestations"].get(liar.address, [liar.address]) == [liar.address]
            if kind == "huge":
                check_bounded(net, r, liar.address, momentum, reference.momentum)
        for host in honest:
            check_named(net, host, liar.address, lies)
        await check_audit(net, liar.address, lies.index("selfish"))


def check_bounded(net: Net, summary: dict[str, Any], liar: str, before: list[float], after: list[float]) -> None:
    """The mean update (after - mu * before, the momentum's rule) is no longer than the longest honest one."""
    norms = {who: norm_of(net.blobs, summary, who) for who in summary["included"]}
    honest = [norm for who, norm in norms.items() if who != liar]
    assert norms[liar] > 100 * max(honest)
    mu = net.run.manifest.outer.momentum
    mean = math.sqrt(sum((new - mu * old) ** 2 for old, new in zip(before, after, strict=True)))
    assert 0 < mean <= max(honest) * (1 + 1e-5)


def check_named(net: Net, host: DemoHost, liar: str, lies: list[str]) -> None:
    log = net.log(host)
    for number, kind in enumerate(lies):
        assert not kind or re.search(NAMED[kind].format(liar=liar, n=number), log), (
            f"{kind} in the log of {host.name}:\n{log}"
        )
    for other in {each.address for each in net.hosts} - {liar}:
        for pattern in NAMED.values():
            if "unreachable" not in pattern:  # an honest peer may be a block behind
                assert not re.search(pattern.format(liar=other, n="[0-9]+"), log), log


async def check_audit(net: Net, liar: str, junk_round: int) -> None:
    async with open_client(net.stage.chain) as client:
        found = await audit(RunReader(client, net.run))
    said = [(encode_address(note.author or Address(b""), "gonka"), note.text) for note in found.contradictions]
    assert [who for who, _ in said] == [liar]
    assert said[0][1].startswith(f"round {junk_round}: posted root {JUNK.hex()}, final is ")


async def until_stopped(net: Net, host: DemoHost) -> int:
    process = net.stage.processes[host.name]
    await net.until(f"{host.name} stops", lambda: process.returncode is not None, seconds=300)
    return process.returncode or 0


async def test_a_host_that_computes_another_root_twice_stops_with_the_evidence(tmp_path: Path) -> None:
    programs = {"host-3": [str(LIAR_PROGRAM), "--lies", json.dumps({"1": "astray"})]}
    async with toy_net(tmp_path, rounds=2, min_weight=3, windows=PATIENT, programs=programs) as net:
        *others, astray = net.hosts
        await net.until_ended(tuple(others), seconds=500)
        assert await until_stopped(net, astray) == 1
        reference = Reference(tmp_path / "manifest.json", net.blobs)
        for mine, theirs in zip(net.rounds(others[0]), net.rounds(others[1]), strict=True):
            reference.apply(mine)
            assert reference.root() == mine["root"] == theirs["root"]
        last, log = net.rounds(others[0])[-1], net.log(astray)
        tries = re.findall(r"round 1: state root ([0-9a-f]{64}) \(try ([01])\)", log)
        assert [number for _, number in tries] == ["0", "1"]
        wrong = tries[0][0]
        assert wrong == tries[1][0] != last["root"]
        said = (
            f"error: round 1: this host computed {wrong} twice, final is {last['root']}\n  -> keep the data directory"
        )
        assert log.count(said) == 1, log
        (objects,) = (astray.data / "runs").glob("*/objects")
        assert (objects / "states" / last["base_root"] / "complete").exists()
        kept = {folder.parent.name for folder in (objects / "blobs" / "00000001").glob("*/complete")}
        assert kept == {each["commitment"] for each in last["commitments"].values()}
        assert not (objects / "states" / last["root"]).exists(), "what it could not compute was adopted"
        net.stage.programs.clear()
        await net.stage.start_host(astray)
        assert await until_stopped(net, astray) == 1
        assert net.log(astray).count(said) == 2, "it went on after a restart"


@pytest.mark.slow
async def test_a_state_that_changed_on_disk_is_refused_before_anything_is_said(tmp_path: Path) -> None:
    programs = {"host-3": [str(LIAR_PROGRAM), "--lies", json.dumps({"1": "dies"})]}
    async with toy_net(tmp_path, rounds=4, min_weight=3, windows=PATIENT, programs=programs) as net:
        *others, hurt = net.hosts
        assert await until_stopped(net, hurt) == -signal.SIGKILL
        root = net.rounds(others[0])[0]["root"]
        (folder,) = (hurt.data / "runs").iterdir()
        flip_bit(folder / "objects" / "states" / root / "payload", 4)
        net.stage.programs.clear()
        await net.stage.start_host(hurt)
        assert await until_stopped(net, hurt) == 1
        said = f"error: the state {root} changed on disk: chunk 0 does not match its leaf\n  -> check disk and memory"
        assert said in net.log(hurt)
        assert hurt.address not in (await net.until_round_ended(others[0], 1))["states"]
        folder.rename(tmp_path / "evidence")
        await net.stage.start_host(hurt)
        await net.until_ended(seconds=500)
        assert [r["outcome"] for r in net.rounds(others[0])] == ["final"] * 4
        # Without its journal it says nothing in the round that is open when it comes back.
        assert [hurt.address in r["included"] for r in net.rounds(others[0])] == [True, True, False, True]
        await net.assert_same_roots()
        await net.assert_single_words()


def flip_bit(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))
