"""The peer server: serves blobs, states and documents to those who may have them (docs/protocol.md 1, 3)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Final, NoReturn, Protocol, Self, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from gonka_trainer._pb.gonka_trainer.v1 import exchange_pb2 as pb
from gonka_trainer.errors import ConfigError, StorageError
from gonka_trainer.exchange.identity import Identity, introducer_certificate, spki_of_pem
from gonka_trainer.exchange.limits import (
    CHUNKS_PER_REQUEST,
    DEFAULT_LIMITS,
    DOCUMENT_BYTES,
    PIECE_BYTES,
    Limits,
    server_options,
)
from gonka_trainer.ports import Gate, ObjectSource, StoredObject
from gonka_trainer.types import DIGEST_BYTES, Address, Digest

SERVICE: Final = "gonka_trainer.v1.Exchange"

Context = grpc.aio.ServicerContext[bytes, bytes]
Request = TypeVar("Request", bound=Message)
Result = TypeVar("Result")

_LOG: Final = logging.getLogger(__name__)


class ReadableSource(ObjectSource, Protocol):
    """What the server reads from: `storage.objects.ObjectStore`. Methods block and are called from threads."""

    def held(self, kind: str, key: bytes, round_number: int) -> StoredObject | None:
        """Return a blob or state of which at least the index is here."""

    def read(self, stored: StoredObject, chunk: int) -> bytes | None:
        """Return a chunk's checked bytes, or None when they are not here."""


class PeerServer:
    """Serves while entered. `bind` is HOST:PORT, port 0 lets the system choose; `port` is the one that is bound."""

    def __init__(
        self,
        identity: Identity,
        gate: Gate,
        source: ReadableSource,
        bind: str = "0.0.0.0:0",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._identity = identity
        self._gate = gate
        self._source = source
        self._bind = bind
        self._limits = limits
        self._streams: Counter[Address] = Counter()
        self._stack = AsyncExitStack()
        self.port = 0

    async def __aenter__(self) -> Self:
        """Bind and start; ConfigError when the address cannot be bound."""
        server = grpc.aio.server(options=server_options(self._limits), compression=grpc.Compression.NoCompression)
        server.add_generic_rpc_handlers((self._handlers(),))
        self.port = self._listen(server)
        await server.start()
        self._stack.push_async_callback(server.stop, self._limits.grace_seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the streams after a short grace and stop listening."""
        await self._stack.aclose()

    def take(self, identity: Identity) -> None:
        """Show this identity from the next handshake on; connections that are open stay."""
        self._identity = identity

    @property
    def streams(self) -> int:
        """How many streams are open now."""
        return self._streams.total()

    def _listen(self, server: grpc.aio.Server) -> int:
        credentials = grpc.dynamic_ssl_server_credentials(
            self._certificates(), self._certificates, require_client_authentication=True
        )
        try:
            port = server.add_secure_port(self._bind, credentials)
        except RuntimeError as error:
            raise _not_bound(self._bind) from error
        if not port:
            raise _not_bound(self._bind)
        return port

    def _certificates(self) -> grpc.ServerCertificateConfiguration:
        pair = (self._identity.key, self._identity.certificate)
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=introducer_certificate())

    def _handlers(self) -> grpc.GenericRpcHandler[bytes, bytes]:
        stream, unary = grpc.unary_stream_rpc_method_handler, grpc.unary_unary_rpc_method_handler
        methods = {
            "GetIndex": stream(self._counted(self._get_index)),
            "GetChunks": stream(self._counted(self._get_chunks)),
            "GetDocument": unary(self._get_document),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _counted(
        self, serve: Callable[[Address, bytes, Context], Awaitable[None]]
    ) -> Callable[[bytes, Context], Awaitable[None]]:
        async def handler(raw: bytes, context: Context) -> None:
            caller = await self._caller(context)
            async with self._stream_of(caller, context):
                await serve(caller, raw, context)

        return handler

    @asynccontextmanager
    async def _stream_of(self, caller: Address, context: Context) -> AsyncIterator[None]:
        if self._streams[caller] >= self._limits.streams_per_peer:
            await _abort(context, grpc.StatusCode.ABORTED, f"at most {self._limits.streams_per_peer} streams at once")
        self._streams[caller] += 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]

    async def _get_index(self, caller: Address, raw: bytes, context: Context) -> None:
        request = await _parse(pb.IndexRequest, raw, context)
        stored = await self._find(caller, request.object, context)
        sizes = {"preamble_bytes": len(stored.preamble), "leaf_list_bytes": len(stored.leaf_list)}
        for piece in _pieces(stored.preamble + stored.leaf_list):
            await self._send(pb.IndexPiece(data=piece, **sizes), context)
            sizes = {}

    async def _get_chunks(self, caller: Address, raw: bytes, context: Context) -> None:
        request = await _parse(pb.ChunksRequest, raw, context)
        if not 0 < len(request.chunks) <= CHUNKS_PER_REQUEST:
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"1 to {CHUNKS_PER_REQUEST} chunks a request")
        stored = await self._find(caller, request.object, context)
        for chunk in request.chunks:
            data = await self._blocking(context, partial(self._source.read, stored, chunk))
            if data is None:
                await _abort(context, grpc.StatusCode.NOT_FOUND, f"chunk {chunk} is not here")
            for piece in _pieces(data):
                await self._send(pb.ChunkPiece(chunk=chunk, chunk_bytes=len(data), data=piece), context)

    async def _get_document(self, raw: bytes, context: Context) -> bytes:
        caller = await self._caller(context)
        request = await _parse(pb.DocumentRequest, raw, context)
        if not self._gate.may_have_state(caller):
            await _abort(context, grpc.StatusCode.PERMISSION_DENIED, "documents are for those who joined")
        digest = await _digest(request.digest, context)
        data = await self._blocking(context, partial(self._source.document, digest))
        if data is None or len(data) > DOCUMENT_BYTES:
            await _abort(context, grpc.StatusCode.NOT_FOUND, "the document is not here")
        return pb.Document(data=data).SerializeToString()

    async def _caller(self, context: Context) -> Address:
        """Return who calls, by the key that the handshake proved; a stranger's call ends here, unparsed."""
        shown = list(context.auth_context().get("x509_pem_cert", ()))
        spki = spki_of_pem(shown[0]) if shown else None
        caller = None if spki is None else self._gate.caller(spki)
        if caller is None:
            await _abort(context, grpc.StatusCode.PERMISSION_DENIED, "this key is in no join of the run")
        return caller

    async def _find(self, caller: Address, name: pb.ObjectName, context: Context) -> StoredObject:
        key = await _digest(name.key, context)
        kind = await self._admit(caller, name.kind, name.round, key, context)
        stored = await self._blocking(context, partial(self._source.held, kind, key, name.round))
        if stored is None:
            await _abort(context, grpc.StatusCode.NOT_FOUND, f"the {kind} is not here")
        return stored

    async def _admit(self, caller: Address, kind: int, round_number: int, key: Digest, context: Context) -> str:
        if kind == pb.KIND_STATE:
            if not self._gate.may_have_state(caller):
                await _abort(context, grpc.StatusCode.PERMISSION_DENIED, "states are for those who joined")
            return "state"
        if kind != pb.KIND_BLOB:
            await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, "unknown kind of object")
        if not self._gate.may_have_blob(caller, round_number, key):
            text = "not served to this caller, or not yet: the commit window may be open here"
            await _abort(context, grpc.StatusCode.FAILED_PRECONDITION, text)
        return "blob"

    async def _blocking(self, context: Context, read: Callable[[], Result]) -> Result:
        try:
            return await asyncio.to_thread(read)
        except StorageError as error:
            # The operator's matter, not the caller's: the path stays here, and the others are served on.
            _LOG.error("cannot serve: %s", error)
            await _abort(context, grpc.StatusCode.INTERNAL, "this host cannot read its disk")

    async def _send(self, message: Message, context: Context) -> None:
        try:
            async with asyncio.timeout(self._limits.transfer_seconds):
                await context.write(message.SerializeToString())
        except TimeoutError:
            await _abort(context, grpc.StatusCode.DEADLINE_EXCEEDED, "the caller reads too slowly")


async def _parse(kind: type[Request], raw: bytes, context: Context) -> Request:
    message = kind()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"not a {kind.__name__}")
    return message


async def _digest(value: bytes, context: Context) -> Digest:
    if len(value) != DIGEST_BYTES:
        await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"a digest has {DIGEST_BYTES} bytes")
    return Digest(value)


async def _abort(context: Context, code: grpc.StatusCode, detail: str) -> NoReturn:
    await context.abort(code, detail)
    raise AssertionError("abort returned")


def _pieces(data: bytes) -> list[bytes]:
    return [data[start : start + PIECE_BYTES] for start in range(0, max(len(data), 1), PIECE_BYTES)]


def _not_bound(bind: str) -> ConfigError:
    return ConfigError(f"exchange: {bind} cannot be bound", "choose a free address and port for the peer server")
