"""Tasks that hosts find on the chain by themselves: from a requester on their list, and from strangers."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from gonka_devnet._pb.inference import inference_pb2 as pb

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.opening import make_sender, open_client
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.attribution import decode_body, kv_claims
from gonka_trainer.chain.keys import create_key, load_key
from gonka_trainer.chain.sources import created_task, manifest_uri
from gonka_trainer.chain.transactions import Message, assign_task_message, create_task_message
from gonka_trainer.cli.demo.stage import DemoHost
from gonka_trainer.manifest import render_manifest
from gonka_trainer.round.naming import run_id
from gonka_trainer.round.records import Announce
from gonka_trainer.types import Height, sha256
from tests.e2e.harness import WINDOWS, CastStage, Net, command, numpy_command, toy_manifest
from tests.support.https_server import HttpsServer, https_server
from tests.support.tiny_run import text

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

LONG = replace(WINDOWS, train_blocks=100, commit_blocks=80, attest_blocks=40, state_blocks=60)
FUNDS = 10**15


class ListedStage(CastStage):
    """A stage whose devnet lets every account train, where the chain has lists of who may."""

    async def _devnet(self, accounts: list[str]) -> dict[str, Any]:
        named = [flag.partition("=")[0] for flag in [*accounts, *self._devnet_flags] if "=" in flag]
        lists = [flag for name in named for flag in ("--allow-training", name)]
        return await super()._devnet([*accounts, *(lists if self._chain_version == "0.2.11" else [])])


@dataclass
class Cast:
    """Hosts whose operators have agreed to nothing yet, a requester's run, and accounts that are nobody's hosts."""

    net: Net
    web: HttpsServer
    keys: dict[str, Path]

    @property
    def node(self) -> list[str]:
        chain = self.net.stage.chain
        return ["--grpc", chain.grpc, "--rpc", chain.rpc]

    @property
    def requester(self) -> str:
        return self.address(self.net.stage.researcher)

    @staticmethod
    def address(key: Path) -> str:
        return encode_address(load_key(key).address, "gonka")

    async def send(self, name: str, *messages: Message) -> bytes:
        """Send as one of the accounts; return the result's data."""
        chain = self.net.stage.chain
        async with open_client(chain) as client:
            sender = make_sender(client, chain, load_key(self.keys[name]), self.net.out / f"sent-{name}")
            _, data = await sender.deliver(sha256(*(each.value for each in messages)), messages)
        return data

    async def start(self, host: DemoHost, **runs: Any) -> None:
        """Start a host whose operator's list says this, and nothing else."""
        settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in runs.items())
        host.config.write_text(f"{host.config.read_text()}\n[runs]\n{settings}")
        shutil.rmtree(host.data, ignore_errors=True)
        self.net.stage.absent.discard(host.name)
        await self.net.stage.start_host(host)
        await self.net.until("it waits", lambda: "no agreed run is on chain yet" in self.net.log(host))

    async def listed(self, host: DemoHost) -> dict[str, tuple[str, str]]:
        """What `task list` says of every run: manifest -> standing, why."""
        code, out, err = await command("task", "list", "--json", "--config", str(host.config))
        assert code == 0, err
        return {each["manifest"]: (each["standing"], each["why"]) for each in json.loads(out)}


@asynccontextmanager
async def cast(out: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cast]:
    keys = {name: out / f"{name}.key" for name in ("assigner", "stranger")}
    funds = [f"{encode_address(create_key(path).address, 'gonka')}={FUNDS}" for path in keys.values()]
    flags = tuple(flag for each in funds for flag in ("--account", each))
    data = out / "corpus.txt"
    data.write_bytes(text())
    async with https_server(out) as web, ListedStage(out, 3, version, 0.3, {}, flags) as stage:
        monkeypatch.setenv("SSL_CERT_FILE", str(web.authority))
        await stage.start_chain()
        stage.absent |= {host.name for host in stage.hosts}
        run = await new_run(stage, data, "toy")
        (out / "manifest.json").write_bytes(run.document)
        await stage.start_hosts(run, data, numpy_command())
        yield Cast(Net(out, stage, run, out / "blobs"), web, keys)


async def new_run(stage: ListedStage, data: Path, name: str) -> Accepted:
    async with open_client(stage.chain) as client:
        height = (await client.info()).height
    document = render_manifest(toy_manifest(stage, height, data, "kv", 2, LONG, 2, name=name))
    return accept(document, name)


async def strangers_tasks(all_: Cast) -> list[Accepted]:
    """Tasks for a stranger's runs that name every host: one in its own name, one in the requester's."""
    net, named = all_.net, [(host.address, ["n1"]) for host in all_.net.hosts]
    runs = [await new_run(net.stage, net.out / "corpus.txt", name) for name in ("stranger's", "forged")]
    stranger = all_.address(all_.keys["stranger"])
    uris = []
    for run in runs:
        path = f"/{run.manifest.name[:6]}.json"
        all_.web.files[path] = run.document
        uris.append(manifest_uri(Announce(run.hash, (all_.web.url + path).encode())))
    task_id = created_task(await all_.send("stranger", create_task_message(stranger, uris[0])))
    assert task_id is not None
    await all_.send("stranger", assign_task_message(stranger, task_id, named))
    forged = pb.TrainingTask(
        id=70_000,
        requested_by=all_.requester.encode(),
        config=pb.TrainingConfig(datasets=pb.TrainingDatasets(train=uris[1].encode())),
        assignees=[pb.TrainingTaskAssignee(participant=who.encode(), node_ids=[b"n1"]) for who, _ in named],
    )
    dummy = pb.MsgCreateDummyTrainingTask(creator=stranger.encode(), task=forged)
    kind = b"/inference.inference.MsgCreateDummyTrainingTask"
    await all_.send("stranger", Message(kind, dummy.SerializeToString()))
    return runs


async def authors(net: Net) -> set[str]:
    """Who wrote key-value records on the chain, under any task."""
    found = set()
    async with open_client(net.stage.chain) as client:
        for height in range(1, (await client.info()).height + 1):
            for raw in (await client.block(Height(height))).transactions:
                body = decode_body(raw)
                assert body is not None
                found |= {encode_address(claim.author, "gonka") for _, claim in kv_claims(body, "gonka")}
    return found


async def task_command(*arguments: str) -> str:
    code, out, err = await command("task", *arguments)
    assert code == 0, f"{arguments}: {out}\n{err}"
    return out


@pytest.mark.parametrize("version", ["0.2.0", pytest.param("0.2.11", marks=pytest.mark.slow)])
async def test_a_requesters_task_starts_by_itself_and_nobody_elses_does(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cast(tmp_path, version, monkeypatch) as all_:
        net = all_.net
        first, second, without = net.hosts
        foreign = await strangers_tasks(all_)
        await all_.start(first, accept_from=[all_.requester], downloads=True)
        await all_.start(second, accept_from=[all_.requester], max_parameters=1024)  # the document comes from the first
        await all_.start(without)

        all_.web.files |= {"/moved": f"{all_.web.url}/toy.json", "/toy.json": net.run.document}
        researcher, assigner = str(net.stage.researcher), str(all_.keys["assigner"])
        url = f"{all_.web.url}/moved"
        said = await task_command(
            "create", str(tmp_path / "manifest.json"), "--key", researcher, "--url", url, *all_.node
        )
        task_id = said.split()[1]
        listed = await all_.listed(first)
        assert listed[net.run.hash.hex()] == ("refused", "the task is assigned to nobody yet")
        await task_command("claim", task_id, "--key", assigner, *all_.node)
        nodes = [f"{host.address}=n1" for host in net.hosts]
        await task_command("assign", task_id, *nodes, "--key", assigner, *all_.node)

        await net.until_round_ended(first, 0)
        net.kill(first)
        await net.restart(first)
        await net.until_ended((first, second))
        assert [r["outcome"] for r in net.rounds(second)] == ["final", "final"]
        for run in [net.run, *foreign]:
            assert (await all_.listed(without))[run.hash.hex()] == ("refused", NOT_AGREED)
        listed = await all_.listed(first)
        assert listed[net.run.hash.hex()] == ("over", "")
        assert listed[foreign[0].hash.hex()] == ("refused", NOT_AGREED)
        assert "its requester did not sign it" in listed[foreign[1].hash.hex()][1]
        await assert_nothing_of(all_, foreign)


NOT_AGREED = "you agreed neither to its hash (`gonka-trainer join HASH`) nor to its requester (runs.accept_from)"


async def assert_nothing_of(all_: Cast, foreign: list[Accepted]) -> None:
    """No host fetched, started or paid for a stranger's run, and the one without a list did nothing at all."""
    net = all_.net
    first, second, without = net.hosts
    assert all_.web.asked == ["/moved", "/toy.json"]
    for host in net.hosts:
        for run in foreign:
            assert not (host.data / "runs" / run_id(run.manifest.chain_id, run.hash).hex()[:16]).exists()
            assert not list(host.data.glob(f"accepted/{run.hash.hex()}*"))
    assert not (without.data / "runs").exists()
    assert not (without.data / "tls.pem").exists()
    assert await authors(net) == {all_.requester, first.address, second.address}
