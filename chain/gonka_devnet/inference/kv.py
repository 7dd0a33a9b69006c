"""A task's key-value records: one per key, not per participant; the last writer wins, whoever it is."""

from __future__ import annotations

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import codec
from gonka_devnet.inference.addresses import require_address
from gonka_devnet.inference.errors import invalid_request, not_found
from gonka_devnet.module import Context


def submit(context: Context, message: pb.MsgSubmitTrainingKvRecord) -> pb.MsgSubmitTrainingKvRecordResponse:
    """Write the record under the sender's name, whatever participant the message named; the task need not exist."""
    record = pb.TrainingTaskKVRecord(
        taskId=message.taskId, participant=message.creator, key=message.key, value=message.value
    )
    codec.save(context.store, _key(message.taskId, message.key), record)
    return pb.MsgSubmitTrainingKvRecordResponse()


def check(message: pb.MsgSubmitTrainingKvRecord) -> None:
    """Refuse task 0, a participant that is no address, and an empty key or value."""
    if message.taskId == 0:
        raise invalid_request("taskId must be > 0")
    require_address(message.participant, message.creator, "invalid participant address")
    if not message.key.strip():
        raise invalid_request("key is required")
    if not message.value.strip():
        raise invalid_request("value is required")


def record(context: Context, request: pb.QueryTrainingKvRecordRequest) -> pb.QueryTrainingKvRecordResponse:
    """Answer one record."""
    found = codec.load(context.store, _key(request.taskId, request.key), pb.TrainingTaskKVRecord)
    if found is None:
        raise not_found("record not found")
    return pb.QueryTrainingKvRecordResponse(record=found)


def keys(
    context: Context, request: pb.QueryListTrainingKvRecordKeysRequest
) -> pb.QueryListTrainingKvRecordKeysResponse:
    """Answer a task's keys, in the order in which the chain stores them."""
    records = codec.load_all(context.store, _prefix(request.taskId), pb.TrainingTaskKVRecord)
    return pb.QueryListTrainingKvRecordKeysResponse(keys=[each.key for each in records])


def _prefix(task_id: int) -> bytes:
    return f"TrainingTask/sync/{task_id}/store/".encode()


def _key(task_id: int, key: bytes) -> bytes:
    return _prefix(task_id) + key + b"/value/"
