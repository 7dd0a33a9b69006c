"""The Gonka module, by chain version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import allow_list, epochs, genesis, grantees, kv, participants, steps, tasks
from gonka_devnet.inference.allow_list import EXEC, START, guard
from gonka_devnet.inference.codec import Query, message, query
from gonka_devnet.module import Context, Message, Module

ALWAYS = (
    message(
        pb.MsgSubmitNewParticipant,
        pb.MsgSubmitNewParticipantResponse,
        participants.submit_new,
        participants.check_new,
    ),
    message(pb.MsgSubmitHardwareDiff, pb.MsgSubmitHardwareDiffResponse, participants.submit_hardware),
)
STARTING = (
    message(pb.MsgCreateTrainingTask, pb.MsgCreateTrainingTaskResponse, tasks.create),
    message(
        pb.MsgCreateDummyTrainingTask, pb.MsgCreateDummyTrainingTaskResponse, tasks.create_dummy, tasks.check_dummy
    ),
    message(
        pb.MsgClaimTrainingTaskForAssignment,
        pb.MsgClaimTrainingTaskForAssignmentResponse,
        tasks.claim,
        tasks.check_claim,
    ),
    message(pb.MsgAssignTrainingTask, pb.MsgAssignTrainingTaskResponse, tasks.assign, tasks.check_assign),
)
EXECUTING = (
    message(pb.MsgSubmitTrainingKvRecord, pb.MsgSubmitTrainingKvRecordResponse, kv.submit, kv.check),
    message(pb.MsgJoinTraining, pb.MsgJoinTrainingResponse, steps.join, steps.check_join),
    message(pb.MsgJoinTrainingStatus, pb.MsgJoinTrainingStatusResponse, steps.join_status, steps.check_join),
    message(pb.MsgTrainingHeartbeat, pb.MsgTrainingHeartbeatResponse, steps.heartbeat, steps.check_heartbeat),
    message(pb.MsgSetBarrier, pb.MsgSetBarrierResponse, steps.set_barrier, steps.check_barrier),
)
QUERIES = (
    query("EpochInfo", pb.QueryEpochInfoRequest, epochs.info),
    query("Params", pb.QueryParamsRequest, epochs.params),
    query("CurrentEpochGroupData", pb.QueryCurrentEpochGroupDataRequest, epochs.group_data),
    query("Participant", pb.QueryGetParticipantRequest, participants.one),
    query("ParticipantAll", pb.QueryAllParticipantRequest, participants.every),
    query("HardwareNodes", pb.QueryHardwareNodesRequest, participants.hardware),
    query("HardwareNodesAll", pb.QueryHardwareNodesAllRequest, participants.hardware_all),
    query("GranteesByMessageType", pb.QueryGranteesByMessageTypeRequest, grantees.by_message_type),
)
TRAINING_QUERIES = (
    query("TrainingTask", pb.QueryTrainingTaskRequest, tasks.one),
    query("TrainingTaskAll", pb.QueryTrainingTaskAllRequest, tasks.every),
    query("QueuedTrainingTasks", pb.QueryQueuedTrainingTasksRequest, tasks.queued),
    query("InProgressTrainingTasks", pb.QueryInProgressTrainingTasksRequest, tasks.in_progress),
    query("TrainingKvRecord", pb.QueryTrainingKvRecordRequest, kv.record),
    query("ListTrainingKvRecordKeys", pb.QueryListTrainingKvRecordKeysRequest, kv.keys),
    query("TrainingBarrier", pb.QueryTrainingBarrierRequest, steps.barrier),
    query("TrainingAliveNodes", pb.QueryTrainingAliveNodesRequest, steps.alive_nodes),
)
ALLOW_LIST_QUERY = query("TrainingAllowList", pb.QueryTrainingAllowListRequest, allow_list.answer)


@dataclass(frozen=True)
class InferenceModule:
    """The messages and queries of one chain version."""

    messages: Mapping[str, Message]
    queries: Mapping[str, Callable[[Context, bytes], bytes]]

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Write the first state; raise GenesisError where the document is wrong."""
        genesis.write(context, document)

    def begin_block(self, context: Context) -> None:
        """Do nothing: the module acts at the end of blocks."""

    def end_block(self, context: Context) -> None:
        """Advance the epochs."""
        epochs.end_block(context)


def build(chain_version: str) -> Module:
    """Return the module of a chain version: 0.2.0, 0.2.11 or 0.2.16; raise ValueError for others."""
    if chain_version not in VERSIONS:
        raise ValueError(f"no Gonka chain version {chain_version!r}; there are {', '.join(VERSIONS)}")
    messages, queries = VERSIONS[chain_version]
    return InferenceModule(messages, queries)


def _guarded() -> tuple[tuple[str, Message], ...]:
    return tuple(guard(each, START) for each in STARTING) + tuple(guard(each, EXEC) for each in EXECUTING)


VERSIONS: Mapping[str, tuple[Mapping[str, Message], Mapping[str, Query]]] = {
    "0.2.0": (dict(ALWAYS + STARTING + EXECUTING), dict(QUERIES + TRAINING_QUERIES)),
    "0.2.11": (dict(ALWAYS + _guarded()), dict((*QUERIES, *TRAINING_QUERIES, ALLOW_LIST_QUERY))),
    "0.2.16": (dict(ALWAYS), dict(QUERIES)),
}
