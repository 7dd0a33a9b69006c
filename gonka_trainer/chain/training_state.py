"""What the training module shows of a run's nodes (v0.2.0 - v0.2.11): who is alive, who waits at a barrier.

Anybody can write this state; it checks the effect of calls, and decides nothing.
"""

from __future__ import annotations

from typing import Final

from gonka_trainer._pb.gonka_trainer.node.v1 import network_node_pb2 as wire
from gonka_trainer.chain.transport import GrpcNode, NodeAnswerError

_QUERY: Final = "/inference.inference.Query/"
_NOTHING: Final = "empty activity"


class ChainTrainingState:
    """The module's state at a chain node; errors as in `GrpcNode.call`."""

    def __init__(self, node: GrpcNode) -> None:
        self._node = node

    async def alive_nodes(self, run_id: int, outer_step: int) -> tuple[str, ...]:
        """Return the node ids that count as alive in the outer step; none for a run without activity."""
        request = wire.QueryTrainingAliveNodesRequest(
            req=wire.GetAliveNodesRequest(run_id=run_id, outer_step=outer_step)
        )
        try:
            answer = await self._node.call(_QUERY + "TrainingAliveNodes", request, wire.QueryTrainingAliveNodesResponse)
        except NodeAnswerError as error:
            if _NOTHING in error.details:
                return ()
            raise
        return tuple(name.decode("utf-8", "backslashreplace") for name in answer.resp.alive_nodes)

    async def barrier_waits_for(self, barrier_id: str, run_id: int, outer_step: int) -> tuple[str, ...]:
        """Return the node ids that are alive in the step and have not set the barrier."""
        asked = wire.GetBarrierStatusRequest(barrier_id=barrier_id, run_id=run_id, outer_step=outer_step)
        request = wire.QueryTrainingBarrierRequest(req=asked)
        answer = await self._node.call(_QUERY + "TrainingBarrier", request, wire.QueryTrainingBarrierResponse)
        return tuple(name.decode("utf-8", "backslashreplace") for name in answer.resp.not_ready)
