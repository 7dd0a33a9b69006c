"""The two ways to a node: gRPC by method path, and CometBFT's RPC over HTTP. Failures become errors with a remedy."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Final, TypeVar

import aiohttp
import grpc
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message as WireMessage

from gonka_trainer.errors import ChainError, ChainUnavailableError, ConfigError

Answer = TypeVar("Answer", bound=WireMessage)

HEIGHT_METADATA: Final = "x-cosmos-block-height"
_MAX_ANSWER_BYTES: Final = 256 << 20
_NOT_READY: Final = "code 26"  # during a start, and for a height that is not there yet
_RETRYABLE: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
_CHECK_NODE: Final = "check that the node runs, and that chain.grpc and chain.rpc name it"


class NotYetError(ChainUnavailableError):
    """What was asked for is not there yet: a height of the future, or a node that starts."""


class GoneError(ChainError):
    """The node no longer has what was asked for: it was pruned."""


class NodeAnswerError(ChainError):
    """The node answered a call with an error of its own; `status` and `details` are what it said."""

    def __init__(self, what: str, status: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{what}: {status.name} {printable(details)}")
        self.status = status
        self.details = details


def printable(text: str | bytes, limit: int = 400) -> str:
    """Return foreign text for logs and messages: one line, no control characters, cut at the limit."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    shown = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return shown if len(shown) <= limit else shown[:limit] + "..."


def _from_grpc(target: str, path: str, error: grpc.aio.AioRpcError) -> ChainError:
    details = error.details() or ""
    if error.code() in _RETRYABLE:
        return ChainUnavailableError(f"chain node {target} does not answer: {printable(details)}", _CHECK_NODE)
    if error.code() is grpc.StatusCode.UNKNOWN and _NOT_READY in details:
        return NotYetError(f"chain node {target} is not that far yet: {printable(details)}")
    return NodeAnswerError(f"chain node {target} refuses {path}", error.code(), details)


class GrpcNode:
    """A gRPC channel to a node; `target` is host:port, or https://host:port for TLS."""

    def __init__(self, target: str, timeout_seconds: float) -> None:
        self.target = target
        self._timeout_seconds = timeout_seconds
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> GrpcNode:
        options = [("grpc.max_receive_message_length", _MAX_ANSWER_BYTES)]
        scheme, _, host = self.target.rpartition("://")
        if scheme == "https":
            self._channel = grpc.aio.secure_channel(host, grpc.ssl_channel_credentials(), options)
        elif scheme in {"", "http"}:
            self._channel = grpc.aio.insecure_channel(host, options)
        else:
            raise ConfigError(f"chain.grpc has scheme {scheme}", "write host:port, or https://host:port")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close(None)

    async def call(self, path: str, request: WireMessage, answer: type[Answer], height: int | None = None) -> Answer:
        """Call the method; `height` asks for the state at the end of that block.

        Raises ChainUnavailableError when the node does not answer, NotYetError when it is not that far,
        NodeAnswerError for every other error of the node, ChainError when the answer does not decode.
        """
        assert self._channel is not None, "used outside `async with`"
        method = self._channel.unary_unary(path, None, None)  # bytes in, bytes out
        metadata = ((HEIGHT_METADATA, str(height)),) if height is not None else ()
        try:
            raw: Any = await method(request.SerializeToString(), metadata=metadata, timeout=self._timeout_seconds)
            return answer.FromString(raw)
        except grpc.aio.AioRpcError as error:
            raise _from_grpc(self.target, path, error) from error
        except WireError as error:
            raise ChainError(f"answer of chain node {self.target} to {path} does not decode", _CHECK_NODE) from error


class RpcNode:
    """CometBFT's RPC over HTTP; `url` is http(s)://host:port."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> RpcNode:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"chain.rpc is {self.url}", "write http://host:port of the node's CometBFT RPC")
        self._session = aiohttp.ClientSession(timeout=self._timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, path: str) -> dict[str, Any]:
        """Return the result of a GET; errors as in `GrpcNode.call`."""
        try:
            document = json.loads(await self._fetch(path))
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = printable(str(error) or type(error).__name__)
            raise ChainUnavailableError(f"chain node {self.url} does not answer: {reason}", _CHECK_NODE) from error
        except ValueError as error:
            raise ChainUnavailableError(f"{self.url} does not answer as a CometBFT RPC does", _CHECK_NODE) from error
        if isinstance(document, dict) and isinstance(document.get("result"), dict):
            result: dict[str, Any] = document["result"]
            return result
        raise self._refusal(path, document)

    async def _fetch(self, path: str) -> bytes:
        assert self._session is not None, "used outside `async with`"
        async with self._session.get(f"{self.url}/{path}") as response:
            chunks, size = [], 0
            async for chunk in response.content.iter_chunked(1 << 20):
                size += len(chunk)
                if size > _MAX_ANSWER_BYTES:
                    raise ChainError(f"answer of {self.url} to {path} has more than {_MAX_ANSWER_BYTES} bytes")
                chunks.append(chunk)
            return b"".join(chunks)

    def _refusal(self, path: str, document: object) -> ChainError:
        error = document.get("error") if isinstance(document, dict) else None
        said = error if isinstance(error, dict) else {}
        details = printable(f"{said.get('message', '')} {said.get('data', '')}".strip() or "no result")
        if "must be less than or equal to" in details or "could not find results" in details:
            return NotYetError(f"chain node {self.url} is not that far yet: {details}")
        if "lowest height is" in details:
            return GoneError(
                f"chain node {self.url} no longer has the block: {details}",
                "use a node that keeps its blocks (min-retain-blocks = 0)",
            )
        if "not persisting" in details:
            return ChainError(
                f"chain node {self.url} keeps no results: {details}",
                "set storage.discard_abci_responses = false in its config.toml",
            )
        return ChainUnavailableError(f"chain node {self.url} refuses {path}: {details}", _CHECK_NODE)
