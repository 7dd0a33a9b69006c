from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("version", "participant", "chain_id", "standing", "manifest_hash", "run", "height", "round", "phase", "training_round", "inner_step", "loss", "validation_loss", "transactions", "got_bytes", "holds", "gpus_in_use", "asked")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    CHAIN_ID_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_HASH_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    TRAINING_ROUND_FIELD_NUMBER: _ClassVar[int]
    INNER_STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_LOSS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    GOT_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    GPUS_IN_USE_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    version: str
    participant: str
    chain_id: str
    standing: str
    manifest_hash: str
    run: str
    height: int
    round: int
    phase: str
    training_round: int
    inner_step: int
    loss: float
    validation_loss: float
    transactions: int
    got_bytes: int
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    gpus_in_use: bool
    asked: str
    def __init__(self, version: _Optional[str] = ..., participant: _Optional[str] = ..., chain_id: _Optional[str] = ..., standing: _Optional[str] = ..., manifest_hash: _Optional[str] = ..., run: _Optional[str] = ..., height: _Optional[int] = ..., round: _Optional[int] = ..., phase: _Optional[str] = ..., training_round: _Optional[int] = ..., inner_step: _Optional[int] = ..., loss: _Optional[float] = ..., validation_loss: _Optional[float] = ..., transactions: _Optional[int] = ..., got_bytes: _Optional[int] = ..., holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ..., gpus_in_use: bool = ..., asked: _Optional[str] = ...) -> None: ...

class Hold(_message.Message):
    __slots__ = ("who", "why")
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    who: str
    why: str
    def __init__(self, who: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class TasksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TasksReply(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("manifest_hash", "task_id", "author", "height", "url", "standing", "why")
    MANIFEST_HASH_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    manifest_hash: str
    task_id: int
    author: str
    height: int
    url: str
    standing: str
    why: str
    def __init__(self, manifest_hash: _Optional[str] = ..., task_id: _Optional[int] = ..., author: _Optional[str] = ..., height: _Optional[int] = ..., url: _Optional[str] = ..., standing: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class StartRequest(_message.Message):
    __slots__ = ("manifest_hash",)
    MANIFEST_HASH_FIELD_NUMBER: _ClassVar[int]
    manifest_hash: str
    def __init__(self, manifest_hash: _Optional[str] = ...) -> None: ...

class StartReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PauseRequest(_message.Message):
    __slots__ = ("why",)
    WHY_FIELD_NUMBER: _ClassVar[int]
    why: str
    def __init__(self, why: _Optional[str] = ...) -> None: ...

class PauseReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EventsRequest(_message.Message):
    __slots__ = ("kinds",)
    KINDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kinds: _Optional[_Iterable[str]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("sequence", "time_seconds", "kind", "details")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    time_seconds: float
    kind: str
    details: _struct_pb2.Struct
    def __init__(self, sequence: _Optional[int] = ..., time_seconds: _Optional[float] = ..., kind: _Optional[str] = ..., details: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...
