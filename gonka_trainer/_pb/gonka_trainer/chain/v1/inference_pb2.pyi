from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EpochParams(_message.Message):
    __slots__ = ("epoch_length", "epoch_shift", "poc_stage_duration", "poc_exchange_duration", "poc_validation_delay", "poc_validation_duration", "set_new_validators_delay")
    EPOCH_LENGTH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_SHIFT_FIELD_NUMBER: _ClassVar[int]
    POC_STAGE_DURATION_FIELD_NUMBER: _ClassVar[int]
    POC_EXCHANGE_DURATION_FIELD_NUMBER: _ClassVar[int]
    POC_VALIDATION_DELAY_FIELD_NUMBER: _ClassVar[int]
    POC_VALIDATION_DURATION_FIELD_NUMBER: _ClassVar[int]
    SET_NEW_VALIDATORS_DELAY_FIELD_NUMBER: _ClassVar[int]
    epoch_length: int
    epoch_shift: int
    poc_stage_duration: int
    poc_exchange_duration: int
    poc_validation_delay: int
    poc_validation_duration: int
    set_new_validators_delay: int
    def __init__(self, epoch_length: _Optional[int] = ..., epoch_shift: _Optional[int] = ..., poc_stage_duration: _Optional[int] = ..., poc_exchange_duration: _Optional[int] = ..., poc_validation_delay: _Optional[int] = ..., poc_validation_duration: _Optional[int] = ..., set_new_validators_delay: _Optional[int] = ...) -> None: ...

class Params(_message.Message):
    __slots__ = ("epoch_params", "confirmation_poc_params")
    EPOCH_PARAMS_FIELD_NUMBER: _ClassVar[int]
    CONFIRMATION_POC_PARAMS_FIELD_NUMBER: _ClassVar[int]
    epoch_params: EpochParams
    confirmation_poc_params: bytes
    def __init__(self, epoch_params: _Optional[_Union[EpochParams, _Mapping]] = ..., confirmation_poc_params: _Optional[bytes] = ...) -> None: ...

class Epoch(_message.Message):
    __slots__ = ("index", "poc_start_block_height")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    POC_START_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    index: int
    poc_start_block_height: int
    def __init__(self, index: _Optional[int] = ..., poc_start_block_height: _Optional[int] = ...) -> None: ...

class QueryEpochInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryEpochInfoResponse(_message.Message):
    __slots__ = ("block_height", "params", "latest_epoch", "is_confirmation_poc_active", "active_confirmation_poc_event")
    BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    LATEST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_CONFIRMATION_POC_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONFIRMATION_POC_EVENT_FIELD_NUMBER: _ClassVar[int]
    block_height: int
    params: Params
    latest_epoch: Epoch
    is_confirmation_poc_active: bool
    active_confirmation_poc_event: ConfirmationPocEvent
    def __init__(self, block_height: _Optional[int] = ..., params: _Optional[_Union[Params, _Mapping]] = ..., latest_epoch: _Optional[_Union[Epoch, _Mapping]] = ..., is_confirmation_poc_active: bool = ..., active_confirmation_poc_event: _Optional[_Union[ConfirmationPocEvent, _Mapping]] = ...) -> None: ...

class ConfirmationPocEvent(_message.Message):
    __slots__ = ("epoch_index", "event_sequence", "trigger_height", "generation_start_height", "phase")
    EPOCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    GENERATION_START_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    epoch_index: int
    event_sequence: int
    trigger_height: int
    generation_start_height: int
    phase: int
    def __init__(self, epoch_index: _Optional[int] = ..., event_sequence: _Optional[int] = ..., trigger_height: _Optional[int] = ..., generation_start_height: _Optional[int] = ..., phase: _Optional[int] = ...) -> None: ...

class QueryCurrentEpochGroupDataRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryCurrentEpochGroupDataResponse(_message.Message):
    __slots__ = ("epoch_group_data",)
    EPOCH_GROUP_DATA_FIELD_NUMBER: _ClassVar[int]
    epoch_group_data: EpochGroupData
    def __init__(self, epoch_group_data: _Optional[_Union[EpochGroupData, _Mapping]] = ...) -> None: ...

class EpochGroupData(_message.Message):
    __slots__ = ("validation_weights", "total_weight", "epoch_index")
    VALIDATION_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    validation_weights: _containers.RepeatedCompositeFieldContainer[ValidationWeight]
    total_weight: int
    epoch_index: int
    def __init__(self, validation_weights: _Optional[_Iterable[_Union[ValidationWeight, _Mapping]]] = ..., total_weight: _Optional[int] = ..., epoch_index: _Optional[int] = ...) -> None: ...

class ValidationWeight(_message.Message):
    __slots__ = ("member_address", "weight")
    MEMBER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    member_address: bytes
    weight: int
    def __init__(self, member_address: _Optional[bytes] = ..., weight: _Optional[int] = ...) -> None: ...

class TrainingHardwareResources(_message.Message):
    __slots__ = ("type", "count")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    type: bytes
    count: int
    def __init__(self, type: _Optional[bytes] = ..., count: _Optional[int] = ...) -> None: ...

class TrainingDatasets(_message.Message):
    __slots__ = ("train", "test")
    TRAIN_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    train: bytes
    test: bytes
    def __init__(self, train: _Optional[bytes] = ..., test: _Optional[bytes] = ...) -> None: ...

class TrainingConfig(_message.Message):
    __slots__ = ("datasets", "num_uoc_estimation_steps")
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    NUM_UOC_ESTIMATION_STEPS_FIELD_NUMBER: _ClassVar[int]
    datasets: TrainingDatasets
    num_uoc_estimation_steps: int
    def __init__(self, datasets: _Optional[_Union[TrainingDatasets, _Mapping]] = ..., num_uoc_estimation_steps: _Optional[int] = ...) -> None: ...

class TrainingTaskAssignee(_message.Message):
    __slots__ = ("participant", "node_ids")
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    participant: bytes
    node_ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, participant: _Optional[bytes] = ..., node_ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TrainingTask(_message.Message):
    __slots__ = ("id", "requested_by", "created_at_block_height", "assigner", "claimed_by_assigner_at_block_height", "assigned_at_block_height", "finished_at_block_height", "hardware_resources", "config", "assignees")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNER_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_BY_ASSIGNER_AT_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_AT_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    id: int
    requested_by: bytes
    created_at_block_height: int
    assigner: bytes
    claimed_by_assigner_at_block_height: int
    assigned_at_block_height: int
    finished_at_block_height: int
    hardware_resources: _containers.RepeatedCompositeFieldContainer[TrainingHardwareResources]
    config: TrainingConfig
    assignees: _containers.RepeatedCompositeFieldContainer[TrainingTaskAssignee]
    def __init__(self, id: _Optional[int] = ..., requested_by: _Optional[bytes] = ..., created_at_block_height: _Optional[int] = ..., assigner: _Optional[bytes] = ..., claimed_by_assigner_at_block_height: _Optional[int] = ..., assigned_at_block_height: _Optional[int] = ..., finished_at_block_height: _Optional[int] = ..., hardware_resources: _Optional[_Iterable[_Union[TrainingHardwareResources, _Mapping]]] = ..., config: _Optional[_Union[TrainingConfig, _Mapping]] = ..., assignees: _Optional[_Iterable[_Union[TrainingTaskAssignee, _Mapping]]] = ...) -> None: ...

class MsgCreateTrainingTask(_message.Message):
    __slots__ = ("creator", "hardware_resources", "config")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    hardware_resources: _containers.RepeatedCompositeFieldContainer[TrainingHardwareResources]
    config: TrainingConfig
    def __init__(self, creator: _Optional[bytes] = ..., hardware_resources: _Optional[_Iterable[_Union[TrainingHardwareResources, _Mapping]]] = ..., config: _Optional[_Union[TrainingConfig, _Mapping]] = ...) -> None: ...

class MsgCreateTrainingTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TrainingTask
    def __init__(self, task: _Optional[_Union[TrainingTask, _Mapping]] = ...) -> None: ...

class MsgSubmitTrainingKvRecord(_message.Message):
    __slots__ = ("creator", "task_id", "participant", "key", "value")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    task_id: int
    participant: bytes
    key: bytes
    value: bytes
    def __init__(self, creator: _Optional[bytes] = ..., task_id: _Optional[int] = ..., participant: _Optional[bytes] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class QueryTrainingTaskRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class QueryTrainingTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TrainingTask
    def __init__(self, task: _Optional[_Union[TrainingTask, _Mapping]] = ...) -> None: ...

class QueryTrainingTaskAllRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryTrainingTaskAllResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TrainingTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[TrainingTask, _Mapping]]] = ...) -> None: ...

class QueryGranteesByMessageTypeRequest(_message.Message):
    __slots__ = ("granter_address", "message_type_url")
    GRANTER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_TYPE_URL_FIELD_NUMBER: _ClassVar[int]
    granter_address: str
    message_type_url: str
    def __init__(self, granter_address: _Optional[str] = ..., message_type_url: _Optional[str] = ...) -> None: ...

class QueryGranteesByMessageTypeResponse(_message.Message):
    __slots__ = ("grantees",)
    GRANTEES_FIELD_NUMBER: _ClassVar[int]
    grantees: _containers.RepeatedCompositeFieldContainer[Grantee]
    def __init__(self, grantees: _Optional[_Iterable[_Union[Grantee, _Mapping]]] = ...) -> None: ...

class Grantee(_message.Message):
    __slots__ = ("address", "pub_key")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PUB_KEY_FIELD_NUMBER: _ClassVar[int]
    address: bytes
    pub_key: bytes
    def __init__(self, address: _Optional[bytes] = ..., pub_key: _Optional[bytes] = ...) -> None: ...

class QueryParticipantRequest(_message.Message):
    __slots__ = ("index",)
    INDEX_FIELD_NUMBER: _ClassVar[int]
    index: str
    def __init__(self, index: _Optional[str] = ...) -> None: ...

class QueryParticipantResponse(_message.Message):
    __slots__ = ("participant",)
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    participant: Participant
    def __init__(self, participant: _Optional[_Union[Participant, _Mapping]] = ...) -> None: ...

class Participant(_message.Message):
    __slots__ = ("index", "address", "weight", "inference_url", "status")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_URL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    index: bytes
    address: bytes
    weight: int
    inference_url: bytes
    status: int
    def __init__(self, index: _Optional[bytes] = ..., address: _Optional[bytes] = ..., weight: _Optional[int] = ..., inference_url: _Optional[bytes] = ..., status: _Optional[int] = ...) -> None: ...

class QueryTrainingAllowListRequest(_message.Message):
    __slots__ = ("role",)
    ROLE_FIELD_NUMBER: _ClassVar[int]
    role: int
    def __init__(self, role: _Optional[int] = ...) -> None: ...

class QueryTrainingAllowListResponse(_message.Message):
    __slots__ = ("addresses",)
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    addresses: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, addresses: _Optional[_Iterable[bytes]] = ...) -> None: ...
