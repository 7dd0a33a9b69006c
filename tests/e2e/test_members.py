"""Members come late, are dropped and come back, leave, and speak through another key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.chain.address import decode_address
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.round.records import Commit, StateRoot
from tests.e2e.harness import WINDOWS, CastStage, Net, command, toy_net

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LONG = replace(WINDOWS, train_blocks=150, commit_blocks=50, attest_blocks=40, state_blocks=60)
SHORT = replace(WINDOWS, train_blocks=40, commit_blocks=30, attest_blocks=30, absent_rounds=2)
"""A round that waits for a host that is down is over soon."""


def absent(*names: str) -> Any:
    """Hosts that are not started with the others."""

    async def before_start(stage: CastStage, _run: Accepted) -> None:
        stage.absent.update(names)

    return before_start


async def start(net: Net, host: DemoHost) -> None:
    net.stage.absent.discard(host.name)
    await net.stage.start_host(host)


async def until_posted(net: Net, host: DemoHost, after: int) -> dict[str, Any]:
    """Wait for a final round above `after` in which the host is included and posted the root; return it."""

    def found() -> list[dict[str, Any]]:
        return [
            r
            for r in net.rounds(net.hosts[0])
            if r["round"] > after and host.address in r["included"] and host.address in r["states"]
        ]

    await net.until(f"{host.name} takes part", lambda: bool(found()), 240)
    return found()[0]


def seats(line: dict[str, Any]) -> set[str]:
    return {seat["participant"] for seat in line["roster"]}


async def test_a_late_participant_reads_syncs_takes_part_and_leaves(tmp_path: Path) -> None:
    async with toy_net(tmp_path, rounds=100, min_weight=2, windows=LONG, before_start=absent("host-3")) as net:
        first, late = net.hosts[0], net.hosts[2]
        line = await net.until_round_ended(first, 1)
        assert [r["outcome"] for r in net.rounds(first)][:2] == ["final", "final"]
        assert late.address not in seats(line)
        await start(net, late)
        line = await until_posted(net, late, 1)
        assert line["states"][late.address]["root"] == line["root"]
        # Nobody gave it anything but the manifest and the chain: what it trained on was fetched, by the root on chain.
        synced = "gonka_trainer.daemon.applying: round 0: state root"
        assert synced in net.log(first)
        assert synced not in net.log(late)

        left = await command("leave", str(tmp_path / "manifest.json"), "--config", str(late.config))
        assert left[0] == 0, left
        await net.until("the roster is without it", lambda: late.address not in seats(net.rounds(first)[-1]))
        number = net.rounds(first)[-1]["round"]
        line = await net.until_round_ended(first, number + 1)
        assert line["outcome"] == "final"
        assert late.address not in seats(line)
        await net.assert_single_words()
        await net.assert_same_roots()


@pytest.mark.slow
async def test_a_participant_that_was_dropped_comes_back(tmp_path: Path) -> None:
    async with toy_net(tmp_path, rounds=100, min_weight=2, windows=SHORT) as net:
        first, lost = net.hosts[0], net.hosts[2]
        line = await until_posted(net, lost, -1)
        net.kill(lost)
        await net.until("it is dropped", lambda: lost.address not in seats(net.rounds(first)[-1]), 240)
        rounds = net.rounds(first)
        absences = [r for r in rounds if lost.address in seats(r) and lost.address not in r["commitments"]]
        assert len([r for r in absences if r["outcome"] == "final"]) == SHORT.absent_rounds
        await net.restart(lost)
        line = await until_posted(net, lost, rounds[-1]["round"])
        assert line["states"][lost.address]["root"] == line["root"]
        await net.until_round_ended(lost, line["round"])
        await net.assert_single_words()
        await net.assert_same_roots()


@pytest.mark.slow
async def test_a_key_speaks_for_the_account_that_delegated_to_it(tmp_path: Path) -> None:
    """host-4 is an account alone: its key stays cold, and host-3's daemon speaks for it."""

    async def before_start(stage: CastStage, _run: Accepted) -> None:
        stage.absent.add("host-4")
        cold = stage.hosts[3].address
        key = 'account_file = "account.key"'
        stage.edits["host-3"] = {key: f'{key}\nparticipant = "{cold}"'}

    async with toy_net(tmp_path, hosts=4, rounds=100, min_weight=2, windows=SHORT, before_start=before_start) as net:
        first, daemon, cold = net.hosts[0], net.hosts[2], net.hosts[3]
        line = await net.until_round_ended(first, 0)
        assert seats(line) == {h.address for h in net.hosts[:2]}
        node = ["--grpc", net.stage.chain.grpc, "--rpc", net.stage.chain.rpc]
        key = str(cold.folder / "account.key")
        said = await command("keys", "delegate", str(tmp_path / "manifest.json"), daemon.address, "--key", key, *node)
        assert said[0] == 0, said
        line = await until_posted(net, cold, 0)
        assert line["states"][cold.address]["root"] == line["root"]
        assert daemon.address not in seats(line)
        authors = {
            placed.author
            for placed in await net.records()
            if isinstance(placed.record, Commit | StateRoot) and placed.record.round == line["round"]
        }
        speaker = decode_address(daemon.address, "gonka")
        assert speaker in authors
        assert decode_address(cold.address, "gonka") not in authors

        said = await command(
            "keys", "delegate", "--revoke", str(tmp_path / "manifest.json"), daemon.address, "--key", key, *node
        )
        assert said[0] == 0, said
        await net.until("it speaks no more", lambda: cold.address not in seats(net.rounds(first)[-1]), 240)
        await net.assert_single_words()
        await net.assert_same_roots(net.hosts[:3])
