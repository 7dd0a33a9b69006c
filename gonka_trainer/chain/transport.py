"""The two ways to a node: gRPC by method path, and CometBFT's RPC over HTTP. Failures become errors with a remedy."""

from __future__ import annotations

import json
import re
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

import aiohttp
import grpc
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message as WireMessage

from gonka_trainer.errors import ChainError, ChainUnavailableError, ConfigError
from gonka_trainer.text import printable

Answer = TypeVar("Answer", bound=WireMessage)

HEIGHT_METADATA: Final = "x-cosmos-block-height"
_MAX_ANSWER_BYTES: Final = 256 << 20
_MAX_SMALL_BYTES: Final = 8 << 20  # of what is neither a block nor its results
_LARGE: Final = frozenset({"block", "block_results"})
_NOT_READY: Final = "code 26"  # during a start, and for a height that is not there yet
_TOO_LARGE: Final = "larger than max"  # our own limit: asking again gives the same, and the node is not away
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
_NO_METHOD: Final = -32601
_HTTP_NOT_FOUND: Final = 404
_PRUNED: Final = re.compile(r"height (\d+) is not available, lowest height is (\d+)")
KEEPS_IT: Final = (
    "name a node in chain that keeps it (min-retain-blocks = 0, pruning = nothing), "
    "or enter the run from a checkpoint (runs.checkpoints)"
)
KNOWN_CHAINS: Final = "this version of gonka-trainer knows Gonka 0.2.0 - 0.2.16, CometBFT 0.38 and Cosmos SDK 0.53"


class NotYetError(ChainUnavailableError):
    """What was asked for is not there yet: a height of the future, or a node that starts."""


class GoneError(ChainError):
    """The node no longer has what was asked for: it was pruned."""


class NotServedError(ChainError):
    """The node does not have what was asked for among its methods."""


class UnknownAnswerError(ChainError):
    """The node answers in a form that is not known here: a chain of a later version, or another server."""

    def __init__(self, where: str, asked: str, why: object) -> None:
        super().__init__(
            f"chain node {where} answers {asked} in a form that is not known: {printable(str(why))}",
            f"{KNOWN_CHAINS}: look for a later one, or name another node in chain",
        )


class Calls(Protocol):
    """Whatever calls a gRPC method by its path: one node, or the first of several that answers."""

    async def call(self, path: str, request: WireMessage, answer: type[Answer], height: int | None = None) -> Answer:
        """As `GrpcNode.call`."""


class NodeAnswerError(ChainError):
    """The node answered a call with an error of its own; `status` and `details` are what it said."""

    def __init__(self, what: str, status: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{what}: {status.name} {printable(details)}")
        self.status = status
        self.details = details


def _from_grpc(target: str, path: str, error: grpc.aio.AioRpcError) -> ChainError:
    details = error.details() or ""
    if error.code() in _RETRYABLE and _TOO_LARGE not in details:
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
        NodeAnswerError for every other error of the node, UnknownAnswerError when the answer does not decode.
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
            raise UnknownAnswerError(self.target, path, "it does not decode") from error


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
            status, body = await self._fetch(path)
            document = json.loads(body)
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = printable(str(error) or type(error).__name__)
            raise ChainUnavailableError(f"chain node {self.url} does not answer: {reason}", _CHECK_NODE) from error
        except (ValueError, RecursionError) as error:  # a page: of a proxy, or for a method that is not there
            if status == _HTTP_NOT_FOUND:
                raise NotServedError(f"chain node {self.url} has no {path.partition('?')[0]}", _CHECK_NODE) from error
            raise ChainUnavailableError(f"{self.url} does not answer as a CometBFT RPC does", _CHECK_NODE) from error
        if isinstance(document, dict) and isinstance(document.get("result"), dict):
            result: dict[str, Any] = document["result"]
            return result
        raise self._refusal(path, document)

    async def _fetch(self, path: str) -> tuple[int, bytes]:
        assert self._session is not None, "used outside `async with`"
        limit = _MAX_ANSWER_BYTES if path.partition("?")[0] in _LARGE else _MAX_SMALL_BYTES
        # A redirection is not followed: it could lead to addresses that only this machine reaches.
        async with self._session.get(f"{self.url}/{path}", allow_redirects=False) as response:
            chunks, size = [], 0
            async for chunk in response.content.iter_chunked(1 << 20):
                size += len(chunk)
                if size > limit:
                    raise ChainError(f"answer of {self.url} to {path} has more than {limit} bytes", _CHECK_NODE)
                chunks.append(chunk)
            return response.status, b"".join(chunks)

    def _refusal(self, path: str, document: object) -> ChainError:
        error = document.get("error") if isinstance(document, dict) else None
        said = error if isinstance(error, dict) else {}
        details = printable(f"{said.get('message', '')} {said.get('data', '')}".strip() or "no result")
        if "must be less than or equal to" in details or "could not find results" in details:
            return NotYetError(f"chain node {self.url} is not that far yet: {details}")
        pruned = _PRUNED.search(details)
        if pruned is not None:
            return GoneError(
                f"chain node {self.url} no longer has block {pruned[1]}: the lowest that it has is {pruned[2]}",
                KEEPS_IT,
            )
        if said.get("code") == _NO_METHOD:
            return NotServedError(f"chain node {self.url} has no {path.partition('?')[0]}", _CHECK_NODE)
        if "not persisting" in details:
            return ChainError(
                f"chain node {self.url} keeps no results: {details}",
                "set storage.discard_abci_responses = false in its config.toml",
            )
        return ChainUnavailableError(f"chain node {self.url} refuses {path}: {details}", _CHECK_NODE)
