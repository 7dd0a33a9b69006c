"""The client of a newer network node's NodeManager: locks on ML nodes, and how busy each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import grpc

from gonka_trainer._pb.gonka_trainer.node.v1 import network_node_pb2 as wire
from gonka_trainer.errors import NetworkNodeError
from gonka_trainer.network_node.calls import CallError, NodeChannel

_SERVICE: Final = "/nodemanager.NodeManager/"
SUCCESS: Final = 0


@dataclass(frozen=True, slots=True)
class Lock:
    """One request's place on an ML node."""

    id: str
    node_id: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many requests an ML node takes at once for a model, how many hold a lock, and what it does (`INFERENCE`)."""

    node_id: str
    model: str
    max_concurrent: int
    lock_count: int
    status: str


class NodeManager:
    """AcquireMLNode, ReleaseMLNode and ListNodeCapacity. NetworkNodeError and its kin when a call fails."""

    def __init__(self, node: NodeChannel) -> None:
        self._node = node

    async def acquire(self, model: str, excluded: Sequence[str] = ()) -> Lock | None:
        """Lock a place on a node that serves the model; None when no node has one free."""
        request = wire.AcquireMlNodeRequest(model=model, excluded_nodes=list(excluded))
        try:
            answer = await self._node.call(_SERVICE + "AcquireMLNode", request, wire.AcquireMlNodeResponse)
        except CallError as error:
            if error.status in {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT}:
                raise
            return None
        if not answer.lock_id:
            raise NetworkNodeError(f"network node {self._node.target} gave a lock without an id")
        return Lock(answer.lock_id, _text(answer.node_id), _text(answer.endpoint))

    async def release(self, lock: Lock) -> None:
        """Give a place back. A lock that the node no longer knows is as good as given back."""
        request = wire.ReleaseMlNodeRequest(lock_id=lock.id, outcome=wire.ReleaseOutcome.Name(SUCCESS))
        try:
            await self._node.call(_SERVICE + "ReleaseMLNode", request, wire.ReleaseMlNodeResponse)
        except CallError as error:
            if error.status is not grpc.StatusCode.NOT_FOUND:
                raise

    async def capacities(self) -> tuple[Capacity, ...]:
        """Return every ML node's places, a line for each model."""
        request = wire.ListNodeCapacityRequest()
        answer = await self._node.call(_SERVICE + "ListNodeCapacity", request, wire.ListNodeCapacityResponse)
        return tuple(
            Capacity(_text(n.node_id), _text(n.model), n.max_concurrent, n.lock_count, _text(n.status))
            for n in answer.nodes
        )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
