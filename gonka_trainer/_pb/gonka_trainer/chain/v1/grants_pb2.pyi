from gonka_trainer._pb.gonka_trainer.chain.v1 import tx_pb2 as _tx_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueryGrantsRequest(_message.Message):
    __slots__ = ("granter", "grantee", "msg_type_url", "pagination")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    MSG_TYPE_URL_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    granter: str
    grantee: str
    msg_type_url: str
    pagination: PageRequest
    def __init__(self, granter: _Optional[str] = ..., grantee: _Optional[str] = ..., msg_type_url: _Optional[str] = ..., pagination: _Optional[_Union[PageRequest, _Mapping]] = ...) -> None: ...

class QueryGrantsResponse(_message.Message):
    __slots__ = ("grants", "pagination")
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    PAGINATION_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    pagination: PageResponse
    def __init__(self, grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., pagination: _Optional[_Union[PageResponse, _Mapping]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("authorization", "expiration")
    AUTHORIZATION_FIELD_NUMBER: _ClassVar[int]
    EXPIRATION_FIELD_NUMBER: _ClassVar[int]
    authorization: _tx_pb2.Any
    expiration: _tx_pb2.Timestamp
    def __init__(self, authorization: _Optional[_Union[_tx_pb2.Any, _Mapping]] = ..., expiration: _Optional[_Union[_tx_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GenericAuthorization(_message.Message):
    __slots__ = ("msg",)
    MSG_FIELD_NUMBER: _ClassVar[int]
    msg: bytes
    def __init__(self, msg: _Optional[bytes] = ...) -> None: ...

class SendAuthorization(_message.Message):
    __slots__ = ("spend_limit", "allow_list")
    SPEND_LIMIT_FIELD_NUMBER: _ClassVar[int]
    ALLOW_LIST_FIELD_NUMBER: _ClassVar[int]
    spend_limit: _containers.RepeatedCompositeFieldContainer[_tx_pb2.Coin]
    allow_list: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, spend_limit: _Optional[_Iterable[_Union[_tx_pb2.Coin, _Mapping]]] = ..., allow_list: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PageRequest(_message.Message):
    __slots__ = ("key", "limit")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    limit: int
    def __init__(self, key: _Optional[bytes] = ..., limit: _Optional[int] = ...) -> None: ...

class PageResponse(_message.Message):
    __slots__ = ("next_key",)
    NEXT_KEY_FIELD_NUMBER: _ClassVar[int]
    next_key: bytes
    def __init__(self, next_key: _Optional[bytes] = ...) -> None: ...

class QueryAllowanceRequest(_message.Message):
    __slots__ = ("granter", "grantee")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    granter: str
    grantee: str
    def __init__(self, granter: _Optional[str] = ..., grantee: _Optional[str] = ...) -> None: ...

class QueryAllowanceResponse(_message.Message):
    __slots__ = ("allowance",)
    ALLOWANCE_FIELD_NUMBER: _ClassVar[int]
    allowance: AllowanceGrant
    def __init__(self, allowance: _Optional[_Union[AllowanceGrant, _Mapping]] = ...) -> None: ...

class AllowanceGrant(_message.Message):
    __slots__ = ("granter", "grantee", "allowance")
    GRANTER_FIELD_NUMBER: _ClassVar[int]
    GRANTEE_FIELD_NUMBER: _ClassVar[int]
    ALLOWANCE_FIELD_NUMBER: _ClassVar[int]
    granter: bytes
    grantee: bytes
    allowance: _tx_pb2.Any
    def __init__(self, granter: _Optional[bytes] = ..., grantee: _Optional[bytes] = ..., allowance: _Optional[_Union[_tx_pb2.Any, _Mapping]] = ...) -> None: ...

class BasicAllowance(_message.Message):
    __slots__ = ("spend_limit", "expiration")
    SPEND_LIMIT_FIELD_NUMBER: _ClassVar[int]
    EXPIRATION_FIELD_NUMBER: _ClassVar[int]
    spend_limit: _containers.RepeatedCompositeFieldContainer[_tx_pb2.Coin]
    expiration: _tx_pb2.Timestamp
    def __init__(self, spend_limit: _Optional[_Iterable[_Union[_tx_pb2.Coin, _Mapping]]] = ..., expiration: _Optional[_Union[_tx_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PeriodicAllowance(_message.Message):
    __slots__ = ("basic", "period_spend_limit", "period_can_spend", "period_reset")
    BASIC_FIELD_NUMBER: _ClassVar[int]
    PERIOD_SPEND_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PERIOD_CAN_SPEND_FIELD_NUMBER: _ClassVar[int]
    PERIOD_RESET_FIELD_NUMBER: _ClassVar[int]
    basic: BasicAllowance
    period_spend_limit: _containers.RepeatedCompositeFieldContainer[_tx_pb2.Coin]
    period_can_spend: _containers.RepeatedCompositeFieldContainer[_tx_pb2.Coin]
    period_reset: _tx_pb2.Timestamp
    def __init__(self, basic: _Optional[_Union[BasicAllowance, _Mapping]] = ..., period_spend_limit: _Optional[_Iterable[_Union[_tx_pb2.Coin, _Mapping]]] = ..., period_can_spend: _Optional[_Iterable[_Union[_tx_pb2.Coin, _Mapping]]] = ..., period_reset: _Optional[_Union[_tx_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AllowedMsgAllowance(_message.Message):
    __slots__ = ("allowance", "allowed_messages")
    ALLOWANCE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    allowance: _tx_pb2.Any
    allowed_messages: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, allowance: _Optional[_Union[_tx_pb2.Any, _Mapping]] = ..., allowed_messages: _Optional[_Iterable[bytes]] = ...) -> None: ...
