"""Fetching from peers: implements `ports.Peers`. What a peer does wrong comes back as a Verdict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from gonka_trainer._pb.gonka_trainer.v1 import exchange_pb2 as pb
from gonka_trainer.exchange.channels import Channels, Link
from gonka_trainer.exchange.identity import Identity
from gonka_trainer.exchange.limits import (
    CHUNK_BYTES,
    CHUNKS_PER_REQUEST,
    DEFAULT_LIMITS,
    DOCUMENT_BYTES,
    PIECE_BYTES,
    PREAMBLE_BYTES,
    Limits,
)
from gonka_trainer.ports import Endpoint
from gonka_trainer.types import Digest, Fault, Verdict

SERVICE: Final = "/gonka_trainer.v1.Exchange/"

_KINDS: Final = {"blob": pb.KIND_BLOB, "state": pb.KIND_STATE}

Answer = TypeVar("Answer", bound=Message)
Stream = grpc.aio.UnaryStreamCall[bytes, bytes]


class PeerFaultError(Exception):
    """A peer's fault on its way to becoming a Verdict; never leaves this package."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(detail)
        self.verdict = Verdict(fault, detail)


class PeerClient:
    """Asks peers for indexes, chunks and documents; keeps one pinned connection to each while entered."""

    def __init__(self, identity: Identity, limits: Limits = DEFAULT_LIMITS) -> None:
        self._channels = Channels(identity, limits)
        self._limits = limits

    async def __aenter__(self) -> Self:
        """Connections are made on demand."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._channels.close()

    async def take(self, identity: Identity) -> None:
        """Call as this identity from the next call on."""
        await self._channels.take(identity)

    async def fetch_index(
        self, endpoint: Endpoint, kind: str, key: bytes, round_number: int
    ) -> tuple[bytes, bytes] | Verdict:
        """Return (preamble, leaf list), unchecked but within the size limits, or what went wrong."""
        request = pb.IndexRequest(object=_name(kind, key, round_number))
        try:
            async with self._stream(endpoint, "GetIndex", request) as stream:
                return await self._read_index(stream)
        except PeerFaultError as error:
            return error.verdict

    async def fetch_chunks(
        self, endpoint: Endpoint, kind: str, key: bytes, round_number: int, chunks: Sequence[int]
    ) -> AsyncIterator[tuple[int, bytes] | Verdict]:
        """Stream the chunks in the order asked, unchecked but of bounded size; a Verdict ends the stream.

        ValueError for more than 1,024 chunks. Close it (`contextlib.aclosing`) when leaving early.
        """
        if not 0 < len(chunks) <= CHUNKS_PER_REQUEST:
            raise ValueError(f"{len(chunks)} chunks in one request, 1 to {CHUNKS_PER_REQUEST} allowed")
        request = pb.ChunksRequest(object=_name(kind, key, round_number), chunks=chunks)
        try:
            async with self._stream(endpoint, "GetChunks", request) as stream:
                for chunk in chunks:
                    yield chunk, await self._read_chunk(stream, chunk)
        except PeerFaultError as error:
            yield error.verdict

    async def fetch_document(self, endpoint: Endpoint, digest: Digest) -> bytes | Verdict:
        """Return a document of at most 1 MiB, unchecked (the digest's tag is the caller's to know)."""
        request = pb.DocumentRequest(digest=digest).SerializeToString()
        try:
            async with self._link(endpoint) as link:
                call = link.channel.unary_unary(SERVICE + "GetDocument", None, None)
                raw = await call(request, timeout=self._limits.answer_seconds + self._limits.transfer_seconds)
            document = _parse(pb.Document, raw)
        except PeerFaultError as error:
            return error.verdict
        if len(document.data) > DOCUMENT_BYTES:
            return Verdict(Fault.PROTOCOL, f"a document of {len(document.data)} bytes")
        return document.data

    @asynccontextmanager
    async def _link(self, endpoint: Endpoint) -> AsyncIterator[Link]:
        async with self._channels.use(endpoint) as link:
            if isinstance(link, Verdict):
                raise PeerFaultError(link.fault or Fault.UNREACHABLE, link.detail)
            try:
                yield link
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    self._channels.drop(endpoint, link)
                raise _fault_of(error) from error

    @asynccontextmanager
    async def _stream(self, endpoint: Endpoint, method: str, request: Message) -> AsyncIterator[Stream]:
        async with self._link(endpoint) as link:
            method_call = link.channel.unary_stream(SERVICE + method, None, None)
            call: Stream = method_call(request.SerializeToString())
            try:
                yield call
            finally:
                call.cancel()

    async def _read_index(self, stream: Stream) -> tuple[bytes, bytes]:
        first = await self._read(stream, pb.IndexPiece, self._limits.answer_seconds)
        preamble_bytes, leaf_list_bytes = first.preamble_bytes, first.leaf_list_bytes
        if preamble_bytes > PREAMBLE_BYTES or leaf_list_bytes > self._limits.leaf_list_bytes:
            raise PeerFaultError(Fault.PROTOCOL, f"announces an index of {preamble_bytes} + {leaf_list_bytes} bytes")
        data = bytearray()
        piece = first
        while not _take(data, piece.data, preamble_bytes + leaf_list_bytes):
            piece = await self._read(stream, pb.IndexPiece, self._limits.transfer_seconds)
        return bytes(data[:preamble_bytes]), bytes(data[preamble_bytes:])

    async def _read_chunk(self, stream: Stream, chunk: int) -> bytes:
        data = bytearray()
        try:
            async with asyncio.timeout(self._limits.answer_seconds + self._limits.transfer_seconds):
                while True:
                    piece = await self._read(stream, pb.ChunkPiece, None)
                    if piece.chunk != chunk or piece.chunk_bytes > CHUNK_BYTES:
                        detail = f"chunk {piece.chunk} of {piece.chunk_bytes} bytes, chunk {chunk} was next"
                        raise PeerFaultError(Fault.PROTOCOL, detail)
                    if _take(data, piece.data, piece.chunk_bytes):
                        return bytes(data)
        except TimeoutError as error:
            raise PeerFaultError(Fault.UNREACHABLE, f"chunk {chunk} came below the minimum rate") from error

    async def _read(self, stream: Stream, kind: type[Answer], seconds: float | None) -> Answer:
        try:
            async with asyncio.timeout(seconds):
                raw = await stream.read()
        except TimeoutError as error:
            raise PeerFaultError(Fault.UNREACHABLE, "no answer in time") from error
        if not isinstance(raw, bytes):
            raise PeerFaultError(Fault.PROTOCOL, "the stream ends early")
        return _parse(kind, raw)


def _name(kind: str, key: bytes, round_number: int) -> pb.ObjectName:
    return pb.ObjectName(kind=_KINDS[kind], key=key, round=round_number)


def _parse(kind: type[Answer], raw: bytes) -> Answer:
    message = kind()
    try:
        message.ParseFromString(raw)
    except DecodeError as error:
        raise PeerFaultError(Fault.PROTOCOL, f"not a {kind.__name__}") from error
    return message


def _take(data: bytearray, piece: bytes, whole_bytes: int) -> bool:
    """Add a piece and return whether that was the last; only the last may be short, so that pieces are bounded."""
    expected = min(PIECE_BYTES, whole_bytes - len(data))
    if len(piece) != expected:
        raise PeerFaultError(Fault.PROTOCOL, f"a piece of {len(piece)} bytes, {expected} expected")
    data += piece
    return len(data) == whole_bytes


def _fault_of(error: grpc.aio.AioRpcError) -> PeerFaultError:
    """Answers beyond the size limit are the peer's fault; anything else may be different at another time."""
    fault = Fault.PROTOCOL if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED else Fault.UNREACHABLE
    return PeerFaultError(fault, f"{error.code().name}: {(error.details() or '')[:200]}")
