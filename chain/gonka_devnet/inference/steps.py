"""Outer steps of a run: joining, heartbeats, ranks and barriers.

A run is a training task; the chain calls its outer step an epoch. A member is a node that joined a step, or for which
anybody sent a heartbeat. It is alive while its last sign of life is at most 30 blocks old.
"""

from __future__ import annotations

import math

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import codec
from gonka_devnet.inference.errors import internal, invalid_request, nil_dereference, plain
from gonka_devnet.inference.tasks import load_task, save_task
from gonka_devnet.module import AbciError, Context

JOIN_TIMEOUT_BLOCKS = 30
HEARTBEAT_TIMEOUT_BLOCKS = 30
NO_RANK = -1
NANOSECONDS = 1_000_000_000

Status = pb.MLNodeTrainStatus


def join(context: Context, message: pb.MsgJoinTraining) -> pb.MsgJoinTrainingResponse:
    """Make a node a member of an outer step; a higher step than the last opens it and closes the last for everybody.

    Nothing asks whether an assignment names the node.
    """
    request = message.req
    node = _node_id(request.node_id, message.creator)
    task = _run(context, request.run_id)
    last = task.epoch.last_epoch
    if request.outer_step < last:
        raise plain(f"joining outdated outer step {request.outer_step}, last is {last}")
    if request.outer_step == last and task.epoch.last_epoch_is_finished:
        raise plain(f"joining outer step {request.outer_step} after finish")
    if request.outer_step > last:
        _open_step(context, task, request.outer_step)
    _sign_of_life(context, request.run_id, request.outer_step, node)
    _finish_if_complete(context, request.run_id)
    status = Status(status=Status.OK, node_id=request.node_id, outer_step=request.outer_step, rank=NO_RANK)
    return pb.MsgJoinTrainingResponse(status=status)


def join_status(context: Context, message: pb.MsgJoinTrainingStatus) -> pb.MsgJoinTrainingStatusResponse:
    """Answer a member's rank, -1 until the step is closed. A member that asks is alive; asking can close the step."""
    request = message.req
    node = _node_id(request.node_id, message.creator)
    status = Status(node_id=request.node_id, outer_step=request.outer_step, rank=NO_RANK)
    if load_task(context.store, request.run_id) is None:
        status.status = Status.ERROR
        return pb.MsgJoinTrainingStatusResponse(status=status)
    if _load(context, request.run_id, request.outer_step, node) is not None:
        _sign_of_life(context, request.run_id, request.outer_step, node)
    if _finish_if_complete(context, request.run_id):
        _rerank(context, request.run_id, request.outer_step)
    alive = _alive(context, _members(context, request.run_id, request.outer_step))
    status.active_nodes.extend(_global_id(each) for each in alive)
    member = _load(context, request.run_id, request.outer_step, node)
    status.rank = NO_RANK if member is None else member.rank
    status.status = Status.NOT_JOINED if status.rank == NO_RANK else Status.OK
    return pb.MsgJoinTrainingStatusResponse(status=status)


def heartbeat(context: Context, message: pb.MsgTrainingHeartbeat) -> pb.MsgTrainingHeartbeatResponse:
    """Note a sign of life; a node that never joined the step becomes a member of it, without a rank."""
    request = message.req
    node = _node_id(request.node_id, message.creator)
    _sign_of_life(context, request.run_id, request.outer_step, node)
    _finish_if_complete(context, request.run_id)
    return pb.MsgTrainingHeartbeatResponse(resp=pb.HeartbeatResponse())


def set_barrier(context: Context, message: pb.MsgSetBarrier) -> pb.MsgSetBarrierResponse:
    """Mark the node as arrived, whether or not the run exists and the node is a member."""
    request = message.req
    participant, local_id = _node_id(request.node_id, message.creator)
    prefix = _barrier_prefix(request.run_id, request.barrier_id, request.outer_step)
    mark = pb.NodeActivity(participant=participant, node_id=local_id, heartbeat_height=context.height)
    codec.save(context.store, prefix + participant + b"/" + local_id + b"/value/", mark)
    return pb.MsgSetBarrierResponse(resp=pb.SetBarrierResponse())


def check_join(message: pb.MsgJoinTraining | pb.MsgJoinTrainingStatus) -> None:
    """Refuse a join, or a question for its status, without node or run, or with a negative step."""
    if not message.HasField("req"):
        raise invalid_request("req is required")
    _check_node_and_run(message.req.node_id, message.req.run_id)
    if message.req.outer_step < 0:
        raise invalid_request("req.outer_step cannot be negative")


def check_heartbeat(message: pb.MsgTrainingHeartbeat) -> None:
    """Refuse a heartbeat without node or run, with a negative epoch or a timestamp that is no number."""
    if not message.HasField("req"):
        raise invalid_request("req is required")
    _check_node_and_run(message.req.node_id, message.req.run_id)
    if message.req.epoch < 0:
        raise invalid_request("req.epoch cannot be negative")
    if not math.isfinite(message.req.timestamp):
        raise invalid_request("req.timestamp must be finite")


def check_barrier(message: pb.MsgSetBarrier) -> None:
    """Refuse a barrier without id, node or run."""
    if not message.HasField("req"):
        raise invalid_request("req is required")
    if not message.req.barrier_id.strip():
        raise invalid_request("req.barrier_id is required")
    _check_node_and_run(message.req.node_id, message.req.run_id)


def alive_nodes(context: Context, request: pb.QueryTrainingAliveNodesRequest) -> pb.QueryTrainingAliveNodesResponse:
    """Answer the members of a step that are alive at the query's height."""
    if not request.HasField("req"):
        raise nil_dereference()
    alive = _alive_for_query(context, request.req.run_id, request.req.outer_step)
    return pb.QueryTrainingAliveNodesResponse(resp=pb.GetAliveNodesResponse(alive_nodes=alive))


def barrier(context: Context, request: pb.QueryTrainingBarrierRequest) -> pb.QueryTrainingBarrierResponse:
    """Answer which of the nodes alive at the query's height have set a barrier; none are for a step not yet opened."""
    if not request.HasField("req"):
        raise nil_dereference()
    task = load_task(context.store, request.req.run_id)
    if task is None:
        raise internal(f"run not found. task_id = {request.req.run_id}")
    status = pb.GetBarrierStatusResponse()
    if request.req.outer_step <= task.epoch.last_epoch:
        status.alive_nodes.extend(_alive_for_query(context, request.req.run_id, request.req.outer_step))
        arrived = _arrived(context, request.req)
        status.not_ready.extend(each for each in status.alive_nodes if each not in arrived)
        status.all_ready = not status.not_ready
    return pb.QueryTrainingBarrierResponse(resp=status)


def _check_node_and_run(node_id: bytes, run_id: int) -> None:
    if not node_id.strip():
        raise invalid_request("req.node_id is required")
    if run_id == 0:
        raise invalid_request("req.run_id must be > 0")


def _node_id(node_id: bytes, creator: bytes) -> tuple[bytes, bytes]:
    """Split <participant>/<local id>; the participant must be the creator."""
    if not node_id.startswith(creator + b"/"):
        raise plain("nodeId must start with creator")
    if node_id.endswith(b"/"):
        raise plain("globalNodeId should not end with /")
    parts = node_id.split(b"/")
    if len(parts) != 2:
        raise plain("globalNodeId should contain only one /")
    return parts[0], parts[1]


def _run(context: Context, run_id: int) -> pb.TrainingTask:
    task = load_task(context.store, run_id)
    if task is None:
        raise plain(f"run not found. task_id = {run_id}")
    return task


def _open_step(context: Context, task: pb.TrainingTask, outer_step: int) -> None:
    task.epoch.last_epoch = outer_step
    task.epoch.last_epoch_is_finished = False
    task.epoch.last_epoch_block_height = context.height
    task.epoch.last_epoch_timestamp = context.time_ns // NANOSECONDS
    save_task(context.store, task)


def _finish_if_complete(context: Context, run_id: int) -> bool:
    """Close the last step (or rank it anew) once as many nodes as assigned are alive, or one fewer after 30 blocks.

    More alive nodes than assigned ones, after 30 blocks, are an error that fails the transaction: the chain's own.
    """
    task = _run(context, run_id)
    alive = _alive(context, _members(context, run_id, task.epoch.last_epoch))
    most = sum(len(assignee.node_ids) for assignee in task.assignees)
    fewest = max(most - 1, 0)
    late = context.height - task.epoch.last_epoch_block_height > JOIN_TIMEOUT_BLOCKS
    if len(alive) != most and not (late and len(alive) >= fewest):
        return False
    if len(alive) > most:
        raise plain(f"cannot assign rank: active={len(alive)}, want [{fewest},{most}]")
    _save_ranks(context, run_id, task.epoch.last_epoch, alive)
    task.epoch.last_epoch_is_finished = True
    save_task(context.store, task)
    return True


def _rerank(context: Context, run_id: int, outer_step: int) -> None:
    """Close the gaps in the ranks of a step when ranked members are no longer alive; those keep their stored rank."""
    last = _run(context, run_id).epoch.last_epoch
    if outer_step > last:
        raise plain(f"Unexpected epoch received in rerank not finished. epoch = {outer_step}. lastEpoch = {last}")
    ranked = [each for each in _members(context, run_id, outer_step) if each.rank != NO_RANK]
    survivors = _alive(context, ranked)
    if len(survivors) < len(ranked):
        _save_ranks(context, run_id, outer_step, survivors)


def _save_ranks(context: Context, run_id: int, outer_step: int, members: list[pb.NodeActivity]) -> None:
    for rank, member in enumerate(members):
        member.rank = rank
        _save(context, run_id, outer_step, member)


def _members(context: Context, run_id: int, outer_step: int) -> list[pb.NodeActivity]:
    members = codec.load_all(context.store, _step_prefix(run_id, outer_step), pb.NodeActivity)
    if not members:
        raise plain("empty activity")
    return sorted(members, key=lambda each: (each.participant, each.node_id))


def _alive(context: Context, members: list[pb.NodeActivity]) -> list[pb.NodeActivity]:
    oldest = context.height - HEARTBEAT_TIMEOUT_BLOCKS
    return [each for each in members if each.heartbeat_height >= oldest]


def _alive_for_query(context: Context, run_id: int, outer_step: int) -> list[bytes]:
    try:
        members = _members(context, run_id, outer_step)
    except AbciError as error:
        raise internal(error.log) from error
    return [_global_id(each) for each in _alive(context, members)]


def _arrived(context: Context, request: pb.GetBarrierStatusRequest) -> set[bytes]:
    prefix = _barrier_prefix(request.run_id, request.barrier_id, request.outer_step)
    return {_global_id(each) for each in codec.load_all(context.store, prefix, pb.NodeActivity)}


def _global_id(member: pb.NodeActivity) -> bytes:
    return member.participant + b"/" + member.node_id


def _sign_of_life(context: Context, run_id: int, outer_step: int, node: tuple[bytes, bytes]) -> None:
    participant, local_id = node
    member = _load(context, run_id, outer_step, node)
    if member is None:
        member = pb.NodeActivity(participant=participant, node_id=local_id, rank=NO_RANK)
    member.heartbeat_height = context.height
    _save(context, run_id, outer_step, member)


def _load(context: Context, run_id: int, outer_step: int, node: tuple[bytes, bytes]) -> pb.NodeActivity | None:
    return codec.load(context.store, _member_key(run_id, outer_step, node), pb.NodeActivity)


def _save(context: Context, run_id: int, outer_step: int, member: pb.NodeActivity) -> None:
    codec.save(context.store, _member_key(run_id, outer_step, (member.participant, member.node_id)), member)


def _step_prefix(run_id: int, outer_step: int) -> bytes:
    return f"TrainingTask/sync/{run_id}/heartbeat/{outer_step}/".encode()


def _member_key(run_id: int, outer_step: int, node: tuple[bytes, bytes]) -> bytes:
    return _step_prefix(run_id, outer_step) + node[0] + b"/" + node[1] + b"/"


def _barrier_prefix(run_id: int, barrier_id: bytes, outer_step: int) -> bytes:
    return f"TrainingTask/sync/{run_id}/barrier/".encode() + barrier_id + f"/{outer_step}/".encode()
