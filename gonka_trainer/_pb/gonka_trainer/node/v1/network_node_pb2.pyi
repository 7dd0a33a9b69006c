from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReleaseOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUCCESS: _ClassVar[ReleaseOutcome]
    TRANSPORT_ERROR: _ClassVar[ReleaseOutcome]
    APPLICATION_ERROR: _ClassVar[ReleaseOutcome]
    TIMEOUT: _ClassVar[ReleaseOutcome]
SUCCESS: ReleaseOutcome
TRANSPORT_ERROR: ReleaseOutcome
APPLICATION_ERROR: ReleaseOutcome
TIMEOUT: ReleaseOutcome

class JoinTrainingRequest(_message.Message):
    __slots__ = ("node_id", "run_id", "outer_step")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    run_id: int
    outer_step: int
    def __init__(self, node_id: _Optional[str] = ..., run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("status", "node_id", "outer_step", "active_nodes", "rank")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_NODES_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    status: int
    node_id: bytes
    outer_step: int
    active_nodes: _containers.RepeatedScalarFieldContainer[bytes]
    rank: int
    def __init__(self, status: _Optional[int] = ..., node_id: _Optional[bytes] = ..., outer_step: _Optional[int] = ..., active_nodes: _Optional[_Iterable[bytes]] = ..., rank: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("node_id", "run_id", "local_rank", "timestamp", "inner_step", "outer_step", "epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RANK_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    INNER_STEP_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    run_id: int
    local_rank: int
    timestamp: float
    inner_step: int
    outer_step: int
    epoch: int
    def __init__(self, node_id: _Optional[str] = ..., run_id: _Optional[int] = ..., local_rank: _Optional[int] = ..., timestamp: _Optional[float] = ..., inner_step: _Optional[int] = ..., outer_step: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: int
    def __init__(self, status: _Optional[int] = ...) -> None: ...

class GetAliveNodesRequest(_message.Message):
    __slots__ = ("run_id", "outer_step")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    outer_step: int
    def __init__(self, run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class GetAliveNodesResponse(_message.Message):
    __slots__ = ("alive_nodes",)
    ALIVE_NODES_FIELD_NUMBER: _ClassVar[int]
    alive_nodes: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, alive_nodes: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SetBarrierRequest(_message.Message):
    __slots__ = ("barrier_id", "node_id", "run_id", "outer_step")
    BARRIER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    barrier_id: str
    node_id: str
    run_id: int
    outer_step: int
    def __init__(self, barrier_id: _Optional[str] = ..., node_id: _Optional[str] = ..., run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class SetBarrierResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: int
    def __init__(self, status: _Optional[int] = ...) -> None: ...

class GetBarrierStatusRequest(_message.Message):
    __slots__ = ("barrier_id", "run_id", "outer_step")
    BARRIER_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    barrier_id: str
    run_id: int
    outer_step: int
    def __init__(self, barrier_id: _Optional[str] = ..., run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class GetBarrierStatusResponse(_message.Message):
    __slots__ = ("all_ready", "not_ready", "alive_nodes")
    ALL_READY_FIELD_NUMBER: _ClassVar[int]
    NOT_READY_FIELD_NUMBER: _ClassVar[int]
    ALIVE_NODES_FIELD_NUMBER: _ClassVar[int]
    all_ready: bool
    not_ready: _containers.RepeatedScalarFieldContainer[bytes]
    alive_nodes: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, all_ready: bool = ..., not_ready: _Optional[_Iterable[bytes]] = ..., alive_nodes: _Optional[_Iterable[bytes]] = ...) -> None: ...

class StoreRecord(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class SetStoreRecordRequest(_message.Message):
    __slots__ = ("run_id", "record")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    record: StoreRecord
    def __init__(self, run_id: _Optional[int] = ..., record: _Optional[_Union[StoreRecord, _Mapping]] = ...) -> None: ...

class SetStoreRecordResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStoreRecordRequest(_message.Message):
    __slots__ = ("run_id", "key")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    key: str
    def __init__(self, run_id: _Optional[int] = ..., key: _Optional[str] = ...) -> None: ...

class GetStoreRecordResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: StoreRecord
    def __init__(self, record: _Optional[_Union[StoreRecord, _Mapping]] = ...) -> None: ...

class ListStoreKeysRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: int
    def __init__(self, run_id: _Optional[int] = ...) -> None: ...

class ListStoreKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

class QueryTrainingAliveNodesRequest(_message.Message):
    __slots__ = ("req",)
    REQ_FIELD_NUMBER: _ClassVar[int]
    req: GetAliveNodesRequest
    def __init__(self, req: _Optional[_Union[GetAliveNodesRequest, _Mapping]] = ...) -> None: ...

class QueryTrainingAliveNodesResponse(_message.Message):
    __slots__ = ("resp",)
    RESP_FIELD_NUMBER: _ClassVar[int]
    resp: GetAliveNodesResponse
    def __init__(self, resp: _Optional[_Union[GetAliveNodesResponse, _Mapping]] = ...) -> None: ...

class QueryTrainingBarrierRequest(_message.Message):
    __slots__ = ("req",)
    REQ_FIELD_NUMBER: _ClassVar[int]
    req: GetBarrierStatusRequest
    def __init__(self, req: _Optional[_Union[GetBarrierStatusRequest, _Mapping]] = ...) -> None: ...

class QueryTrainingBarrierResponse(_message.Message):
    __slots__ = ("resp",)
    RESP_FIELD_NUMBER: _ClassVar[int]
    resp: GetBarrierStatusResponse
    def __init__(self, resp: _Optional[_Union[GetBarrierStatusResponse, _Mapping]] = ...) -> None: ...

class TrainingKvRecord(_message.Message):
    __slots__ = ("task_id", "participant", "key", "value")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    participant: bytes
    key: bytes
    value: bytes
    def __init__(self, task_id: _Optional[int] = ..., participant: _Optional[bytes] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class QueryTrainingKvRecordResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: TrainingKvRecord
    def __init__(self, record: _Optional[_Union[TrainingKvRecord, _Mapping]] = ...) -> None: ...

class MsgJoinTraining(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: str
    req: JoinTrainingRequest
    def __init__(self, creator: _Optional[str] = ..., req: _Optional[_Union[JoinTrainingRequest, _Mapping]] = ...) -> None: ...

class MsgTrainingHeartbeat(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: str
    req: HeartbeatRequest
    def __init__(self, creator: _Optional[str] = ..., req: _Optional[_Union[HeartbeatRequest, _Mapping]] = ...) -> None: ...

class MsgSetBarrier(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: str
    req: SetBarrierRequest
    def __init__(self, creator: _Optional[str] = ..., req: _Optional[_Union[SetBarrierRequest, _Mapping]] = ...) -> None: ...

class AcquireMlNodeRequest(_message.Message):
    __slots__ = ("model", "excluded_nodes")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_NODES_FIELD_NUMBER: _ClassVar[int]
    model: str
    excluded_nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model: _Optional[str] = ..., excluded_nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class AcquireMlNodeResponse(_message.Message):
    __slots__ = ("lock_id", "endpoint", "node_id")
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    lock_id: str
    endpoint: bytes
    node_id: bytes
    def __init__(self, lock_id: _Optional[str] = ..., endpoint: _Optional[bytes] = ..., node_id: _Optional[bytes] = ...) -> None: ...

class ReleaseMlNodeRequest(_message.Message):
    __slots__ = ("lock_id", "outcome")
    LOCK_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    lock_id: str
    outcome: ReleaseOutcome
    def __init__(self, lock_id: _Optional[str] = ..., outcome: _Optional[_Union[ReleaseOutcome, str]] = ...) -> None: ...

class ReleaseMlNodeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodeCapacityRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NodeCapacityEntry(_message.Message):
    __slots__ = ("node_id", "model", "max_concurrent", "lock_count", "status")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    LOCK_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    node_id: bytes
    model: bytes
    max_concurrent: int
    lock_count: int
    status: bytes
    def __init__(self, node_id: _Optional[bytes] = ..., model: _Optional[bytes] = ..., max_concurrent: _Optional[int] = ..., lock_count: _Optional[int] = ..., status: _Optional[bytes] = ...) -> None: ...

class ListNodeCapacityResponse(_message.Message):
    __slots__ = ("nodes", "served_at_unix")
    NODES_FIELD_NUMBER: _ClassVar[int]
    SERVED_AT_UNIX_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeCapacityEntry]
    served_at_unix: int
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeCapacityEntry, _Mapping]]] = ..., served_at_unix: _Optional[int] = ...) -> None: ...
