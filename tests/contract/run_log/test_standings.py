"""How runs on a real chain stand with a host: announcements, tasks, and what an old node no longer shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gonka_devnet._pb.inference import inference_pb2 as pb
from run_log_world import CHAIN_ID, block_at, client, devnet, key, put, sender, text

from gonka_trainer.app.accepted import Accepted, AcceptedRuns, accept
from gonka_trainer.app.carriers import run_log, task_sources
from gonka_trainer.app.finding import Finder
from gonka_trainer.app.host import run_folder
from gonka_trainer.app.policy import Answer
from gonka_trainer.app.standing import Standings
from gonka_trainer.app.visitor import Visitor
from gonka_trainer.chain.attribution import MemoCarrier
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sources import KvTaskSource, MemoTaskSource, announce_on_memo, manifest_uri
from gonka_trainer.chain.transactions import Message, assign_task_message, create_task_message
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, RunsConfig, WorkerConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.exchange.identity import load_or_create_identity
from gonka_trainer.manifest import render_manifest
from gonka_trainer.ports import FoundRun
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.round.records import Announce, Join
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import Digest, Height, Role
from tests.support.tiny_run import make_run


def config(folder: Path, chain_id: str = CHAIN_ID, **runs: Any) -> Config:
    return Config(
        data_dir=str(folder / "data"),
        chain=ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", chain_id),
        keys=KeyConfig("account.key"),
        exchange=ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        worker=WorkerConfig(str(folder / "corpus.txt")),
        runs=RunsConfig(**runs),
    )


def standings(settings: Config, chain: ChainClient) -> Standings:
    """What bob's host makes of it, with nothing remembered but what is on disk."""
    finder = Finder(chain, task_sources(chain, None))
    return Standings(settings, key("bob").address, chain, finder, AcceptedRuns(settings.data_path))


async def listed(settings: Config, chain: ChainClient) -> dict[Digest, tuple[str, str, str]]:
    asked = standings(settings, chain)
    await asked.look(everything=True)
    return {line.manifest_hash: (line.standing, line.why, line.author) for line in await asked.lines()}


def new_run(folder: Path, name: str, **changes: Any) -> Accepted:
    manifest = replace(make_run(folder).manifest, chain_id=CHAIN_ID, name=name, **changes)
    return accept(render_manifest(manifest), name)


async def test_announcements(chain: ChainClient, tmp_path: Path) -> None:
    asked, foreign, agreed, left = (new_run(tmp_path, name) for name in ("asked", "foreign", "agreed", "left"))
    alice, carol = sender(chain, "alice", tmp_path), sender(chain, "carol", tmp_path)
    await announce_on_memo(chain, carol, Announce(asked.hash, b"https://evil.example"))  # before the requester does
    for run in (asked, left):
        await announce_on_memo(chain, alice, Announce(run.hash, b""))
    for run in (foreign, agreed):
        await announce_on_memo(chain, carol, Announce(run.hash, b""))
    settings = config(tmp_path, accept_from=(text("alice"),), accept=(agreed.hash.hex(),))
    runs = AcceptedRuns(settings.data_path)
    runs.leave(left.hash)
    here = "its manifest is not here yet"
    found = await listed(settings, chain)
    assert found[asked.hash] == ("agreed", here, text("alice"))
    assert found[agreed.hash] == ("agreed", here, text("carol"))
    assert found[foreign.hash][:2] == ("refused", found[foreign.hash][1])
    assert "nor to its requester" in found[foreign.hash][1]
    assert "you left it" in found[left.hash][1]

    for run, origin in ((asked, "alice"), (foreign, "carol")):
        runs.take(run, FoundRun(run.hash, "", key(origin).address, Height(1), 0))
    found = await listed(settings, chain)
    assert found[asked.hash][:2] == ("agreed", "")
    assert found[foreign.hash][0] == "refused"  # its document's being here allows nothing
    no_more = replace(settings, runs=replace(settings.runs, accept_from=()))
    assert (await listed(no_more, chain))[asked.hash][0] == "refused"
    small = replace(settings, runs=replace(settings.runs, max_parameters=10))
    assert "runs.max_parameters is 10" in (await listed(small, chain))[asked.hash][1]
    (tmp_path / "corpus.txt").unlink()
    assert "worker.data" in (await listed(settings, chain))[asked.hash][1]


async def test_what_is_wrong_with_a_run_for_this_chain(chain: ChainClient, tmp_path: Path) -> None:
    elsewhere = new_run(tmp_path, "elsewhere")
    elsewhere = accept(render_manifest(replace(elsewhere.manifest, chain_id="chain-2")), "elsewhere")
    await announce_on_memo(chain, sender(chain, "carol", tmp_path), Announce(elsewhere.hash, b""))
    settings = config(tmp_path)
    AcceptedRuns(settings.data_path).add(elsewhere)
    standing, why, _ = (await listed(settings, chain))[elsewhere.hash]
    assert (standing, why) == ("refused", f"its manifest is for chain chain-2, this is {CHAIN_ID}")


async def test_a_task_without_an_assignment_names_nobody(chain: ChainClient, tmp_path: Path) -> None:
    run = new_run(tmp_path, "nobody", carrier="kv")
    uri = f"gonka-trainer:manifest/{run.hash.hex()}"
    await put(chain, "alice", [create_task_message(text("alice"), uri)])
    found = await listed(config(tmp_path, accept_from=(text("alice"),)), chain)
    assert found[run.hash][:2] == ("refused", "the task is assigned to nobody yet")


async def test_a_task_that_is_written_over_stops_nobody_who_has_begun(chain: ChainClient, tmp_path: Path) -> None:
    run = new_run(tmp_path, "written over", carrier="kv")
    announce = Announce(run.hash, b"")
    await put(chain, "alice", [create_task_message(text("alice"), manifest_uri(announce))])
    settings = config(tmp_path, accept_from=(text("alice"),))
    (found,) = [r for r in await KvTaskSource(chain, {run.hash}).runs(Height(1)) if r.manifest_hash == run.hash]
    await put(chain, "carol", [assign_task_message(text("carol"), found.task_id, [(text("bob"), ["n1"])])])
    assert (await listed(settings, chain))[run.hash][0] == "agreed"
    (found,) = await KvTaskSource(chain, {run.hash}).runs(Height(1))
    AcceptedRuns(settings.data_path).take(run, found)
    (run_folder(settings, run) / "journal").mkdir(parents=True)

    nobody = pb.TrainingTask(id=found.task_id, requested_by=text("alice").encode())
    nobody.config.datasets.train = manifest_uri(announce).encode()
    dummy = pb.MsgCreateDummyTrainingTask(creator=text("carol").encode(), task=nobody)
    kind = b"/inference.inference.MsgCreateDummyTrainingTask"
    await put(chain, "carol", [Message(kind, dummy.SerializeToString())])
    (over,) = await KvTaskSource(chain, {run.hash}).runs(Height(1))
    assert over.named == frozenset()
    assert (await listed(settings, chain))[run.hash][:2] == ("agreed", "")


async def test_a_run_that_has_begun_is_found_on_a_node_that_has_forgotten_it(tmp_path: Path) -> None:
    """A restart: neither index nor old blocks show the announcement any more."""
    with devnet(tmp_path / "home", version="0.2.16", block_seconds=0.05) as net:
        async with client(net) as chain:
            agreed, taken, waiting = (new_run(tmp_path, name) for name in ("agreed", "taken", "waiting"))
            for run in (agreed, taken, waiting):
                receipt = await announce_on_memo(chain, sender(chain, "alice", tmp_path), Announce(run.hash, b""))
            settings = config(tmp_path, accept_from=(text("alice"),))
            runs = AcceptedRuns(settings.data_path)
            (first,) = [r for r in await MemoTaskSource(chain, {taken.hash}).runs(Height(1)) if r.task_id == 0]
            runs.add(agreed)
            runs.take(taken, first)
            runs.add(waiting)
            for run in (agreed, taken):
                (run_folder(settings, run) / "journal").mkdir(parents=True)

            await block_at(chain, receipt.height + 20)
            net.fault("index", on=False)
            net.fault("prune", below=receipt.height + 15, blocks=True)
            asked = standings(settings, chain)
            await asked.look()
            found = {each.found.manifest_hash: each.decision.answer for each in await asked.standings()}
            assert found == {agreed.hash: Answer.START, taken.hash: Answer.START}
            no_more = replace(settings, runs=replace(settings.runs, accept_from=()))
            (refused,) = [each for each in await standings(no_more, chain).standings() if each.accepted == taken]
            assert refused.decision.answer is Answer.REFUSED


async def test_a_visitor_with_a_members_key_is_refused(chain: ChainClient, tmp_path: Path) -> None:
    height = (await chain.info()).height
    run = new_run(tmp_path, "visited", log_height=height, start_height=height + 10)
    alice = sender(chain, "alice", tmp_path)
    carrier = MemoCarrier(topic(run_id(CHAIN_ID, run.hash)), "gonka")
    join = Join(alice.address, Role.MEMBER, Digest(bytes(32)), b"host.example", 7070, b"0.1.0", Height(1))
    receipt = await run_log(alice, carrier).publish([join])
    identity = load_or_create_identity(tmp_path / "tls.pem")
    with ObjectStore(tmp_path / "store") as store:
        visitor = Visitor(chain, alice, identity, store)
        with pytest.raises(ConfigError, match="speaks for a member of the run"):
            await visitor.manifest(run.hash, "memo", Height(run.manifest.log_height))
        nobody = Visitor(chain, sender(chain, "carol", tmp_path), identity, store)
        other = new_run(tmp_path, "empty")
        with pytest.raises(ConfigError, match="nobody is in the run"):
            await nobody.manifest(other.hash, "memo", Height(receipt.height))
    assert not list((tmp_path / "sent-carol").glob("*"))
