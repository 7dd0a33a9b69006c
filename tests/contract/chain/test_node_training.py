"""The training module of Gonka v0.2.0 - v0.2.11, its quirks included, and chains that have none."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from node_world import TRAINING, Node, account, block_at, code_of, encoded, put, sender, signed
from test_node_grants import grant

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2 as wire
from gonka_trainer.chain.attribution import KvCarrier, block_records
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.runlog import KvRunLog
from gonka_trainer.chain.transactions import (
    CREATE_TASK_TYPE,
    KV_TYPE,
    Message,
    create_task_message,
    exec_message,
    kv_message,
    responses,
)
from gonka_trainer.errors import ChainError
from gonka_trainer.round.records import Commit, Heartbeat, to_text
from gonka_trainer.types import Digest, sha256

MSG = b"/inference.inference.Msg"
D = Digest(bytes(range(32)))


async def new_task(node: Node, chain: ChainClient, key: AccountKey) -> int:
    """Create a task and return its id from the result."""
    node.need("training")
    made = await put(node, chain, key, [create_task_message(node.text(key), node.topic(), [("H100", 8)])])
    if made.result.code == 1139:
        pytest.skip("the keys are on no allow list for training")
    assert made.result.code == 0, made.result.log
    (response,) = responses(made.result.data)
    return wire.MsgCreateTrainingTaskResponse.FromString(response).task.id


def record(node: Node, task: int, key: str) -> bytes:
    """What the store holds under the key, as its protobuf bytes."""
    return node.call(TRAINING + "TrainingKvRecord", encoded((1, task), (2, key)))


async def test_a_task_is_created_and_listed(node: Node, chain: ChainClient) -> None:
    task = await new_task(node, chain, node.key(1))
    assert task >= 1
    found = [each for each in await chain.tasks() if each.id == task]
    assert [each.requested_by for each in found] == [node.text(node.key(1)).encode()]
    raw = node.call(TRAINING + "TrainingTask", encoded((1, task)))
    assert wire.QueryTrainingTaskResponse.FromString(raw).task.id == task
    with pytest.raises(grpc.RpcError) as caught:
        node.call(TRAINING + "TrainingTask", encoded((1, task + 1000)))
    assert code_of(caught) == (grpc.StatusCode.NOT_FOUND, "task not found")


async def test_a_record_is_in_the_block_and_its_state_is_anybodys(
    node: Node, chain: ChainClient, tmp_path: Path
) -> None:
    own, stranger = node.key(1), await account(node, chain, tmp_path)
    task = await new_task(node, chain, own)
    carrier = KvCarrier(task, node.prefix)
    first = await put(node, chain, own, [kv_message(node.text(own), task, "k", to_text(Commit(1, D)))])
    assert node.text(own).encode() in record(node, task, "k")
    second = await put(node, chain, stranger, [kv_message(node.text(stranger), task, "k", to_text(Heartbeat(1, 1)))])
    assert node.text(own).encode() not in record(node, task, "k"), "the last writer wins"
    assert node.text(stranger).encode() in record(node, task, "k")
    for included, key, said in ((first, own, Commit(1, D)), (second, stranger, Heartbeat(1, 1))):
        found = block_records(await block_at(node, chain, included.height), carrier)
        assert [(each.author, each.record) for each in found] == [(key.address, said)]
    keys = node.call(TRAINING + "ListTrainingKvRecordKeys", encoded((1, task)))
    assert keys == encoded((1, "k"))
    with pytest.raises(grpc.RpcError) as caught:
        record(node, task, "other")
    assert code_of(caught)[0] is grpc.StatusCode.NOT_FOUND


async def test_keys_values_and_tasks_that_are_taken_or_not(node: Node, chain: ChainClient) -> None:
    own = node.text(node.key(1))
    task = await new_task(node, chain, node.key(1))
    for key, value, of_task in (("a/b/é", "v", task), ("k", "v" * 4000, task), ("k", "v", task + 10**6)):
        included = await put(node, chain, node.key(1), [kv_message(own, of_task, key, value)])
        assert included.result.code == 0, included.result.log
    for key, value in (("", "v"), ("k", "")):
        refused = await signed(node, chain, node.key(1), [kv_message(own, task, key, value)])
        answer = await chain.tx.broadcast(refused.transaction)
        assert (answer.codespace, answer.code) == ("sdk", 18)


async def test_records_by_grant(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    """The author is the participant, though the warm key signs."""
    cold, warm = node.key(1), await account(node, chain, tmp_path)
    task = await new_task(node, chain, cold)
    log = KvRunLog(sender(node, chain, warm, tmp_path / "sent", acts_for=cold.address), task, node.prefix)
    with pytest.raises(ChainError, match="authorization not found"):
        await log.publish([Commit(1, D)])
    assert (await put(node, chain, cold, [grant(node, cold, warm, KV_TYPE)])).result.code == 0
    receipt = await log.publish([Commit(1, D), Heartbeat(1, 2)])
    found = log.records(await block_at(node, chain, receipt.height))
    said = [(each.author, each.message, each.record) for each in found]
    assert said == [(cold.address, 0, Commit(1, D)), (cold.address, 1, Heartbeat(1, 2))]
    request = encoded((1, node.text(cold)), (2, KV_TYPE))
    assert node.text(warm).encode() in node.call(TRAINING + "GranteesByMessageType", request)


async def test_a_task_by_grant(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    """The response is inside that of MsgExec."""
    cold, warm = node.key(1), await account(node, chain, tmp_path)
    await new_task(node, chain, cold)
    assert (await put(node, chain, cold, [grant(node, cold, warm, CREATE_TASK_TYPE)])).result.code == 0
    acting = sender(node, chain, warm, tmp_path / "sent", acts_for=cold.address)
    creation = create_task_message(acting.author_text, "by grant", [])
    _, data = await acting.deliver(sha256(b"task by grant"), [creation])
    created = wire.MsgCreateTrainingTaskResponse.FromString(responses(data)[0]).task
    assert created.id > 0
    assert [t.requested_by for t in await chain.tasks() if t.id == created.id] == [node.text(cold).encode()]


async def test_inside_an_execution_all_count(node: Node, chain: ChainClient) -> None:
    own = node.text(node.key(1))
    task = await new_task(node, chain, node.key(1))
    values = [Commit(step, D) for step in range(3)]
    inside = [kv_message(own, task, str(step), to_text(value)) for step, value in enumerate(values)]
    nested = exec_message(own, [inside[0], exec_message(own, inside[1:])])
    included = await put(node, chain, node.key(1), [nested])
    assert included.result.code == 0, included.result.log
    found = block_records(await block_at(node, chain, included.height), KvCarrier(task, node.prefix))
    assert [(each.message, each.record) for each in found] == list(enumerate(values))


async def test_quirks_that_clients_must_survive(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    stranger = await account(node, chain, tmp_path)
    task = await new_task(node, chain, node.key(1))
    own = node.text(stranger)
    alive = TRAINING + "TrainingAliveNodes"
    for request in (b"", encoded((1, encoded((1, task))))):
        with pytest.raises(grpc.RpcError) as caught:
            node.call(alive, request)
        assert code_of(caught)[0] is grpc.StatusCode.INTERNAL
    unknown = Message(MSG + b"JoinTraining", encoded((1, own), (2, encoded((1, f"{own}/n"), (2, task + 1000)))))
    failed = await put(node, chain, stranger, [unknown])
    assert (failed.result.codespace, failed.result.code) == ("undefined", 1)
    beat = encoded((1, f"{own}/never-joined"), (2, task))
    included = await put(node, chain, stranger, [Message(MSG + b"TrainingHeartbeat", encoded((1, own), (2, beat)))])
    assert included.result.code == 1, "no run of an unassigned task"
    claim = Message(MSG + b"ClaimTrainingTaskForAssignment", encoded((1, own), (2, task)))
    assert (await put(node, chain, stranger, [claim])).result.code == 0, "anybody may claim"
    assignee = encoded((1, node.text(node.key(0))), (2, "node-1"))
    assign = Message(MSG + b"AssignTrainingTask", encoded((1, own), (2, task), (3, assignee)))
    assigned = await put(node, chain, stranger, [assign])
    assert assigned.result.code == 0, assigned.result.log
    again = await put(node, chain, stranger, [claim], memo=b"again")
    assert (again.result.codespace, again.result.code) == ("inference", 1122)
    lost = Message(MSG + b"ClaimTrainingTaskForAssignment", encoded((1, own), (2, task + 1000)))
    failed = await put(node, chain, stranger, [lost])
    assert (failed.result.codespace, failed.result.code) == ("inference", 1120)


async def test_a_chain_without_the_module_says_so(node: Node, chain: ChainClient, tmp_path: Path) -> None:
    node.need("no training")
    assert not (await chain.info()).training_module
    assert list(await chain.tasks()) == []
    with pytest.raises(grpc.RpcError) as caught:
        node.call(TRAINING + "TrainingTaskAll")
    assert code_of(caught)[0] is grpc.StatusCode.UNIMPLEMENTED
    log = KvRunLog(sender(node, chain, node.key(1), tmp_path / "sent"), 1, node.prefix)
    with pytest.raises(ChainError, match="unable to resolve type URL") as refused:
        await log.publish([Commit(0, D)])
    assert "carrier = memo" in refused.value.remedy
