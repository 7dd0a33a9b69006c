"""A host changes its account key and its TLS key while the run goes on: it misses no round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.opening import make_sender, open_client
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.keys import create_key, describe_key, load_key
from gonka_trainer.chain.transactions import send_message
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.exchange.identity import load_or_create_identity
from gonka_trainer.round.records import Commit, Join, StateRoot
from gonka_trainer.types import Address, sha256
from tests.e2e.harness import WINDOWS, CastStage, Net, command, toy_net
from tests.e2e.test_members import until_posted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FUND = 10**12
LONG = replace(WINDOWS, train_blocks=150, commit_blocks=50, attest_blocks=40, state_blocks=60)
"""Nobody is late on a busy machine; a round is over as soon as all have done their part."""


async def name_itself(stage: CastStage, _run: Accepted) -> None:
    """host-3 says for whom it speaks: with another key it would be somebody else otherwise."""
    key = 'account_file = "account.key"'
    stage.edits["host-3"] = {key: f'{key}\nparticipant = "{stage.hosts[2].address}"'}


def key_of(host: DemoHost) -> str:
    return encode_address(describe_key(host.folder / "account.key")[0].address, "gonka")


def takes_part(net: Net, host: DemoHost) -> bool:
    """Whether the last round that another host saw end has this one's root."""
    rounds = net.rounds(net.hosts[0])
    return bool(rounds) and host.address in rounds[-1]["states"]


def assert_took_part(net: Net, host: DemoHost, since: int) -> int:
    """In every round from `since` on this host committed and was included; return the last one that ended."""
    rounds = [line for line in net.rounds(net.hosts[0]) if line["round"] >= since]
    for line in rounds:
        assert line["outcome"] == "final", line
        assert host.address in line["commitments"], line["round"]
        assert host.address in line["included"], line["round"]
    return int(rounds[-1]["round"])


async def speakers(net: Net, participant: str) -> dict[int, set[Address]]:
    """By round, under which keys the participant's commitments and roots were said."""
    named = decode_address(participant, "gonka")
    bound = {p.author for p in await net.records() if isinstance(p.record, Join) and p.record.participant == named}
    found: dict[int, set[Address]] = {}
    for placed in await net.records():
        if isinstance(placed.record, Commit | StateRoot) and placed.author in bound:
            found.setdefault(placed.record.round, set()).add(placed.author)
    return found


async def rotate(net: Net, host: DemoHost, *arguments: str) -> None:
    said: Any = await command("keys", "rotate", "--config", str(host.config), *arguments)
    assert said[0] == 0, said


@pytest.mark.slow
async def test_a_host_changes_its_keys_and_misses_no_round(tmp_path: Path) -> None:
    async with toy_net(tmp_path, rounds=100, windows=LONG, before_start=name_itself) as net:
        first, host = net.hosts[0], net.hosts[2]
        await net.until("all take part", lambda: takes_part(net, host))
        since = net.rounds(first)[-1]["round"]
        old, waiting = key_of(host), host.folder / "account.key.next"
        await rotate(net, host, "--fund", str(FUND))
        assert waiting.exists() or key_of(host) != old
        await net.until("the new key speaks alone", lambda: not waiting.exists())
        new = key_of(host)
        assert new != old
        assert (host.folder / f"account.key.former-{old}").stat().st_mode & 0o777 == 0o600
        assert encode_address(describe_key(host.folder / f"account.key.former-{old}")[0].address, "gonka") == old

        # The TLS key: shown from the block on in which the run learns of it, fetched from and fetching all the same.
        spki = load_or_create_identity(host.data / "tls.pem").spki
        number = assert_took_part(net, host, since)
        await rotate(net, host, "--tls")
        await net.until("the new TLS key is shown", lambda: not (host.data / "tls.pem.next").exists())
        shown = load_or_create_identity(host.data / "tls.pem").spki
        assert shown != spki
        line = await until_posted(net, host, number + 2)
        assert line["states"][host.address]["root"] == line["root"]

        # Who starts again has the new keys, in the files' places.
        number = assert_took_part(net, host, since)
        net.kill(host)
        await net.restart(host)
        await net.until("it is back", lambda: net.rounds(first)[-1]["round"] > number + 1 and takes_part(net, host))
        said = await speakers(net, host.address)
        assert [keys for keys in said.values() if len(keys) != 1] == []
        order = [encode_address(next(iter(said[number])), "gonka") for number in sorted(said)]
        assert order == sorted(order, key=[old, new].index)
        assert set(order) == {old, new}
        joins = [p.record for p in await net.records() if isinstance(p.record, Join)]
        assert shown in {join.spki for join in joins}
        await net.assert_single_words()
        await net.assert_same_roots()


@pytest.mark.slow
async def test_killed_at_every_step_of_the_change_it_goes_on_at_its_next_start(tmp_path: Path) -> None:
    """The daemon's key is another than the participant's, and encrypted; the new one is so, too."""
    secret = "the passphrase of host-3"

    async def before_start(stage: CastStage, run: Accepted) -> None:
        host = stage.hosts[2]
        cold, warm = host.folder / "cold.key", host.folder / "account.key"
        warm.rename(cold)
        create_key(warm, secret.encode())
        (host.folder / "pass").write_text(secret)
        (host.folder / "pass").chmod(0o600)
        node = ["--grpc", stage.chain.grpc, "--rpc", stage.chain.rpc]
        await send(stage, cold, key_of(host), FUND)
        said = await command(
            "keys", "delegate", str(tmp_path / "manifest.json"), key_of(host), "--key", str(cold), *node
        )
        assert said[0] == 0, said
        key = 'account_file = "account.key"'
        stage.edits["host-3"] = {key: f'{key}\npassphrase_file = "pass"\nparticipant = "{host.address}"'}

    async with toy_net(tmp_path, rounds=100, min_weight=2, before_start=before_start) as net:
        first, host = net.hosts[0], net.hosts[2]
        await net.until_round_ended(first, 0)
        old, waiting = key_of(host), host.folder / "account.key.next"
        refused = await command("keys", "rotate", "--config", str(host.config), "--fund", str(FUND))
        assert refused[0] == 1, refused
        assert "give its --key FILE" in refused[2]

        # Down while the command is given; killed as soon as the new key is seen, and when its join is on chain.
        net.kill(host)
        await net.stage.processes[host.name].wait()
        await rotate(net, host, "--fund", str(FUND // 2), "--key", str(host.folder / "cold.key"))
        new = encode_address(describe_key(waiting)[0].address, "gonka")
        assert describe_key(waiting)[1]
        await net.restart(host)
        await net.until("the new key is seen", lambda: "a new account key waits" in net.log(host))
        net.kill(host)
        joins = joined(net, host)
        await net.restart(host)
        await net.until("its join is on chain", lambda: joined(net, host) > joins or not waiting.exists())
        if waiting.exists():
            net.kill(host)
            await net.restart(host)
        await net.until("the new key speaks alone", lambda: not waiting.exists())
        assert load_key(host.folder / "account.key", secret.encode).address == decode_address(new, "gonka")
        number = net.rounds(first)[-1]["round"]
        line = await until_posted(net, host, number + 1)
        assert line["states"][host.address]["root"] == line["root"]
        said = await speakers(net, host.address)
        assert [keys for keys in said.values() if len(keys) != 1] == []
        assert {encode_address(next(iter(keys)), "gonka") for keys in said.values()} == {old, new}
        await net.assert_single_words()
        await net.assert_same_roots()
        told = net.log(host) + "".join(p.read_text(errors="replace") for p in (host.data).rglob("*.json*"))
        assert secret not in told
        for key in (host.folder / "account.key", host.folder / f"account.key.former-{old}"):
            assert load_key(key, secret.encode).file_content(None).decode().strip() not in told


def joined(net: Net, host: DemoHost) -> int:
    return len([line for line in net.transactions(host) if line["record"] == "Join"])


async def send(stage: CastStage, key: Path, recipient: str, amount: int) -> None:
    """Send an account its first coins."""
    async with open_client(stage.chain) as client:
        sender = make_sender(client, stage.chain, load_key(key), key.parent / "sent-first")
        message = send_message(sender.text, recipient, amount, "ngonka")
        await sender.deliver(sha256(recipient.encode()), [message])
