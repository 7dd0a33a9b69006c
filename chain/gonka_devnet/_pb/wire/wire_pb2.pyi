from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AnyValue(_message.Message):
    __slots__ = ("type_url", "value")
    TYPE_URL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    type_url: bytes
    value: bytes
    def __init__(self, type_url: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class Time(_message.Message):
    __slots__ = ("seconds", "nanos")
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    NANOS_FIELD_NUMBER: _ClassVar[int]
    seconds: int
    nanos: int
    def __init__(self, seconds: _Optional[int] = ..., nanos: _Optional[int] = ...) -> None: ...

class Coin(_message.Message):
    __slots__ = ("denom", "amount")
    DENOM_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    denom: bytes
    amount: bytes
    def __init__(self, denom: _Optional[bytes] = ..., amount: _Optional[bytes] = ...) -> None: ...

class TxRaw(_message.Message):
    __slots__ = ("body_bytes", "auth_info_bytes", "signatures")
    BODY_BYTES_FIELD_NUMBER: _ClassVar[int]
    AUTH_INFO_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    body_bytes: bytes
    auth_info_bytes: bytes
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, body_bytes: _Optional[bytes] = ..., auth_info_bytes: _Optional[bytes] = ..., signatures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TxBody(_message.Message):
    __slots__ = ("messages", "memo", "timeout_height", "unordered", "timeout_timestamp", "extension_options", "non_critical_extension_options")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MEMO_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    UNORDERED_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NON_CRITICAL_EXTENSION_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[AnyValue]
    memo: bytes
    timeout_height: int
    unordered: bool
    timeout_timestamp: Time
    extension_options: _containers.RepeatedCompositeFieldContainer[AnyValue]
    non_critical_extension_options: _containers.RepeatedCompositeFieldContainer[AnyValue]
    def __init__(self, messages: _Optional[_Iterable[_Union[AnyValue, _Mapping]]] = ..., memo: _Optional[bytes] = ..., timeout_height: _Optional[int] = ..., unordered: bool = ..., timeout_timestamp: _Optional[_Union[Time, _Mapping]] = ..., extension_options: _Optional[_Iterable[_Union[AnyValue, _Mapping]]] = ..., non_critical_extension_options: _Optional[_Iterable[_Union[AnyValue, _Mapping]]] = ...) -> None: ...

class ModeInfo(_message.Message):
    __slots__ = ("single", "multi")
    class Single(_message.Message):
        __slots__ = ("mode",)
        MODE_FIELD_NUMBER: _ClassVar[int]
        mode: int
        def __init__(self, mode: _Optional[int] = ...) -> None: ...
    class Multi(_message.Message):
        __slots__ = ("bitarray", "mode_infos")
        BITARRAY_FIELD_NUMBER: _ClassVar[int]
        MODE_INFOS_FIELD_NUMBER: _ClassVar[int]
        bitarray: bytes
        mode_infos: _containers.RepeatedCompositeFieldContainer[ModeInfo]
        def __init__(self, bitarray: _Optional[bytes] = ..., mode_infos: _Optional[_Iterable[_Union[ModeInfo, _Mapping]]] = ...) -> None: ...
    SINGLE_FIELD_NUMBER: _ClassVar[int]
    MULTI_FIELD_NUMBER: _ClassVar[int]
    single: ModeInfo.Single
    multi: ModeInfo.Multi
    def __init__(self, single: _Optional[_Union[ModeInfo.Single, _Mapping]] = ..., multi: _Optional[_Union[ModeInfo.Multi, _Mapping]] = ...) -> None: ...

class SignerInfo(_message.Message):
    __slots__ = ("public_key", "mode_info", "sequence")
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    MODE_INFO_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    public_key: AnyValue
    mode_info: ModeInfo
    sequence: int
    def __init__(self, public_key: _Optional[_Union[AnyValue, _Mapping]] = ..., mode_info: _Optional[_Union[ModeInfo, _Mapping]] = ..., sequence: _Optional[int] = ...) -> None: ...

class Fee(_message.Message):
    __slots__ = ("amount", "gas_limit", "payer", "granter")
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    GAS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAYER_FIELD_NUMBER: _ClassVar[int]
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    amount: _containers.RepeatedCompositeFieldContainer[Coin]
    gas_limit: int
    payer: bytes
    granter: bytes
    def __init__(self, amount: _Optional[_Iterable[_Union[Coin, _Mapping]]] = ..., gas_limit: _Optional[int] = ..., payer: _Optional[bytes] = ..., granter: _Optional[bytes] = ...) -> None: ...

class Tip(_message.Message):
    __slots__ = ("amount", "tipper")
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TIPPER_FIELD_NUMBER: _ClassVar[int]
    amount: _containers.RepeatedCompositeFieldContainer[Coin]
    tipper: bytes
    def __init__(self, amount: _Optional[_Iterable[_Union[Coin, _Mapping]]] = ..., tipper: _Optional[bytes] = ...) -> None: ...

class AuthInfo(_message.Message):
    __slots__ = ("signer_infos", "fee", "tip")
    SIGNER_INFOS_FIELD_NUMBER: _ClassVar[int]
    FEE_FIELD_NUMBER: _ClassVar[int]
    TIP_FIELD_NUMBER: _ClassVar[int]
    signer_infos: _containers.RepeatedCompositeFieldContainer[SignerInfo]
    fee: Fee
    tip: Tip
    def __init__(self, signer_infos: _Optional[_Iterable[_Union[SignerInfo, _Mapping]]] = ..., fee: _Optional[_Union[Fee, _Mapping]] = ..., tip: _Optional[_Union[Tip, _Mapping]] = ...) -> None: ...

class Tx(_message.Message):
    __slots__ = ("body", "auth_info", "signatures")
    BODY_FIELD_NUMBER: _ClassVar[int]
    AUTH_INFO_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    body: TxBody
    auth_info: AuthInfo
    signatures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, body: _Optional[_Union[TxBody, _Mapping]] = ..., auth_info: _Optional[_Union[AuthInfo, _Mapping]] = ..., signatures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SignDoc(_message.Message):
    __slots__ = ("body_bytes", "auth_info_bytes", "chain_id", "account_number")
    BODY_BYTES_FIELD_NUMBER: _ClassVar[int]
    AUTH_INFO_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHAIN_ID_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    body_bytes: bytes
    auth_info_bytes: bytes
    chain_id: bytes
    account_number: int
    def __init__(self, body_bytes: _Optional[bytes] = ..., auth_info_bytes: _Optional[bytes] = ..., chain_id: _Optional[bytes] = ..., account_number: _Optional[int] = ...) -> None: ...

class PubKey(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    def __init__(self, key: _Optional[bytes] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("type", "attributes")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    type: bytes
    attributes: _containers.RepeatedCompositeFieldContainer[EventAttribute]
    def __init__(self, type: _Optional[bytes] = ..., attributes: _Optional[_Iterable[_Union[EventAttribute, _Mapping]]] = ...) -> None: ...

class EventAttribute(_message.Message):
    __slots__ = ("key", "value", "index")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    index: bool
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., index: bool = ...) -> None: ...

class ExecTxResult(_message.Message):
    __slots__ = ("code", "data", "log", "info", "gas_wanted", "gas_used", "events", "codespace")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    GAS_WANTED_FIELD_NUMBER: _ClassVar[int]
    GAS_USED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    CODESPACE_FIELD_NUMBER: _ClassVar[int]
    code: int
    data: bytes
    log: bytes
    info: bytes
    gas_wanted: int
    gas_used: int
    events: _containers.RepeatedCompositeFieldContainer[Event]
    codespace: bytes
    def __init__(self, code: _Optional[int] = ..., data: _Optional[bytes] = ..., log: _Optional[bytes] = ..., info: _Optional[bytes] = ..., gas_wanted: _Optional[int] = ..., gas_used: _Optional[int] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., codespace: _Optional[bytes] = ...) -> None: ...

class BlockResults(_message.Message):
    __slots__ = ("results", "events", "app_hash")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    APP_HASH_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ExecTxResult]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    app_hash: bytes
    def __init__(self, results: _Optional[_Iterable[_Union[ExecTxResult, _Mapping]]] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., app_hash: _Optional[bytes] = ...) -> None: ...

class DeterministicResult(_message.Message):
    __slots__ = ("code", "data", "gas_wanted", "gas_used")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    GAS_WANTED_FIELD_NUMBER: _ClassVar[int]
    GAS_USED_FIELD_NUMBER: _ClassVar[int]
    code: int
    data: bytes
    gas_wanted: int
    gas_used: int
    def __init__(self, code: _Optional[int] = ..., data: _Optional[bytes] = ..., gas_wanted: _Optional[int] = ..., gas_used: _Optional[int] = ...) -> None: ...

class TxMsgData(_message.Message):
    __slots__ = ("msg_responses",)
    MSG_RESPONSES_FIELD_NUMBER: _ClassVar[int]
    msg_responses: _containers.RepeatedCompositeFieldContainer[AnyValue]
    def __init__(self, msg_responses: _Optional[_Iterable[_Union[AnyValue, _Mapping]]] = ...) -> None: ...

class TxResponse(_message.Message):
    __slots__ = ("height", "txhash", "codespace", "code", "data", "raw_log", "info", "gas_wanted", "gas_used", "tx", "timestamp", "events")
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    TXHASH_FIELD_NUMBER: _ClassVar[int]
    CODESPACE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    RAW_LOG_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    GAS_WANTED_FIELD_NUMBER: _ClassVar[int]
    GAS_USED_FIELD_NUMBER: _ClassVar[int]
    TX_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    height: int
    txhash: bytes
    codespace: bytes
    code: int
    data: bytes
    raw_log: bytes
    info: bytes
    gas_wanted: int
    gas_used: int
    tx: AnyValue
    timestamp: bytes
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, height: _Optional[int] = ..., txhash: _Optional[bytes] = ..., codespace: _Optional[bytes] = ..., code: _Optional[int] = ..., data: _Optional[bytes] = ..., raw_log: _Optional[bytes] = ..., info: _Optional[bytes] = ..., gas_wanted: _Optional[int] = ..., gas_used: _Optional[int] = ..., tx: _Optional[_Union[AnyValue, _Mapping]] = ..., timestamp: _Optional[bytes] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class PageRequest(_message.Message):
    __slots__ = ("key", "offset", "limit", "count_total", "reverse")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    COUNT_TOTAL_FIELD_NUMBER: _ClassVar[int]
    REVERSE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    offset: int
    limit: int
    count_total: bool
    reverse: bool
    def __init__(self, key: _Optional[bytes] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., count_total: bool = ..., reverse: bool = ...) -> None: ...

class PageResponse(_message.Message):
    __slots__ = ("next_key", "total")
    NEXT_KEY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    next_key: bytes
    total: int
    def __init__(self, next_key: _Optional[bytes] = ..., total: _Optional[int] = ...) -> None: ...

class SimulateRequest(_message.Message):
    __slots__ = ("tx", "tx_bytes")
    TX_FIELD_NUMBER: _ClassVar[int]
    TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    tx: bytes
    tx_bytes: bytes
    def __init__(self, tx: _Optional[bytes] = ..., tx_bytes: _Optional[bytes] = ...) -> None: ...

class GasInfo(_message.Message):
    __slots__ = ("gas_wanted", "gas_used")
    GAS_WANTED_FIELD_NUMBER: _ClassVar[int]
    GAS_USED_FIELD_NUMBER: _ClassVar[int]
    gas_wanted: int
    gas_used: int
    def __init__(self, gas_wanted: _Optional[int] = ..., gas_used: _Optional[int] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("data", "log", "events", "msg_responses")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MSG_RESPONSES_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    log: bytes
    events: _containers.RepeatedCompositeFieldContainer[Event]
    msg_responses: _containers.RepeatedCompositeFieldContainer[AnyValue]
    def __init__(self, data: _Optional[bytes] = ..., log: _Optional[bytes] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., msg_responses: _Optional[_Iterable[_Union[AnyValue, _Mapping]]] = ...) -> None: ...

class SimulateResponse(_message.Message):
    __slots__ = ("gas_info", "result")
    GAS_INFO_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    gas_info: GasInfo
    result: Result
    def __init__(self, gas_info: _Optional[_Union[GasInfo, _Mapping]] = ..., result: _Optional[_Union[Result, _Mapping]] = ...) -> None: ...

class BroadcastTxRequest(_message.Message):
    __slots__ = ("tx_bytes", "mode")
    TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    tx_bytes: bytes
    mode: int
    def __init__(self, tx_bytes: _Optional[bytes] = ..., mode: _Optional[int] = ...) -> None: ...

class BroadcastTxResponse(_message.Message):
    __slots__ = ("tx_response",)
    TX_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    tx_response: TxResponse
    def __init__(self, tx_response: _Optional[_Union[TxResponse, _Mapping]] = ...) -> None: ...

class GetTxRequest(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    def __init__(self, hash: _Optional[bytes] = ...) -> None: ...

class GetTxResponse(_message.Message):
    __slots__ = ("tx", "tx_response")
    TX_FIELD_NUMBER: _ClassVar[int]
    TX_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    tx: Tx
    tx_response: TxResponse
    def __init__(self, tx: _Optional[_Union[Tx, _Mapping]] = ..., tx_response: _Optional[_Union[TxResponse, _Mapping]] = ...) -> None: ...

class GetTxsEventRequest(_message.Message):
    __slots__ = ("events", "pagination", "order_by", "page", "limit", "query")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedScalarFieldContainer[bytes]
    pagination: PageRequest
    order_by: int
    page: int
    limit: int
    query: bytes
    def __init__(self, events: _Optional[_Iterable[bytes]] = ..., pagination: _Optional[_Union[PageRequest, _Mapping]] = ..., order_by: _Optional[int] = ..., page: _Optional[int] = ..., limit: _Optional[int] = ..., query: _Optional[bytes] = ...) -> None: ...

class GetTxsEventResponse(_message.Message):
    __slots__ = ("txs", "tx_responses", "pagination", "total")
    TXS_FIELD_NUMBER: _ClassVar[int]
    TX_RESPONSES_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    txs: _containers.RepeatedCompositeFieldContainer[Tx]
    tx_responses: _containers.RepeatedCompositeFieldContainer[TxResponse]
    pagination: PageResponse
    total: int
    def __init__(self, txs: _Optional[_Iterable[_Union[Tx, _Mapping]]] = ..., tx_responses: _Optional[_Iterable[_Union[TxResponse, _Mapping]]] = ..., pagination: _Optional[_Union[PageResponse, _Mapping]] = ..., total: _Optional[int] = ...) -> None: ...

class GetBlockWithTxsRequest(_message.Message):
    __slots__ = ("height", "pagination")
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    height: int
    pagination: PageRequest
    def __init__(self, height: _Optional[int] = ..., pagination: _Optional[_Union[PageRequest, _Mapping]] = ...) -> None: ...

class GetBlockWithTxsResponse(_message.Message):
    __slots__ = ("txs", "block_id", "block", "pagination")
    TXS_FIELD_NUMBER: _ClassVar[int]
    BLOCK_ID_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    txs: _containers.RepeatedCompositeFieldContainer[Tx]
    block_id: bytes
    block: bytes
    pagination: PageResponse
    def __init__(self, txs: _Optional[_Iterable[_Union[Tx, _Mapping]]] = ..., block_id: _Optional[bytes] = ..., block: _Optional[bytes] = ..., pagination: _Optional[_Union[PageResponse, _Mapping]] = ...) -> None: ...

class MsgSend(_message.Message):
    __slots__ = ("from_address", "to_address", "amount")
    FROM_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TO_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    from_address: bytes
    to_address: bytes
    amount: _containers.RepeatedCompositeFieldContainer[Coin]
    def __init__(self, from_address: _Optional[bytes] = ..., to_address: _Optional[bytes] = ..., amount: _Optional[_Iterable[_Union[Coin, _Mapping]]] = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ("address", "coins")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    COINS_FIELD_NUMBER: _ClassVar[int]
    address: bytes
    coins: _containers.RepeatedCompositeFieldContainer[Coin]
    def __init__(self, address: _Optional[bytes] = ..., coins: _Optional[_Iterable[_Union[Coin, _Mapping]]] = ...) -> None: ...

class MsgMultiSend(_message.Message):
    __slots__ = ("inputs", "outputs")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[Input]
    outputs: _containers.RepeatedCompositeFieldContainer[Input]
    def __init__(self, inputs: _Optional[_Iterable[_Union[Input, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[Input, _Mapping]]] = ...) -> None: ...

class GenericAuthorization(_message.Message):
    __slots__ = ("msg",)
    MSG_FIELD_NUMBER: _ClassVar[int]
    msg: bytes
    def __init__(self, msg: _Optional[bytes] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("authorization", "expiration")
    AUTHORIZATION_FIELD_NUMBER: _ClassVar[int]
    EXPIRATION_FIELD_NUMBER: _ClassVar[int]
    authorization: AnyValue
    expiration: Time
    def __init__(self, authorization: _Optional[_Union[AnyValue, _Mapping]] = ..., expiration: _Optional[_Union[Time, _Mapping]] = ...) -> None: ...

class MsgGrant(_message.Message):
    __slots__ = ("granter", "grantee", "grant")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    granter: bytes
    grantee: bytes
    grant: Grant
    def __init__(self, granter: _Optional[bytes] = ..., grantee: _Optional[bytes] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ...) -> None: ...

class MsgExec(_message.Message):
    __slots__ = ("grantee", "msgs")
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    MSGS_FIELD_NUMBER: _ClassVar[int]
    grantee: bytes
    msgs: _containers.RepeatedCompositeFieldContainer[AnyValue]
    def __init__(self, grantee: _Optional[bytes] = ..., msgs: _Optional[_Iterable[_Union[AnyValue, _Mapping]]] = ...) -> None: ...

class MsgExecResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, results: _Optional[_Iterable[bytes]] = ...) -> None: ...

class MsgRevoke(_message.Message):
    __slots__ = ("granter", "grantee", "msg_type_url")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    MSG_TYPE_URL_FIELD_NUMBER: _ClassVar[int]
    granter: bytes
    grantee: bytes
    msg_type_url: bytes
    def __init__(self, granter: _Optional[bytes] = ..., grantee: _Optional[bytes] = ..., msg_type_url: _Optional[bytes] = ...) -> None: ...

class BasicAllowance(_message.Message):
    __slots__ = ("spend_limit", "expiration")
    SPEND_LIMIT_FIELD_NUMBER: _ClassVar[int]
    EXPIRATION_FIELD_NUMBER: _ClassVar[int]
    spend_limit: _containers.RepeatedCompositeFieldContainer[Coin]
    expiration: Time
    def __init__(self, spend_limit: _Optional[_Iterable[_Union[Coin, _Mapping]]] = ..., expiration: _Optional[_Union[Time, _Mapping]] = ...) -> None: ...

class MsgGrantAllowance(_message.Message):
    __slots__ = ("granter", "grantee", "allowance")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    ALLOWANCE_FIELD_NUMBER: _ClassVar[int]
    granter: bytes
    grantee: bytes
    allowance: AnyValue
    def __init__(self, granter: _Optional[bytes] = ..., grantee: _Optional[bytes] = ..., allowance: _Optional[_Union[AnyValue, _Mapping]] = ...) -> None: ...

class MsgRevokeAllowance(_message.Message):
    __slots__ = ("granter", "grantee")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    granter: bytes
    grantee: bytes
    def __init__(self, granter: _Optional[bytes] = ..., grantee: _Optional[bytes] = ...) -> None: ...

class NodeConfig(_message.Message):
    __slots__ = ("minimum_gas_price", "pruning_keep_recent", "pruning_interval", "halt_height")
    MINIMUM_GAS_PRICE_FIELD_NUMBER: _ClassVar[int]
    PRUNING_KEEP_RECENT_FIELD_NUMBER: _ClassVar[int]
    PRUNING_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    HALT_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    minimum_gas_price: bytes
    pruning_keep_recent: bytes
    pruning_interval: bytes
    halt_height: int
    def __init__(self, minimum_gas_price: _Optional[bytes] = ..., pruning_keep_recent: _Optional[bytes] = ..., pruning_interval: _Optional[bytes] = ..., halt_height: _Optional[int] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("earliest_store_height", "height", "timestamp", "app_hash", "validator_hash")
    EARLIEST_STORE_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    APP_HASH_FIELD_NUMBER: _ClassVar[int]
    VALIDATOR_HASH_FIELD_NUMBER: _ClassVar[int]
    earliest_store_height: int
    height: int
    timestamp: Time
    app_hash: bytes
    validator_hash: bytes
    def __init__(self, earliest_store_height: _Optional[int] = ..., height: _Optional[int] = ..., timestamp: _Optional[_Union[Time, _Mapping]] = ..., app_hash: _Optional[bytes] = ..., validator_hash: _Optional[bytes] = ...) -> None: ...

class CanonicalPartSetHeader(_message.Message):
    __slots__ = ("total", "hash")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    total: int
    hash: bytes
    def __init__(self, total: _Optional[int] = ..., hash: _Optional[bytes] = ...) -> None: ...

class CanonicalBlockId(_message.Message):
    __slots__ = ("hash", "part_set_header")
    HASH_FIELD_NUMBER: _ClassVar[int]
    PART_SET_HEADER_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    part_set_header: CanonicalPartSetHeader
    def __init__(self, hash: _Optional[bytes] = ..., part_set_header: _Optional[_Union[CanonicalPartSetHeader, _Mapping]] = ...) -> None: ...

class CanonicalVote(_message.Message):
    __slots__ = ("type", "height", "round", "block_id", "timestamp", "chain_id")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    BLOCK_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CHAIN_ID_FIELD_NUMBER: _ClassVar[int]
    type: int
    height: int
    round: int
    block_id: CanonicalBlockId
    timestamp: Time
    chain_id: str
    def __init__(self, type: _Optional[int] = ..., height: _Optional[int] = ..., round: _Optional[int] = ..., block_id: _Optional[_Union[CanonicalBlockId, _Mapping]] = ..., timestamp: _Optional[_Union[Time, _Mapping]] = ..., chain_id: _Optional[str] = ...) -> None: ...
