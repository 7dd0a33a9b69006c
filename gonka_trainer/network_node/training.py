"""The client of a network node's training service (`inference.inference.NetworkNodeService`, v0.2.0 - v0.2.11).

With a warm key four of its calls answer an error although their transaction went through: the node cannot decode the
result of its own MsgExec. So a call that writes is judged by the chain, never by that error. Nothing of the training
module's state decides anything in a run (docs/protocol.md 2): this client is for tools that want the module's view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import grpc
from google.protobuf.message import Message

from gonka_trainer._pb.gonka_trainer.node.v1 import network_node_pb2 as wire
from gonka_trainer.errors import NetworkNodeError
from gonka_trainer.network_node.calls import Answer, CallError, NodeChannel

_SERVICE: Final = "/inference.inference.NetworkNodeService/"
_MISREAD: Final = "failed to unmarshal response"
_LOOKS: Final = 20


class TrainingState(Protocol):
    """The training module's state on chain, read from a chain node (not from the network node that is in question)."""

    async def alive_nodes(self, run_id: int, outer_step: int) -> tuple[str, ...]:
        """Return the node ids that the module takes for alive in the step."""

    async def barrier_waits_for(self, barrier_id: str, run_id: int, outer_step: int) -> tuple[str, ...]:
        """Return the alive node ids that have not set the barrier; all of them when nobody has."""


@dataclass(frozen=True, slots=True)
class Join:
    """What became of a join: `rank` is -1 until the step is closed, and unknown (None) when the answer was lost."""

    rank: int | None
    active_nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier's state: everybody is there, or who is not."""

    all_ready: bool
    not_ready: tuple[str, ...]
    alive: tuple[str, ...]


class TrainingService:
    """The service's nine calls. `node_id` is `<participant>/<local id>`, `run_id` the training task's id.

    NetworkNodeError when a call did not take effect, NetworkNodeUnavailableError when the node does not answer.
    """

    def __init__(self, node: NodeChannel, state: TrainingState, poll_seconds: float = 0.5) -> None:
        self._node = node
        self._state = state
        self._poll_seconds = poll_seconds

    async def join(self, node_id: str, run_id: int, outer_step: int = 0) -> Join:
        """Join an outer step; returns when the chain shows the node as alive in it."""
        request = wire.JoinTrainingRequest(node_id=node_id, run_id=run_id, outer_step=outer_step)
        return await self._joined("JoinTraining", request, node_id)

    async def join_status(self, node_id: str, run_id: int, outer_step: int = 0) -> Join:
        """Ask for the node's standing in the step (this is a transaction, too)."""
        request = wire.JoinTrainingRequest(node_id=node_id, run_id=run_id, outer_step=outer_step)
        return await self._joined("GetJoinTrainingStatus", request, node_id)

    async def heartbeat(self, node_id: str, run_id: int, inner_step: int, outer_step: int, time_seconds: float) -> None:
        """Say that the node is alive in the step."""
        request = wire.HeartbeatRequest(
            node_id=node_id, run_id=run_id, timestamp=time_seconds, inner_step=inner_step, outer_step=outer_step
        )
        answer = await self._written("SendHeartbeat", request, wire.HeartbeatResponse)
        if answer is None:
            await self._until("SendHeartbeat", lambda: self._is_alive(node_id, run_id, outer_step))
        elif answer.status != 0:
            raise NetworkNodeError(f"the training module took no heartbeat of {node_id} in run {run_id}")

    async def alive_nodes(self, run_id: int, outer_step: int = 0) -> tuple[str, ...]:
        """Return the node ids that are alive in the step, as the network node tells."""
        request = wire.GetAliveNodesRequest(run_id=run_id, outer_step=outer_step)
        return _texts(
            (await self._node.call(_SERVICE + "GetAliveNodes", request, wire.GetAliveNodesResponse)).alive_nodes
        )

    async def set_barrier(self, barrier_id: str, node_id: str, run_id: int, outer_step: int = 0) -> None:
        """Set the node's mark at a barrier; returns when the chain has it."""
        request = wire.SetBarrierRequest(barrier_id=barrier_id, node_id=node_id, run_id=run_id, outer_step=outer_step)
        if await self._written("SetBarrier", request, wire.SetBarrierResponse) is None:
            await self._until("SetBarrier", lambda: self._has_set(barrier_id, node_id, run_id, outer_step))

    async def barrier(self, barrier_id: str, run_id: int, outer_step: int = 0) -> Barrier:
        """Return a barrier's state, as the network node tells."""
        request = wire.GetBarrierStatusRequest(barrier_id=barrier_id, run_id=run_id, outer_step=outer_step)
        answer = await self._node.call(_SERVICE + "GetBarrierStatus", request, wire.GetBarrierStatusResponse)
        return Barrier(answer.all_ready, _texts(answer.not_ready), _texts(answer.alive_nodes))

    async def set_record(self, run_id: int, key: str, value: bytes) -> None:
        """Write to the run's key-value store; anybody can overwrite it."""
        record = wire.StoreRecord(key=key.encode(), value=value)
        request = wire.SetStoreRecordRequest(run_id=run_id, record=record)
        await self._node.call(_SERVICE + "SetStoreRecord", request, wire.SetStoreRecordResponse)

    async def record(self, run_id: int, key: str) -> bytes | None:
        """Return a value of the store; None when the key is not there."""
        request = wire.GetStoreRecordRequest(run_id=run_id, key=key)
        try:
            answer = await self._node.call(_SERVICE + "GetStoreRecord", request, wire.GetStoreRecordResponse)
        except CallError as error:
            if error.status is grpc.StatusCode.NOT_FOUND:
                return None
            raise
        return answer.record.value

    async def keys(self, run_id: int) -> tuple[bytes, ...]:
        """Return the store's keys."""
        request = wire.ListStoreKeysRequest(run_id=run_id)
        return tuple((await self._node.call(_SERVICE + "ListStoreKeys", request, wire.ListStoreKeysResponse)).keys)

    async def _joined(self, name: str, request: wire.JoinTrainingRequest, node_id: str) -> Join:
        answer = await self._written(name, request, wire.NodeStatus)
        if answer is not None:
            return Join(answer.rank, _texts(answer.active_nodes))
        await self._until(name, lambda: self._is_alive(node_id, request.run_id, request.outer_step))
        return Join(None, await self._state.alive_nodes(request.run_id, request.outer_step))

    async def _written(self, name: str, request: Message, answer: type[Answer]) -> Answer | None:
        """Make a call that writes; None when the node could not read its own transaction's result."""
        try:
            return await self._node.call(_SERVICE + name, request, answer)
        except CallError as error:
            if error.status is grpc.StatusCode.UNKNOWN and _MISREAD in error.details:
                return None
            raise

    async def _until(self, name: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for the effect on chain; the call itself has waited for its block, so a few looks are enough."""
        for _ in range(_LOOKS):
            if await holds():
                return
            await asyncio.sleep(self._poll_seconds)
        raise NetworkNodeError(
            f"the network node could not read the result of its {name}, and the chain shows no effect of it",
            "look at the transaction in the network node's log, then try again",
        )

    async def _is_alive(self, node_id: str, run_id: int, outer_step: int) -> bool:
        return node_id in await self._state.alive_nodes(run_id, outer_step)

    async def _has_set(self, barrier_id: str, node_id: str, run_id: int, outer_step: int) -> bool:
        waiting = await self._state.barrier_waits_for(barrier_id, run_id, outer_step)
        return node_id not in waiting and await self._is_alive(node_id, run_id, outer_step)  # only the alive are listed


def _texts(items: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(item.decode("utf-8", "backslashreplace") for item in items)
