"""Training tasks: create, claim, assign, list.

The chain checks almost nobody here (versions 0.2.0 to 0.2.11): any account creates, claims over a claim, and assigns a
task that it did not claim.
"""

from __future__ import annotations

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import codec
from gonka_devnet.inference.addresses import require_address
from gonka_devnet.inference.errors import (
    internal,
    invalid_request,
    not_found,
    plain,
    task_already_assigned,
    task_not_found,
)
from gonka_devnet.module import Context, Store

TASKS = b"TrainingTask/value/"
SEQUENCE = b"TrainingTask/sequence/value/"
QUEUED = b"TrainingTask/queued/value/"
IN_PROGRESS = b"TrainingTask/inProgress/value/"
MARK = b"\x01"
CLAIM_DEADLINE_BLOCKS = 100
UINT64 = 1 << 64


def task_key(prefix: bytes, task_id: int) -> bytes:
    """Return a task's key. The id is written in decimal, so lists come in string order: 1, 10, 2."""
    return prefix + f"{task_id}/".encode()


def load_task(store: Store, task_id: int) -> pb.TrainingTask | None:
    """Return the task, or None."""
    return codec.load(store, task_key(TASKS, task_id), pb.TrainingTask)


def save_task(store: Store, task: pb.TrainingTask) -> None:
    """Write the task under its id."""
    codec.save(store, task_key(TASKS, task.id), task)


def create(context: Context, message: pb.MsgCreateTrainingTask) -> pb.MsgCreateTrainingTaskResponse:
    """Queue a new task under the next free number."""
    task = pb.TrainingTask(
        id=_next_id(context.store),
        requested_by=message.creator,
        created_at_block_height=context.height,
        hardware_resources=message.hardware_resources,
        config=message.config if message.HasField("config") else None,
        epoch=pb.EpochInfo(last_epoch=-1),
    )
    if load_task(context.store, task.id) is not None:
        raise plain(f"task already exists. id = {task.id}")
    save_task(context.store, task)
    context.store.set(task_key(QUEUED, task.id), MARK)
    return pb.MsgCreateTrainingTaskResponse(task=task)


def create_dummy(context: Context, message: pb.MsgCreateDummyTrainingTask) -> pb.MsgCreateDummyTrainingTaskResponse:
    """Write a task as given, over any other of its id; it is neither queued nor in progress."""
    task = message.task
    task.created_at_block_height = context.height
    if not task.HasField("epoch"):
        task.epoch.last_epoch = -1
    save_task(context.store, task)
    return pb.MsgCreateDummyTrainingTaskResponse(task=task)


def claim(
    context: Context, message: pb.MsgClaimTrainingTaskForAssignment
) -> pb.MsgClaimTrainingTaskForAssignmentResponse:
    """Make the sender the task's assigner.

    The chain subtracts the heights the wrong way round, unsigned: the result is below the deadline only for two claims
    in one block, so every later claim overwrites.
    """
    task = load_task(context.store, message.task_id)
    if task is None:
        raise task_not_found()
    blocks_since_claim = (task.claimed_by_assigner_at_block_height - context.height) % UINT64
    if task.assigned_at_block_height or (task.assigner and blocks_since_claim < CLAIM_DEADLINE_BLOCKS):
        raise task_already_assigned()
    task.assigner = message.creator
    task.claimed_by_assigner_at_block_height = context.height
    save_task(context.store, task)
    return pb.MsgClaimTrainingTaskForAssignmentResponse()


def assign(context: Context, message: pb.MsgAssignTrainingTask) -> pb.MsgAssignTrainingTaskResponse:
    """Give a queued task its nodes, whoever sends it and whether or not the task was claimed."""
    waiting = task_key(QUEUED, message.task_id)
    if context.store.get(waiting) is None:
        raise plain(f"task is not queued. taskId = {message.task_id}")
    task = load_task(context.store, message.task_id)
    if task is None:
        raise task_not_found()
    context.store.delete(waiting)
    context.store.set(task_key(IN_PROGRESS, task.id), MARK)
    del task.assignees[:]
    task.assignees.extend(message.assignees)
    task.assigned_at_block_height = context.height
    save_task(context.store, task)
    context.emit("training_task_assigned", task_id=str(task.id))
    return pb.MsgAssignTrainingTaskResponse()


def check_dummy(message: pb.MsgCreateDummyTrainingTask) -> None:
    """Refuse a missing task and empty fields in it."""
    if not message.HasField("task"):
        raise invalid_request("task is required")
    for i, resource in enumerate(message.task.hardware_resources):
        if not resource.type.strip():
            raise invalid_request(f"task.hardware_resources[{i}].type is required")
    for i, assignee in enumerate(message.task.assignees):
        if not assignee.participant.strip():
            raise invalid_request(f"task.assignees[{i}].participant is required")
        require_address(assignee.participant, message.creator, f"task.assignees[{i}].participant invalid")
        _check_node_ids(assignee, f"task.assignees[{i}]")


def check_claim(message: pb.MsgClaimTrainingTaskForAssignment) -> None:
    """Refuse id 0."""
    if message.task_id == 0:
        raise invalid_request("task_id must be > 0")


def check_assign(message: pb.MsgAssignTrainingTask) -> None:
    """Refuse id 0, no assignees, and assignees without address or nodes."""
    if message.task_id == 0:
        raise invalid_request("task_id must be > 0")
    if not message.assignees:
        raise invalid_request("assignees must be non-empty")
    for i, assignee in enumerate(message.assignees):
        require_address(assignee.participant, message.creator, f"assignees[{i}].participant invalid")
        if not assignee.node_ids:
            raise invalid_request(f"assignees[{i}].node_ids must be non-empty")
        _check_node_ids(assignee, f"assignees[{i}]")


def one(context: Context, request: pb.QueryTrainingTaskRequest) -> pb.QueryTrainingTaskResponse:
    """Answer one task."""
    task = load_task(context.store, request.id)
    if task is None:
        raise not_found("task not found")
    return pb.QueryTrainingTaskResponse(task=task)


def every(context: Context, _request: pb.QueryTrainingTaskAllRequest) -> pb.QueryTrainingTaskAllResponse:
    """Answer all tasks, in string order of their ids."""
    return pb.QueryTrainingTaskAllResponse(tasks=codec.load_all(context.store, TASKS, pb.TrainingTask))


def queued(context: Context, _request: pb.QueryQueuedTrainingTasksRequest) -> pb.QueryQueuedTrainingTasksResponse:
    """Answer the tasks that wait for an assignment."""
    return pb.QueryQueuedTrainingTasksResponse(tasks=_marked(context.store, QUEUED))


def in_progress(
    context: Context, _request: pb.QueryInProgressTrainingTasksRequest
) -> pb.QueryInProgressTrainingTasksResponse:
    """Answer the assigned tasks; nothing ever completes one."""
    return pb.QueryInProgressTrainingTasksResponse(tasks=_marked(context.store, IN_PROGRESS))


def _next_id(store: Store) -> int:
    task_id = int.from_bytes(store.get(SEQUENCE) or b"", "big") + 1
    store.set(SEQUENCE, task_id.to_bytes(8, "big"))
    return task_id


def _marked(store: Store, prefix: bytes) -> list[pb.TrainingTask]:
    ids = [int(key[len(prefix) : -1]) for key, _ in store.iterate(prefix)]
    tasks = [(task_id, load_task(store, task_id)) for task_id in ids]
    missing = [task_id for task_id, task in tasks if task is None]
    if missing:
        raise internal(f"task {missing[0]} not found")
    return [task for _, task in tasks if task is not None]


def _check_node_ids(assignee: pb.TrainingTaskAssignee, where: str) -> None:
    for j, node_id in enumerate(assignee.node_ids):
        if not node_id.strip():
            raise invalid_request(f"{where}.node_ids[{j}] must be non-empty")
