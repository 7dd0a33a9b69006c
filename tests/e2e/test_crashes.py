"""kill -9 of a host at every kind of instant: it says nothing twice, contradicts nothing, and is back in a round."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gonka_trainer.cli.demo.stage import DemoHost
from tests.e2e.harness import WINDOWS, Net, toy_net

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MORTAL = Path(__file__).parents[1] / "support" / "mortal.py"
PATIENT = replace(WINDOWS, train_blocks=150, commit_blocks=50, attest_blocks=40, state_blocks=60, absent_rounds=5)
"""A host that starts again is in time for the next commit, however slow the machine is."""


def mortal(point: str, since: int) -> list[str]:
    """The program of a host that dies at the point, in this round or later."""
    return [str(MORTAL), "--at", point, "--since", str(since)]


async def death(net: Net, host: DemoHost, point: str) -> int:
    """Wait for the host's death at the point and return the round in which it came."""
    await net.until(f"dies at {point}", lambda: f"dying at {point} in round" in net.log(host))
    found = re.findall(rf"dying at {point} in round (\d+)", net.log(host))
    assert await net.stage.processes[host.name].wait() == -9
    return int(found[-1])


@pytest.mark.parametrize(
    ("points", "chain_version"),
    [
        (("train",), "0.2.16"),
        (("journalled",), "0.2.0"),
        pytest.param(("encoded", "torn"), "0.2.16", marks=pytest.mark.slow),
        pytest.param(("sent", "broadcast"), "0.2.0", marks=pytest.mark.slow),
        pytest.param(("fetching", "proved", "attested"), "0.2.16", marks=pytest.mark.slow),
        pytest.param(("applying", "computed", "posted"), "0.2.16", marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
async def test_a_killed_host_never_contradicts_itself_and_is_back_in_a_round(
    tmp_path: Path, points: tuple[str, ...], chain_version: str
) -> None:
    programs = {"host-3": mortal(points[0], 1)}
    async with toy_net(
        tmp_path, rounds=100, min_weight=2, windows=PATIENT, programs=programs, chain_version=chain_version
    ) as net:
        host = net.hosts[2]
        for point, after in zip(points, (*points[1:], ""), strict=True):
            died_in = await death(net, host, point)
            del programs[host.name]
            if after:
                programs[host.name] = mortal(after, died_in + 2)
            await net.restart(host)
            back_in = died_in + 1
            line = await net.until_round_ended(net.hosts[0], back_in)
            assert host.address in line["commitments"], f"{point} in round {died_in}\n{net.log(host)[-4000:]}"
        await net.until_round_ended(host, back_in)
        await net.assert_single_words()
        await net.assert_same_roots()
