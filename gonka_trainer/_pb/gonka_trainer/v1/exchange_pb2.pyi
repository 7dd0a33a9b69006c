from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_BLOB: _ClassVar[Kind]
    KIND_STATE: _ClassVar[Kind]
KIND_UNSPECIFIED: Kind
KIND_BLOB: Kind
KIND_STATE: Kind

class ObjectName(_message.Message):
    __slots__ = ("kind", "key", "round")
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    kind: Kind
    key: bytes
    round: int
    def __init__(self, kind: _Optional[_Union[Kind, str]] = ..., key: _Optional[bytes] = ..., round: _Optional[int] = ...) -> None: ...

class IndexRequest(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: ObjectName
    def __init__(self, object: _Optional[_Union[ObjectName, _Mapping]] = ...) -> None: ...

class IndexPiece(_message.Message):
    __slots__ = ("preamble_bytes", "leaf_list_bytes", "data")
    PREAMBLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEAF_LIST_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    preamble_bytes: int
    leaf_list_bytes: int
    data: bytes
    def __init__(self, preamble_bytes: _Optional[int] = ..., leaf_list_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class ChunksRequest(_message.Message):
    __slots__ = ("object", "chunks")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    object: ObjectName
    chunks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, object: _Optional[_Union[ObjectName, _Mapping]] = ..., chunks: _Optional[_Iterable[int]] = ...) -> None: ...

class ChunkPiece(_message.Message):
    __slots__ = ("chunk", "chunk_bytes", "data")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    chunk: int
    chunk_bytes: int
    data: bytes
    def __init__(self, chunk: _Optional[int] = ..., chunk_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class DocumentRequest(_message.Message):
    __slots__ = ("digest",)
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    def __init__(self, digest: _Optional[bytes] = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...
