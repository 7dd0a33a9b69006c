"""The network node's training service with a warm key: four of its answers are errors although the chain has them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from cosmpy.protos.cosmos.authz.v1beta1.authz_pb2 import GenericAuthorization, Grant
from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgGrant
from google.protobuf.any_pb2 import Any as WireAny

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.chain.sources import created_task
from gonka_trainer.chain.training_state import ChainTrainingState
from gonka_trainer.chain.transactions import Message, create_task_message
from gonka_trainer.chain.transport import GrpcNode
from gonka_trainer.errors import NetworkNodeError
from gonka_trainer.network_node.calls import CallError, NodeChannel
from gonka_trainer.network_node.training import TrainingService
from gonka_trainer.types import sha256
from tests.support.network_node import TrainingStandIn, training_stand_in

WRITES = ("JoinTraining", "JoinTrainingStatus", "TrainingHeartbeat", "SetBarrier", "SubmitTrainingKvRecord")


def key(name: str) -> AccountKey:
    return AccountKey.from_bytes(hashlib.sha256(name.encode()).digest())


COLD = encode_address(key("cold").address, "gonka")
WARM = encode_address(key("warm").address, "gonka")
NODE = f"{COLD}/node1"


def grant(name: str) -> Message:
    """The cold account lets the warm key send such a message, in cosmpy's types."""
    generic = GenericAuthorization(msg=f"/inference.inference.Msg{name}").SerializeToString()
    allowed = WireAny(type_url="/cosmos.authz.v1beta1.GenericAuthorization", value=generic)
    message = MsgGrant(granter=COLD, grantee=WARM, grant=Grant(authorization=allowed))
    return Message(b"/cosmos.authz.v1beta1.MsgGrant", message.SerializeToString())


@dataclass
class World:
    stand_in: TrainingStandIn
    service: TrainingService
    task_id: int


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    accounts = [f"--account={address}=1000000000" for address in (COLD, WARM)]
    flags = ["--grpc=127.0.0.1:0", "--rpc=127.0.0.1:0", "--chain-version=0.2.0", "--block-seconds=0.1"]
    command = [sys.executable, "-m", "gonka_devnet", *accounts, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as devnet:
        try:
            assert devnet.stdout is not None
            said = json.loads(devnet.stdout.readline())
            async with AsyncExitStack() as stack:
                yield await _open(stack, said, tmp_path)
        finally:
            devnet.kill()


async def _open(stack: AsyncExitStack, said: dict[str, str], folder: Path) -> World:
    chain = await stack.enter_async_context(ChainClient(NodeAddress(said["grpc"], f"http://{said['rpc']}")))
    node = await stack.enter_async_context(GrpcNode(said["grpc"], 10.0))
    senders = [
        Sender(chain, key(name), FileSentLog(folder / name), SendSettings(poll_seconds=0.05))
        for name in ("cold", "warm")
    ]
    grants = [grant(name) for name in WRITES]
    await senders[0].deliver(sha256(b"grants"), grants)
    _, data = await senders[0].deliver(sha256(b"task"), [create_task_message(COLD, "uri")])
    task_id = created_task(data)
    assert task_id is not None
    stand_in = TrainingStandIn(chain, senders[1], COLD, node.call)
    target = await stack.enter_async_context(training_stand_in(stand_in))
    channel = await stack.enter_async_context(NodeChannel(target))
    return World(stand_in, TrainingService(channel, ChainTrainingState(node), 0.1), task_id)


async def test_calls_that_took_effect_count_in_spite_of_their_errors(world: World) -> None:
    service, task = world.service, world.task_id
    joined = await service.join(NODE, task)
    assert joined.active_nodes == (NODE,)
    assert joined.rank is None  # the answer that had it was lost
    assert (await service.join_status(NODE, task)).active_nodes == (NODE,)
    await service.heartbeat(NODE, task, inner_step=1, outer_step=0, time_seconds=1.0)
    assert await service.alive_nodes(task) == (NODE,)
    await service.set_barrier("b", NODE, task)
    barrier = await service.barrier("b", task)
    assert barrier.all_ready
    assert barrier.alive == (NODE,)


async def test_the_store_is_read_and_written(world: World) -> None:
    service, task = world.service, world.task_id
    await service.set_record(task, "k", b"v")
    assert await service.record(task, "k") == b"v"
    assert await service.record(task, "nope") is None


async def test_a_call_that_really_failed_is_an_error(world: World) -> None:
    with pytest.raises(CallError, match="run not found"):
        await world.service.join(NODE, 99)
    with pytest.raises(CallError, match="nodeId must start with creator"):
        await world.service.join("node1", world.task_id)


async def test_the_same_error_without_an_effect_on_chain_is_an_error(world: World) -> None:
    world.stand_in.lose = True
    with pytest.raises(NetworkNodeError, match="the chain shows no effect"):
        await world.service.join(NODE, world.task_id)
    with pytest.raises(NetworkNodeError, match="the chain shows no effect"):
        await world.service.set_barrier("b", NODE, world.task_id)
