"""All hosts end every round with the same root, on both generations of the chain, and it is the reference's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gonka_trainer.cli.demo.stage import DemoHost
from tests.e2e.harness import Net, toy_net
from tests.e2e.reference import Reference

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def check_cost(net: Net, host: DemoHost) -> None:
    """At most four transactions a round and host, of less than 700 bytes each; the figures are printed."""
    spoken = [t for t in net.transactions(host) if t["record"] != "Join"]
    by_round = {number: [t["bytes"] for t in spoken if t["round"] == number] for number in range(3)}
    print(host.name, {number: (len(sizes), sum(sizes)) for number, sizes in by_round.items()})
    for number, sizes in by_round.items():
        assert 1 <= len(sizes) <= 4, (number, spoken)  # who is late finds its attestation or root no longer needed
        assert max(sizes) < 700


@pytest.mark.parametrize(
    ("chain_version", "codec"),
    [
        ("0.2.0", "int8"),
        ("0.2.16", "f32"),
        pytest.param("0.2.11", "int8", marks=pytest.mark.slow),
        pytest.param("0.2.16", "int8", marks=pytest.mark.slow),
        pytest.param("0.2.16", "int4", marks=pytest.mark.slow),
        pytest.param("0.2.0", "bf16", marks=pytest.mark.slow),
    ],
)
async def test_all_hosts_post_the_reference_root_every_round(tmp_path: Path, chain_version: str, codec: str) -> None:
    async with toy_net(tmp_path, chain_version=chain_version, rounds=3, min_weight=3, codec=codec) as net:
        await net.until_ended()
        for host in net.hosts:
            rounds = net.rounds(host)
            assert [r["outcome"] for r in rounds] == ["final"] * 3, net.log(host)
            for r in rounds:
                assert len(r["included"]) == 3
                assert {post["root"] for post in r["states"].values()} == {r["root"]}
        histories = [[(r["root"], r["included"], r["heights"]) for r in net.rounds(host)] for host in net.hosts]
        assert histories[0] == histories[1] == histories[2]
        reference = Reference(tmp_path / "manifest.json", net.blobs)
        for r in net.rounds(net.hosts[0]):
            reference.apply(r)
            assert reference.root() == r["root"]
        commits = [t for host in net.hosts for t in net.transactions(host) if t["record"] == "Commit"]
        assert len(commits) == 9
        for host in net.hosts:
            check_cost(net, host)
