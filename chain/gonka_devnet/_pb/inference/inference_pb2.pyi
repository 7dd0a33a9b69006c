from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EpochParams(_message.Message):
    __slots__ = ("epoch_length", "epoch_multiplier", "epoch_shift", "default_unit_of_compute_price", "poc_stage_duration", "poc_exchange_duration", "poc_validation_delay", "poc_validation_duration", "set_new_validators_delay", "inference_validation_cutoff", "inference_pruning_epoch_threshold")
    EPOCH_LENGTH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_SHIFT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_UNIT_OF_COMPUTE_PRICE_FIELD_NUMBER: _ClassVar[int]
    POC_STAGE_DURATION_FIELD_NUMBER: _ClassVar[int]
    POC_EXCHANGE_DURATION_FIELD_NUMBER: _ClassVar[int]
    POC_VALIDATION_DELAY_FIELD_NUMBER: _ClassVar[int]
    POC_VALIDATION_DURATION_FIELD_NUMBER: _ClassVar[int]
    SET_NEW_VALIDATORS_DELAY_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_VALIDATION_CUTOFF_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_PRUNING_EPOCH_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    epoch_length: int
    epoch_multiplier: int
    epoch_shift: int
    default_unit_of_compute_price: int
    poc_stage_duration: int
    poc_exchange_duration: int
    poc_validation_delay: int
    poc_validation_duration: int
    set_new_validators_delay: int
    inference_validation_cutoff: int
    inference_pruning_epoch_threshold: int
    def __init__(self, epoch_length: _Optional[int] = ..., epoch_multiplier: _Optional[int] = ..., epoch_shift: _Optional[int] = ..., default_unit_of_compute_price: _Optional[int] = ..., poc_stage_duration: _Optional[int] = ..., poc_exchange_duration: _Optional[int] = ..., poc_validation_delay: _Optional[int] = ..., poc_validation_duration: _Optional[int] = ..., set_new_validators_delay: _Optional[int] = ..., inference_validation_cutoff: _Optional[int] = ..., inference_pruning_epoch_threshold: _Optional[int] = ...) -> None: ...

class Params(_message.Message):
    __slots__ = ("epoch_params",)
    EPOCH_PARAMS_FIELD_NUMBER: _ClassVar[int]
    epoch_params: EpochParams
    def __init__(self, epoch_params: _Optional[_Union[EpochParams, _Mapping]] = ...) -> None: ...

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
    active_confirmation_poc_event: ConfirmationPoCEvent
    def __init__(self, block_height: _Optional[int] = ..., params: _Optional[_Union[Params, _Mapping]] = ..., latest_epoch: _Optional[_Union[Epoch, _Mapping]] = ..., is_confirmation_poc_active: bool = ..., active_confirmation_poc_event: _Optional[_Union[ConfirmationPoCEvent, _Mapping]] = ...) -> None: ...

class ConfirmationPoCEvent(_message.Message):
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

class QueryParamsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryParamsResponse(_message.Message):
    __slots__ = ("params",)
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    params: Params
    def __init__(self, params: _Optional[_Union[Params, _Mapping]] = ...) -> None: ...

class ValidationWeight(_message.Message):
    __slots__ = ("member_address", "weight", "reputation")
    MEMBER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    REPUTATION_FIELD_NUMBER: _ClassVar[int]
    member_address: bytes
    weight: int
    reputation: int
    def __init__(self, member_address: _Optional[bytes] = ..., weight: _Optional[int] = ..., reputation: _Optional[int] = ...) -> None: ...

class EpochGroupData(_message.Message):
    __slots__ = ("poc_start_block_height", "epoch_group_id", "effective_block_height", "validation_weights", "total_weight", "epoch_index")
    POC_START_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    poc_start_block_height: int
    epoch_group_id: int
    effective_block_height: int
    validation_weights: _containers.RepeatedCompositeFieldContainer[ValidationWeight]
    total_weight: int
    epoch_index: int
    def __init__(self, poc_start_block_height: _Optional[int] = ..., epoch_group_id: _Optional[int] = ..., effective_block_height: _Optional[int] = ..., validation_weights: _Optional[_Iterable[_Union[ValidationWeight, _Mapping]]] = ..., total_weight: _Optional[int] = ..., epoch_index: _Optional[int] = ...) -> None: ...

class QueryCurrentEpochGroupDataRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryCurrentEpochGroupDataResponse(_message.Message):
    __slots__ = ("epoch_group_data",)
    EPOCH_GROUP_DATA_FIELD_NUMBER: _ClassVar[int]
    epoch_group_data: EpochGroupData
    def __init__(self, epoch_group_data: _Optional[_Union[EpochGroupData, _Mapping]] = ...) -> None: ...

class Participant(_message.Message):
    __slots__ = ("index", "address", "weight", "join_time", "join_height", "last_inference_time", "inference_url", "status", "coin_balance", "validator_key", "consecutive_invalid_inferences", "worker_public_key", "epochs_completed", "current_epoch_stats")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    JOIN_TIME_FIELD_NUMBER: _ClassVar[int]
    JOIN_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    LAST_INFERENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_URL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COIN_BALANCE_FIELD_NUMBER: _ClassVar[int]
    VALIDATOR_KEY_FIELD_NUMBER: _ClassVar[int]
    CONSECUTIVE_INVALID_INFERENCES_FIELD_NUMBER: _ClassVar[int]
    WORKER_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    CURRENT_EPOCH_STATS_FIELD_NUMBER: _ClassVar[int]
    index: bytes
    address: bytes
    weight: int
    join_time: int
    join_height: int
    last_inference_time: int
    inference_url: bytes
    status: int
    coin_balance: int
    validator_key: bytes
    consecutive_invalid_inferences: int
    worker_public_key: bytes
    epochs_completed: int
    current_epoch_stats: CurrentEpochStats
    def __init__(self, index: _Optional[bytes] = ..., address: _Optional[bytes] = ..., weight: _Optional[int] = ..., join_time: _Optional[int] = ..., join_height: _Optional[int] = ..., last_inference_time: _Optional[int] = ..., inference_url: _Optional[bytes] = ..., status: _Optional[int] = ..., coin_balance: _Optional[int] = ..., validator_key: _Optional[bytes] = ..., consecutive_invalid_inferences: _Optional[int] = ..., worker_public_key: _Optional[bytes] = ..., epochs_completed: _Optional[int] = ..., current_epoch_stats: _Optional[_Union[CurrentEpochStats, _Mapping]] = ...) -> None: ...

class CurrentEpochStats(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryGetParticipantRequest(_message.Message):
    __slots__ = ("index",)
    INDEX_FIELD_NUMBER: _ClassVar[int]
    index: bytes
    def __init__(self, index: _Optional[bytes] = ...) -> None: ...

class QueryGetParticipantResponse(_message.Message):
    __slots__ = ("participant",)
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    participant: Participant
    def __init__(self, participant: _Optional[_Union[Participant, _Mapping]] = ...) -> None: ...

class QueryAllParticipantRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PageResponse(_message.Message):
    __slots__ = ("next_key", "total")
    NEXT_KEY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    next_key: bytes
    total: int
    def __init__(self, next_key: _Optional[bytes] = ..., total: _Optional[int] = ...) -> None: ...

class QueryAllParticipantResponse(_message.Message):
    __slots__ = ("participant", "pagination", "block_height")
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    participant: _containers.RepeatedCompositeFieldContainer[Participant]
    pagination: PageResponse
    block_height: int
    def __init__(self, participant: _Optional[_Iterable[_Union[Participant, _Mapping]]] = ..., pagination: _Optional[_Union[PageResponse, _Mapping]] = ..., block_height: _Optional[int] = ...) -> None: ...

class Hardware(_message.Message):
    __slots__ = ("type", "count")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    type: bytes
    count: int
    def __init__(self, type: _Optional[bytes] = ..., count: _Optional[int] = ...) -> None: ...

class HardwareNode(_message.Message):
    __slots__ = ("local_id", "status", "models", "hardware", "host", "port")
    LOCAL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    local_id: bytes
    status: int
    models: _containers.RepeatedScalarFieldContainer[bytes]
    hardware: _containers.RepeatedCompositeFieldContainer[Hardware]
    host: bytes
    port: bytes
    def __init__(self, local_id: _Optional[bytes] = ..., status: _Optional[int] = ..., models: _Optional[_Iterable[bytes]] = ..., hardware: _Optional[_Iterable[_Union[Hardware, _Mapping]]] = ..., host: _Optional[bytes] = ..., port: _Optional[bytes] = ...) -> None: ...

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
    participant: bytes
    def __init__(self, participant: _Optional[bytes] = ...) -> None: ...

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

class MsgSubmitNewParticipant(_message.Message):
    __slots__ = ("creator", "url", "validator_key", "worker_key")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    VALIDATOR_KEY_FIELD_NUMBER: _ClassVar[int]
    WORKER_KEY_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    url: bytes
    validator_key: bytes
    worker_key: bytes
    def __init__(self, creator: _Optional[bytes] = ..., url: _Optional[bytes] = ..., validator_key: _Optional[bytes] = ..., worker_key: _Optional[bytes] = ...) -> None: ...

class MsgSubmitNewParticipantResponse(_message.Message):
    __slots__ = ("participant_index", "status")
    PARTICIPANT_INDEX_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    participant_index: bytes
    status: bytes
    def __init__(self, participant_index: _Optional[bytes] = ..., status: _Optional[bytes] = ...) -> None: ...

class MsgSubmitHardwareDiff(_message.Message):
    __slots__ = ("creator", "newOrModified", "removed")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    NEWORMODIFIED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    newOrModified: _containers.RepeatedCompositeFieldContainer[HardwareNode]
    removed: _containers.RepeatedCompositeFieldContainer[HardwareNode]
    def __init__(self, creator: _Optional[bytes] = ..., newOrModified: _Optional[_Iterable[_Union[HardwareNode, _Mapping]]] = ..., removed: _Optional[_Iterable[_Union[HardwareNode, _Mapping]]] = ...) -> None: ...

class MsgSubmitHardwareDiffResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryGranteesByMessageTypeRequest(_message.Message):
    __slots__ = ("granter_address", "message_type_url")
    GRANTER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_TYPE_URL_FIELD_NUMBER: _ClassVar[int]
    granter_address: bytes
    message_type_url: bytes
    def __init__(self, granter_address: _Optional[bytes] = ..., message_type_url: _Optional[bytes] = ...) -> None: ...

class Grantee(_message.Message):
    __slots__ = ("address", "pub_key")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PUB_KEY_FIELD_NUMBER: _ClassVar[int]
    address: bytes
    pub_key: bytes
    def __init__(self, address: _Optional[bytes] = ..., pub_key: _Optional[bytes] = ...) -> None: ...

class QueryGranteesByMessageTypeResponse(_message.Message):
    __slots__ = ("grantees",)
    GRANTEES_FIELD_NUMBER: _ClassVar[int]
    grantees: _containers.RepeatedCompositeFieldContainer[Grantee]
    def __init__(self, grantees: _Optional[_Iterable[_Union[Grantee, _Mapping]]] = ...) -> None: ...

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

class EpochInfo(_message.Message):
    __slots__ = ("last_epoch", "last_epoch_block_height", "last_epoch_timestamp", "last_epoch_is_finished")
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_BLOCK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_IS_FINISHED_FIELD_NUMBER: _ClassVar[int]
    last_epoch: int
    last_epoch_block_height: int
    last_epoch_timestamp: int
    last_epoch_is_finished: bool
    def __init__(self, last_epoch: _Optional[int] = ..., last_epoch_block_height: _Optional[int] = ..., last_epoch_timestamp: _Optional[int] = ..., last_epoch_is_finished: bool = ...) -> None: ...

class TrainingTask(_message.Message):
    __slots__ = ("id", "requested_by", "created_at_block_height", "assigner", "claimed_by_assigner_at_block_height", "assigned_at_block_height", "finished_at_block_height", "hardware_resources", "config", "assignees", "epoch")
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
    EPOCH_FIELD_NUMBER: _ClassVar[int]
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
    epoch: EpochInfo
    def __init__(self, id: _Optional[int] = ..., requested_by: _Optional[bytes] = ..., created_at_block_height: _Optional[int] = ..., assigner: _Optional[bytes] = ..., claimed_by_assigner_at_block_height: _Optional[int] = ..., assigned_at_block_height: _Optional[int] = ..., finished_at_block_height: _Optional[int] = ..., hardware_resources: _Optional[_Iterable[_Union[TrainingHardwareResources, _Mapping]]] = ..., config: _Optional[_Union[TrainingConfig, _Mapping]] = ..., assignees: _Optional[_Iterable[_Union[TrainingTaskAssignee, _Mapping]]] = ..., epoch: _Optional[_Union[EpochInfo, _Mapping]] = ...) -> None: ...

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

class MsgCreateDummyTrainingTask(_message.Message):
    __slots__ = ("creator", "task")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    task: TrainingTask
    def __init__(self, creator: _Optional[bytes] = ..., task: _Optional[_Union[TrainingTask, _Mapping]] = ...) -> None: ...

class MsgCreateDummyTrainingTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TrainingTask
    def __init__(self, task: _Optional[_Union[TrainingTask, _Mapping]] = ...) -> None: ...

class MsgClaimTrainingTaskForAssignment(_message.Message):
    __slots__ = ("creator", "task_id")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    task_id: int
    def __init__(self, creator: _Optional[bytes] = ..., task_id: _Optional[int] = ...) -> None: ...

class MsgClaimTrainingTaskForAssignmentResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MsgAssignTrainingTask(_message.Message):
    __slots__ = ("creator", "task_id", "assignees")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    task_id: int
    assignees: _containers.RepeatedCompositeFieldContainer[TrainingTaskAssignee]
    def __init__(self, creator: _Optional[bytes] = ..., task_id: _Optional[int] = ..., assignees: _Optional[_Iterable[_Union[TrainingTaskAssignee, _Mapping]]] = ...) -> None: ...

class MsgAssignTrainingTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

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

class QueryQueuedTrainingTasksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryQueuedTrainingTasksResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TrainingTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[TrainingTask, _Mapping]]] = ...) -> None: ...

class QueryInProgressTrainingTasksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryInProgressTrainingTasksResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TrainingTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[TrainingTask, _Mapping]]] = ...) -> None: ...

class JoinTrainingRequest(_message.Message):
    __slots__ = ("node_id", "run_id", "outer_step")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    node_id: bytes
    run_id: int
    outer_step: int
    def __init__(self, node_id: _Optional[bytes] = ..., run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class MLNodeTrainStatus(_message.Message):
    __slots__ = ("status", "node_id", "outer_step", "active_nodes", "rank")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OK: _ClassVar[MLNodeTrainStatus.Status]
        ERROR: _ClassVar[MLNodeTrainStatus.Status]
        JOINED: _ClassVar[MLNodeTrainStatus.Status]
        NOT_JOINED: _ClassVar[MLNodeTrainStatus.Status]
    OK: MLNodeTrainStatus.Status
    ERROR: MLNodeTrainStatus.Status
    JOINED: MLNodeTrainStatus.Status
    NOT_JOINED: MLNodeTrainStatus.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_NODES_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    status: MLNodeTrainStatus.Status
    node_id: bytes
    outer_step: int
    active_nodes: _containers.RepeatedScalarFieldContainer[bytes]
    rank: int
    def __init__(self, status: _Optional[_Union[MLNodeTrainStatus.Status, str]] = ..., node_id: _Optional[bytes] = ..., outer_step: _Optional[int] = ..., active_nodes: _Optional[_Iterable[bytes]] = ..., rank: _Optional[int] = ...) -> None: ...

class MsgJoinTraining(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    req: JoinTrainingRequest
    def __init__(self, creator: _Optional[bytes] = ..., req: _Optional[_Union[JoinTrainingRequest, _Mapping]] = ...) -> None: ...

class MsgJoinTrainingResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: MLNodeTrainStatus
    def __init__(self, status: _Optional[_Union[MLNodeTrainStatus, _Mapping]] = ...) -> None: ...

class MsgJoinTrainingStatus(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    req: JoinTrainingRequest
    def __init__(self, creator: _Optional[bytes] = ..., req: _Optional[_Union[JoinTrainingRequest, _Mapping]] = ...) -> None: ...

class MsgJoinTrainingStatusResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: MLNodeTrainStatus
    def __init__(self, status: _Optional[_Union[MLNodeTrainStatus, _Mapping]] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("node_id", "run_id", "local_rank", "timestamp", "inner_step", "outer_step", "epoch")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RANK_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    INNER_STEP_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    node_id: bytes
    run_id: int
    local_rank: int
    timestamp: float
    inner_step: int
    outer_step: int
    epoch: int
    def __init__(self, node_id: _Optional[bytes] = ..., run_id: _Optional[int] = ..., local_rank: _Optional[int] = ..., timestamp: _Optional[float] = ..., inner_step: _Optional[int] = ..., outer_step: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("status",)
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OK: _ClassVar[HeartbeatResponse.Status]
        ERROR: _ClassVar[HeartbeatResponse.Status]
    OK: HeartbeatResponse.Status
    ERROR: HeartbeatResponse.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: HeartbeatResponse.Status
    def __init__(self, status: _Optional[_Union[HeartbeatResponse.Status, str]] = ...) -> None: ...

class MsgTrainingHeartbeat(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    req: HeartbeatRequest
    def __init__(self, creator: _Optional[bytes] = ..., req: _Optional[_Union[HeartbeatRequest, _Mapping]] = ...) -> None: ...

class MsgTrainingHeartbeatResponse(_message.Message):
    __slots__ = ("resp",)
    RESP_FIELD_NUMBER: _ClassVar[int]
    resp: HeartbeatResponse
    def __init__(self, resp: _Optional[_Union[HeartbeatResponse, _Mapping]] = ...) -> None: ...

class SetBarrierRequest(_message.Message):
    __slots__ = ("barrier_id", "node_id", "run_id", "outer_step")
    BARRIER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    barrier_id: bytes
    node_id: bytes
    run_id: int
    outer_step: int
    def __init__(self, barrier_id: _Optional[bytes] = ..., node_id: _Optional[bytes] = ..., run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class SetBarrierResponse(_message.Message):
    __slots__ = ("status",)
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        READY: _ClassVar[SetBarrierResponse.Status]
        NOT_READY: _ClassVar[SetBarrierResponse.Status]
    READY: SetBarrierResponse.Status
    NOT_READY: SetBarrierResponse.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: SetBarrierResponse.Status
    def __init__(self, status: _Optional[_Union[SetBarrierResponse.Status, str]] = ...) -> None: ...

class MsgSetBarrier(_message.Message):
    __slots__ = ("creator", "req")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    REQ_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    req: SetBarrierRequest
    def __init__(self, creator: _Optional[bytes] = ..., req: _Optional[_Union[SetBarrierRequest, _Mapping]] = ...) -> None: ...

class MsgSetBarrierResponse(_message.Message):
    __slots__ = ("resp",)
    RESP_FIELD_NUMBER: _ClassVar[int]
    resp: SetBarrierResponse
    def __init__(self, resp: _Optional[_Union[SetBarrierResponse, _Mapping]] = ...) -> None: ...

class GetBarrierStatusRequest(_message.Message):
    __slots__ = ("barrier_id", "run_id", "outer_step")
    BARRIER_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTER_STEP_FIELD_NUMBER: _ClassVar[int]
    barrier_id: bytes
    run_id: int
    outer_step: int
    def __init__(self, barrier_id: _Optional[bytes] = ..., run_id: _Optional[int] = ..., outer_step: _Optional[int] = ...) -> None: ...

class GetBarrierStatusResponse(_message.Message):
    __slots__ = ("all_ready", "not_ready", "alive_nodes")
    ALL_READY_FIELD_NUMBER: _ClassVar[int]
    NOT_READY_FIELD_NUMBER: _ClassVar[int]
    ALIVE_NODES_FIELD_NUMBER: _ClassVar[int]
    all_ready: bool
    not_ready: _containers.RepeatedScalarFieldContainer[bytes]
    alive_nodes: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, all_ready: bool = ..., not_ready: _Optional[_Iterable[bytes]] = ..., alive_nodes: _Optional[_Iterable[bytes]] = ...) -> None: ...

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

class MsgSubmitTrainingKvRecord(_message.Message):
    __slots__ = ("creator", "taskId", "participant", "key", "value")
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    TASKID_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    creator: bytes
    taskId: int
    participant: bytes
    key: bytes
    value: bytes
    def __init__(self, creator: _Optional[bytes] = ..., taskId: _Optional[int] = ..., participant: _Optional[bytes] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class MsgSubmitTrainingKvRecordResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TrainingTaskKVRecord(_message.Message):
    __slots__ = ("taskId", "participant", "key", "value")
    TASKID_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    taskId: int
    participant: bytes
    key: bytes
    value: bytes
    def __init__(self, taskId: _Optional[int] = ..., participant: _Optional[bytes] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class QueryTrainingKvRecordRequest(_message.Message):
    __slots__ = ("taskId", "key")
    TASKID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    taskId: int
    key: bytes
    def __init__(self, taskId: _Optional[int] = ..., key: _Optional[bytes] = ...) -> None: ...

class QueryTrainingKvRecordResponse(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: TrainingTaskKVRecord
    def __init__(self, record: _Optional[_Union[TrainingTaskKVRecord, _Mapping]] = ...) -> None: ...

class QueryListTrainingKvRecordKeysRequest(_message.Message):
    __slots__ = ("taskId",)
    TASKID_FIELD_NUMBER: _ClassVar[int]
    taskId: int
    def __init__(self, taskId: _Optional[int] = ...) -> None: ...

class QueryListTrainingKvRecordKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

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

class NodeActivity(_message.Message):
    __slots__ = ("participant", "node_id", "heartbeat_height", "rank")
    PARTICIPANT_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    participant: bytes
    node_id: bytes
    heartbeat_height: int
    rank: int
    def __init__(self, participant: _Optional[bytes] = ..., node_id: _Optional[bytes] = ..., heartbeat_height: _Optional[int] = ..., rank: _Optional[int] = ...) -> None: ...
