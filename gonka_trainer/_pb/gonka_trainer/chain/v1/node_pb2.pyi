from gonka_trainer._pb.gonka_trainer.chain.v1 import tx_pb2 as _tx_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BroadcastMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BROADCAST_MODE_UNSPECIFIED: _ClassVar[BroadcastMode]
    BROADCAST_MODE_SYNC: _ClassVar[BroadcastMode]
    BROADCAST_MODE_ASYNC: _ClassVar[BroadcastMode]

class OrderBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORDER_BY_UNSPECIFIED: _ClassVar[OrderBy]
    ORDER_BY_ASC: _ClassVar[OrderBy]
    ORDER_BY_DESC: _ClassVar[OrderBy]
BROADCAST_MODE_UNSPECIFIED: BroadcastMode
BROADCAST_MODE_SYNC: BroadcastMode
BROADCAST_MODE_ASYNC: BroadcastMode
ORDER_BY_UNSPECIFIED: OrderBy
ORDER_BY_ASC: OrderBy
ORDER_BY_DESC: OrderBy

class GetNodeInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNodeInfoResponse(_message.Message):
    __slots__ = ("default_node_info", "application_version")
    DEFAULT_NODE_INFO_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_VERSION_FIELD_NUMBER: _ClassVar[int]
    default_node_info: DefaultNodeInfo
    application_version: VersionInfo
    def __init__(self, default_node_info: _Optional[_Union[DefaultNodeInfo, _Mapping]] = ..., application_version: _Optional[_Union[VersionInfo, _Mapping]] = ...) -> None: ...

class DefaultNodeInfo(_message.Message):
    __slots__ = ("network", "version")
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    network: bytes
    version: bytes
    def __init__(self, network: _Optional[bytes] = ..., version: _Optional[bytes] = ...) -> None: ...

class VersionInfo(_message.Message):
    __slots__ = ("name", "app_name", "version", "cosmos_sdk_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COSMOS_SDK_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    app_name: bytes
    version: bytes
    cosmos_sdk_version: bytes
    def __init__(self, name: _Optional[bytes] = ..., app_name: _Optional[bytes] = ..., version: _Optional[bytes] = ..., cosmos_sdk_version: _Optional[bytes] = ...) -> None: ...

class GetSyncingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSyncingResponse(_message.Message):
    __slots__ = ("syncing",)
    SYNCING_FIELD_NUMBER: _ClassVar[int]
    syncing: bool
    def __init__(self, syncing: bool = ...) -> None: ...

class QueryAccountRequest(_message.Message):
    __slots__ = ("address",)
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    address: str
    def __init__(self, address: _Optional[str] = ...) -> None: ...

class QueryAccountResponse(_message.Message):
    __slots__ = ("account",)
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    account: _tx_pb2.Any
    def __init__(self, account: _Optional[_Union[_tx_pb2.Any, _Mapping]] = ...) -> None: ...

class BaseAccount(_message.Message):
    __slots__ = ("address", "account_number", "sequence")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    address: bytes
    account_number: int
    sequence: int
    def __init__(self, address: _Optional[bytes] = ..., account_number: _Optional[int] = ..., sequence: _Optional[int] = ...) -> None: ...

class Bech32PrefixRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Bech32PrefixResponse(_message.Message):
    __slots__ = ("bech32_prefix",)
    BECH32_PREFIX_FIELD_NUMBER: _ClassVar[int]
    bech32_prefix: bytes
    def __init__(self, bech32_prefix: _Optional[bytes] = ...) -> None: ...

class QueryBalanceRequest(_message.Message):
    __slots__ = ("address", "denom")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DENOM_FIELD_NUMBER: _ClassVar[int]
    address: str
    denom: str
    def __init__(self, address: _Optional[str] = ..., denom: _Optional[str] = ...) -> None: ...

class QueryBalanceResponse(_message.Message):
    __slots__ = ("balance",)
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    balance: _tx_pb2.Coin
    def __init__(self, balance: _Optional[_Union[_tx_pb2.Coin, _Mapping]] = ...) -> None: ...

class SimulateRequest(_message.Message):
    __slots__ = ("tx_bytes",)
    TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    tx_bytes: bytes
    def __init__(self, tx_bytes: _Optional[bytes] = ...) -> None: ...

class SimulateResponse(_message.Message):
    __slots__ = ("gas_info",)
    GAS_INFO_FIELD_NUMBER: _ClassVar[int]
    gas_info: GasInfo
    def __init__(self, gas_info: _Optional[_Union[GasInfo, _Mapping]] = ...) -> None: ...

class GasInfo(_message.Message):
    __slots__ = ("gas_wanted", "gas_used")
    GAS_WANTED_FIELD_NUMBER: _ClassVar[int]
    GAS_USED_FIELD_NUMBER: _ClassVar[int]
    gas_wanted: int
    gas_used: int
    def __init__(self, gas_wanted: _Optional[int] = ..., gas_used: _Optional[int] = ...) -> None: ...

class BroadcastTxRequest(_message.Message):
    __slots__ = ("tx_bytes", "mode")
    TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    tx_bytes: bytes
    mode: BroadcastMode
    def __init__(self, tx_bytes: _Optional[bytes] = ..., mode: _Optional[_Union[BroadcastMode, str]] = ...) -> None: ...

class BroadcastTxResponse(_message.Message):
    __slots__ = ("tx_response",)
    TX_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    tx_response: TxResponse
    def __init__(self, tx_response: _Optional[_Union[TxResponse, _Mapping]] = ...) -> None: ...

class TxResponse(_message.Message):
    __slots__ = ("height", "txhash", "codespace", "code", "data", "raw_log", "gas_wanted", "gas_used")
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    TXHASH_FIELD_NUMBER: _ClassVar[int]
    CODESPACE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    RAW_LOG_FIELD_NUMBER: _ClassVar[int]
    GAS_WANTED_FIELD_NUMBER: _ClassVar[int]
    GAS_USED_FIELD_NUMBER: _ClassVar[int]
    height: int
    txhash: bytes
    codespace: bytes
    code: int
    data: bytes
    raw_log: bytes
    gas_wanted: int
    gas_used: int
    def __init__(self, height: _Optional[int] = ..., txhash: _Optional[bytes] = ..., codespace: _Optional[bytes] = ..., code: _Optional[int] = ..., data: _Optional[bytes] = ..., raw_log: _Optional[bytes] = ..., gas_wanted: _Optional[int] = ..., gas_used: _Optional[int] = ...) -> None: ...

class GetTxRequest(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: str
    def __init__(self, hash: _Optional[str] = ...) -> None: ...

class GetTxResponse(_message.Message):
    __slots__ = ("tx_response",)
    TX_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    tx_response: TxResponse
    def __init__(self, tx_response: _Optional[_Union[TxResponse, _Mapping]] = ...) -> None: ...

class GetTxsEventRequest(_message.Message):
    __slots__ = ("order_by", "page", "limit", "query")
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    order_by: OrderBy
    page: int
    limit: int
    query: str
    def __init__(self, order_by: _Optional[_Union[OrderBy, str]] = ..., page: _Optional[int] = ..., limit: _Optional[int] = ..., query: _Optional[str] = ...) -> None: ...

class GetTxsEventResponse(_message.Message):
    __slots__ = ("tx_responses", "total")
    TX_RESPONSES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    tx_responses: _containers.RepeatedCompositeFieldContainer[TxResponse]
    total: int
    def __init__(self, tx_responses: _Optional[_Iterable[_Union[TxResponse, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class QueryAuthParamsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryAuthParamsResponse(_message.Message):
    __slots__ = ("params",)
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    params: AuthParams
    def __init__(self, params: _Optional[_Union[AuthParams, _Mapping]] = ...) -> None: ...

class AuthParams(_message.Message):
    __slots__ = ("max_memo_characters",)
    MAX_MEMO_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    max_memo_characters: int
    def __init__(self, max_memo_characters: _Optional[int] = ...) -> None: ...

class ConfigRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ConfigResponse(_message.Message):
    __slots__ = ("minimum_gas_price",)
    MINIMUM_GAS_PRICE_FIELD_NUMBER: _ClassVar[int]
    minimum_gas_price: bytes
    def __init__(self, minimum_gas_price: _Optional[bytes] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("earliest_store_height", "height")
    EARLIEST_STORE_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    earliest_store_height: int
    height: int
    def __init__(self, earliest_store_height: _Optional[int] = ..., height: _Optional[int] = ...) -> None: ...

class QueryTransferRestrictionStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryTransferRestrictionStatusResponse(_message.Message):
    __slots__ = ("is_active", "restriction_end_block")
    IS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    RESTRICTION_END_BLOCK_FIELD_NUMBER: _ClassVar[int]
    is_active: bool
    restriction_end_block: int
    def __init__(self, is_active: bool = ..., restriction_end_block: _Optional[int] = ...) -> None: ...
