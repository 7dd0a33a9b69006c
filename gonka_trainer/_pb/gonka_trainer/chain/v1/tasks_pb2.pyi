from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2 as _inference_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MsgClaimTrainingTaskForAssignment(_message.Message):
    __slots__ = ("creator", "task_id")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    task_id: int
    def __init__(self, creator: _Optional[bytes] = ..., task_id: _Optional[int] = ...) -> None: ...

class MsgAssignTrainingTask(_message.Message):
    __slots__ = ("creator", "task_id", "assignees")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    task_id: int
    assignees: _containers.RepeatedCompositeFieldContainer[_inference_pb2.TrainingTaskAssignee]
    def __init__(self, creator: _Optional[bytes] = ..., task_id: _Optional[int] = ..., assignees: _Optional[_Iterable[_Union[_inference_pb2.TrainingTaskAssignee, _Mapping]]] = ...) -> None: ...

class Hardware(_message.Message):
    __slots__ = ("type", "count")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    type: bytes
    count: int
    def __init__(self, type: _Optional[bytes] = ..., count: _Optional[int] = ...) -> None: ...

class HardwareNode(_message.Message):
    __slots__ = ("local_id", "status", "models", "hardware")
    LOCAL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_FIELD_NUMBER: _ClassVar[int]
    local_id: bytes
    status: int
    models: _containers.RepeatedScalarFieldContainer[bytes]
    hardware: _containers.RepeatedCompositeFieldContainer[Hardware]
    def __init__(self, local_id: _Optional[bytes] = ..., status: _Optional[int] = ..., models: _Optional[_Iterable[bytes]] = ..., hardware: _Optional[_Iterable[_Union[Hardware, _Mapping]]] = ...) -> None: ...

class HardwareNodes(_message.Message):
    __slots__ = ("participant", "hardware_nodes")
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_NODES_FIELD_NUMBER: _ClassVar[int]
    participant: bytes
    hardware_nodes: _containers.RepeatedCompositeFieldContainer[HardwareNode]
    def __init__(self, participant: _Optional[bytes] = ..., hardware_nodes: _Optional[_Iterable[_Union[HardwareNode, _Mapping]]] = ...) -> None: ...

class QueryHardwareNodesRequest(_message.Message):
    __slots__ = ("participant",)
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    participant: str
    def __init__(self, participant: _Optional[str] = ...) -> None: ...

class QueryHardwareNodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: HardwareNodes
    def __init__(self, nodes: _Optional[_Union[HardwareNodes, _Mapping]] = ...) -> None: ...

class QueryHardwareNodesAllRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryHardwareNodesAllResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[HardwareNodes]
    def __init__(self, nodes: _Optional[_Iterable[_Union[HardwareNodes, _Mapping]]] = ...) -> None: ...
