"""Claiming and assigning tasks among strangers who do the same, matching hardware, and who really asked for a run."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from gonka_devnet._pb.inference import inference_pb2 as pb
from run_log_world import CHAIN_ID, Devnet, client, devnet, key, manifest, put, sender, text
from typer.testing import CliRunner

from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sources import KvTaskSource, announce_on_kv, manifest_uri
from gonka_trainer.chain.tasks import TaskDesk
from gonka_trainer.chain.transactions import Message, create_task_message, exec_message
from gonka_trainer.cli.commands import app
from gonka_trainer.errors import ChainError, ConfigError
from gonka_trainer.manifest import Manifest, manifest_hash, render_manifest
from gonka_trainer.ports import FoundRun
from gonka_trainer.round.records import Announce
from gonka_trainer.types import Digest, Height
from tests.support.tiny_run import make_run

H100 = "NVIDIA H100 80GB"


def hardware(name: str, **nodes: list[tuple[str, int]]) -> Message:
    """Return the registration of nodes, each with its hardware; a node whose id begins with `failed` has failed."""
    listed = [
        pb.HardwareNode(
            local_id=node.encode(),
            status=5 if node.startswith("failed") else 1,
            hardware=[pb.Hardware(type=kind.encode(), count=count) for kind, count in has],
        )
        for node, has in nodes.items()
    ]
    diff = pb.MsgSubmitHardwareDiff(creator=text(name).encode(), newOrModified=listed)
    return Message(b"/inference.inference.MsgSubmitHardwareDiff", diff.SerializeToString())


def dummy(creator: str, task_id: int, requester: str, announce: Announce) -> Message:
    """Return the writing of a task in another's name, over any that has its number."""
    task = pb.TrainingTask(
        id=task_id,
        requested_by=text(requester).encode(),
        config=pb.TrainingConfig(datasets=pb.TrainingDatasets(train=manifest_uri(announce).encode())),
        assignees=[pb.TrainingTaskAssignee(participant=text("bob").encode(), node_ids=[b"n"])],
    )
    message = pb.MsgCreateDummyTrainingTask(creator=text(creator).encode(), task=task)
    return Message(b"/inference.inference.MsgCreateDummyTrainingTask", message.SerializeToString())


async def new_task(chain: ChainClient, name: str, folder: Path) -> int:
    alice = sender(chain, "alice", folder)
    task_id, _ = await announce_on_kv(chain, alice, Announce(manifest(name), b""), [(H100, 8)])
    return task_id


async def test_one_of_many_assigners(chain: ChainClient, tmp_path: Path) -> None:
    desk, task_id = TaskDesk(chain), await new_task(chain, "many assigners", tmp_path)
    bob, carol = sender(chain, "bob", tmp_path), sender(chain, "carol", tmp_path)
    queued = await desk.one(task_id)
    assert (queued.requested_by, queued.hardware, queued.assigned) == (text("alice"), ((H100, 8),), 0)
    first = await desk.claim(bob, task_id)
    assert (first.stands, first.task.assigner, first.refusal) == (True, text("bob"), "")
    over = await desk.claim(carol, task_id)  # nobody's claim holds against anybody
    assert (over.stands, over.task.assigner) == (True, text("carol"))
    nodes = ((text("bob"), ("n1", "n2")), (text("carol"), ("n1",)))
    assigned = await desk.assign(bob, task_id, nodes)  # nor does it take one to assign
    assert (assigned.stands, assigned.task.assigner, assigned.task.assignees) == (True, text("carol"), nodes)
    late = await desk.assign(carol, task_id, nodes[:1])
    assert (late.stands, late.tx_hash, late.refusal, late.task.assignees) == (False, "", "", nodes)
    assert (await desk.assign(carol, task_id, nodes)).stands  # somebody did what was wanted
    after = await desk.claim(bob, task_id)
    assert (after.stands, after.tx_hash) == (False, "")
    assert after.task.assigned > 0
    assert [task.id for task in await desk.all() if task.id <= task_id] == list(range(1, task_id + 1))


async def test_two_who_claim_and_assign_at_the_same_moment(chain: ChainClient, tmp_path: Path) -> None:
    desk, task_id = TaskDesk(chain), await new_task(chain, "at the same moment", tmp_path)
    both = [sender(chain, name, tmp_path) for name in ("bob", "carol")]
    claims = await asyncio.gather(*(desk.claim(each, task_id) for each in both))
    assert any(step.stands for step in claims)
    assert all(step.tx_hash or "1122" in step.refusal for step in claims)
    wanted = [((text(name), ("n1",)),) for name in ("bob", "carol")]
    steps = await asyncio.gather(*(desk.assign(each, task_id, to) for each, to in zip(both, wanted, strict=True)))
    assert sorted(step.stands for step in steps) == [False, True]
    assert steps[0].task.assignees == steps[1].task.assignees
    (lost,) = [step for step in steps if not step.stands]
    assert lost.tx_hash == ""
    assert "gonka-trainer task show" in lost.refusal or lost.refusal == ""


async def test_what_cannot_be_assigned(chain: ChainClient, tmp_path: Path) -> None:
    desk, task_id = TaskDesk(chain), await new_task(chain, "cannot be assigned", tmp_path)
    bob = sender(chain, "bob", tmp_path)
    await put(chain, "carol", [hardware("carol", gpu1=[(H100, 8)])])
    with pytest.raises(ConfigError, match="has no node 'gpu2'") as caught:
        await desk.assign(bob, task_id, [(text("carol"), ("gpu2",))])
    assert "gpu1" in caught.value.remedy
    with pytest.raises(ConfigError, match="has a slash"):
        await desk.assign(bob, task_id, [(text("carol"), (f"{text('carol')}/gpu1",))])
    with pytest.raises(ConfigError, match="there is no task 9999"):
        await desk.claim(bob, 9999)
    assert (await desk.one(task_id)).assigned == 0


async def test_a_chain_without_the_module(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", version="0.2.16") as net:
        async with client(net) as chain:
            with pytest.raises(ChainError, match="no training module") as caught:
                await TaskDesk(chain).claim(sender(chain, "bob", tmp_path), 1)
            assert "gonka-trainer announce" in caught.value.remedy


async def test_an_account_that_may_not_train_is_told_so(tmp_path: Path) -> None:
    allowed = [f"--allow-training={text(name)}" for name in ("alice", "carol")]
    with devnet(tmp_path / "home", *allowed, version="0.2.11") as net:
        async with client(net) as chain:
            task_id = await new_task(chain, "allow list", tmp_path)
            refused = await TaskDesk(chain).claim(sender(chain, "bob", tmp_path), task_id)
            assert (refused.stands, refused.task.assigner) == (False, "")
            assert "1139" in refused.refusal
            assert (await TaskDesk(chain).claim(sender(chain, "carol", tmp_path), task_id)).stands


async def found_task(chain: ChainClient, run: Digest) -> FoundRun:
    (found,) = [each for each in await KvTaskSource(chain, {run}).runs(Height(1)) if each.manifest_hash == run]
    return found


async def test_who_really_asked(chain: ChainClient, tmp_path: Path) -> None:
    source, real = KvTaskSource(chain, None), Announce(manifest("really asked"), b"https://example.org/m")
    task_id, _ = await announce_on_kv(chain, sender(chain, "alice", tmp_path), real)
    assert await source.vouched(await found_task(chain, real.manifest_hash))

    forged = Announce(manifest("forged"), b"")
    await put(chain, "carol", [dummy("carol", 700_001, "alice", forged)])
    found = await found_task(chain, forged.manifest_hash)
    assert (found.author, found.named) == (key("alice").address, frozenset({key("bob").address}))
    assert not await source.vouched(found)

    by_grant = Announce(manifest("by grant"), b"")
    uri = manifest_uri(by_grant)
    await put(chain, "alice", [exec_message(text("alice"), [create_task_message(text("alice"), uri)])])
    assert await source.vouched(await found_task(chain, by_grant.manifest_hash))

    # Written over by a stranger: another document's place under the same hash, in the requester's name.
    await put(chain, "carol", [dummy("carol", task_id, "alice", Announce(real.manifest_hash, b"https://evil.example"))])
    assert not await source.vouched(await found_task(chain, real.manifest_hash))


def command(*arguments: str) -> tuple[int, str]:
    told = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return told.exit_code, told.output


def write_key(folder: Path, name: str) -> str:
    path = folder / f"{name}.key"
    path.write_text(hashlib.sha256(name.encode()).hexdigest())
    path.chmod(0o600)
    return str(path)


def kv_manifest(folder: Path) -> Manifest:
    folder.mkdir()
    return replace(make_run(folder).manifest, chain_id=CHAIN_ID, carrier="kv", name="by hand")


def test_by_hand(shared_net: Devnet, tmp_path: Path) -> None:
    document = render_manifest(kv_manifest(tmp_path / "run"))
    path, run = tmp_path / "run.json", manifest_hash(document).hex()
    path.write_bytes(document)
    keys = {name: write_key(tmp_path, name) for name in ("alice", "bob", "carol")}
    node = ["--grpc", shared_net.grpc, "--rpc", f"http://{shared_net.rpc}"]

    async def register() -> None:
        async with client(shared_net) as chain:
            nodes = {"n1": [(H100, 4)], "n2": [(H100, 4), ("A100", 1)], "failed": [(H100, 8)]}
            await put(chain, "bob", [hardware("bob", **nodes)])
            await put(chain, "poor", [hardware("poor", n1=[("A100", 8)])])

    asyncio.run(register())
    code, said = command("task", "create", str(path), "--key", keys["alice"], "--hardware", f"{H100}=8", *node)
    assert (code, run in said) == (0, True), said
    task_id = said.split()[1]
    code, said = command("task", "show", task_id, "--json", *node)
    shown = json.loads(said)
    assert (shown["manifest"], shown["hardware"], shown["assignees"]) == (run, [[H100, 8]], {})
    enough = {each["participant"]: (each["node_ids"], each["suffices"]) for each in shown["matches"]}
    assert enough[text("bob")] == (["n1", "n2"], True)
    assert text("poor") not in enough

    code, said = command("task", "claim", task_id, "--key", keys["carol"], *node)
    assert (code, f"last claimed by {text('carol')}" in said) == (0, True), said
    code, said = command("task", "assign", task_id, f"{text('bob')}=n1,n2", "--key", keys["carol"], *node)
    assert (code, f"{text('bob')}: n1, n2" in said) == (0, True), said
    code, said = command("task", "claim", task_id, "--key", keys["bob"], *node)
    assert (code, "somebody else came first" in said, f"{text('bob')}: n1, n2" in said) == (2, True, True), said
    code, said = command("task", "assign", task_id, f"{text('bob')}=n1", "--key", keys["bob"], *node)
    assert code == 2, said

    config = tmp_path / "gonka-trainer.toml"
    config.write_text(_CONFIG.format(grpc=shared_net.grpc, rpc=f"http://{shared_net.rpc}", chain_id=CHAIN_ID))
    write_key(tmp_path, "bob")
    code, said = command("task", "list", "--json", "--config", str(config))
    (own,) = [each for each in json.loads(said) if each["manifest"] == run]
    assert (own["standing"], own["nodes"], own["requester"]) == ("refused", ["n1", "n2"], text("alice"))
    assert "you agreed neither to its hash" in own["why"]
    config.write_text(config.read_text() + f'\n[runs]\naccept_from = ["{text("alice")}"]\n')
    code, said = command("task", "list", "--config", str(config))
    assert f"agreed: manifest {run}\n  its manifest is not here yet\n" in said
    assert not (tmp_path / "data").exists()  # listing keeps, fetches and sends nothing


_CONFIG = """\
data_dir = "data"

[chain]
grpc = "{grpc}"
rpc = "{rpc}"
chain_id = "{chain_id}"

[keys]
account_file = "bob.key"

[exchange]
bind = "127.0.0.1:0"
advertise = "127.0.0.1:0"

[worker]
data = "run/corpus.txt"
"""
