"""One chain node: what it says of itself, blocks, headers, commits and validators, and state at a height."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import grpc
from google.protobuf.message import Message as WireMessage

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.chain import blocks, epochs, light
from gonka_trainer.chain.headers import Header, parse_header, time_ns
from gonka_trainer.chain.transport import (
    KEEPS_IT,
    Answer,
    GoneError,
    GrpcNode,
    NodeAnswerError,
    NotYetError,
    RpcNode,
    UnknownAnswerError,
)
from gonka_trainer.errors import ChainError, ChainUnavailableError, DecodeError
from gonka_trainer.ports import Block
from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.text import printable
from gonka_trainer.types import Height

_INFERENCE: Final = "/inference.inference.Query/"
_VALIDATORS_PAGE: Final = 100
_MAX_VALIDATORS: Final = 10_000
_MAX_HEIGHT: Final = (1 << 62) - 1
_LATEST: Final = re.compile(r"latest height: (\d+)")
_NOT_SOUND: Final = "use another node; this one is not sound"


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Where a node listens, and whether what it says is checked (`verify`: it is not one's own).

    `grpc`: host:port, or https://host:port; `rpc`: http(s)://host:port of CometBFT's RPC.
    """

    grpc: str
    rpc: str
    verify: bool = False


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What a node's RPC says of itself; `tx_index` is None when it does not say."""

    chain_id: str
    height: Height
    earliest_height: Height
    time_ns: int
    syncing: bool
    comet_version: str
    tx_index: bool | None


class ChainNode:
    """One node, to be entered. Errors as in `transport`; ChainError for answers that contradict themselves."""

    def __init__(self, address: NodeAddress, timeout_seconds: float) -> None:
        self.name = printable(address.rpc.rstrip("/"))
        self.verify = address.verify
        self.grpc = GrpcNode(address.grpc, timeout_seconds)
        self.rpc = RpcNode(address.rpc, timeout_seconds)
        self._has_epochs = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> ChainNode:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.grpc)
            await stack.enter_async_context(self.rpc)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def call(self, path: str, request: WireMessage, answer: type[Answer], height: int | None = None) -> Answer:
        """Call a gRPC method, as `GrpcNode.call`."""
        return await self.grpc.call(path, request, answer, height)

    async def status(self) -> NodeStatus:
        """Ask the node about itself."""
        status = await self.rpc.call("status")
        try:
            sync, said = status["sync_info"], status["node_info"]
            index = (said.get("other") or {}).get("tx_index")
            return NodeStatus(
                chain_id=printable(str(said["network"])),
                height=_height(sync["latest_block_height"]),
                earliest_height=_height(sync["earliest_block_height"]),
                time_ns=time_ns(sync["latest_block_time"]),
                syncing=bool(sync["catching_up"]),
                comet_version=printable(str(said.get("version", ""))),
                tx_index={"on": True, "off": False}.get(str(index)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise UnknownAnswerError(self.name, "status", f"{type(error).__name__} {error}") from error

    async def grpc_chain_id(self) -> str:
        """Return the chain id that the node says over gRPC; ChainUnavailableError when it does not answer there."""
        path = "/cosmos.base.tendermint.v1beta1.Service/GetNodeInfo"
        answer = await self.call(path, node_pb2.GetNodeInfoRequest(), node_pb2.GetNodeInfoResponse)
        return printable(answer.default_node_info.network)

    # -- blocks -----------------------------------------------------------------------------------------------------

    async def block(self, height: Height) -> tuple[Header, Block]:
        """Return the block with its results by position, unchecked but for their form."""
        raw = await self.rpc.call(f"block?height={height}")
        results = await self._results(height)
        try:
            header, block = blocks.parse_block(raw, results)
        except DecodeError as error:
            raise self.unsound(error) from error
        self._same_height(height, header)
        return header, block

    async def _results(self, height: Height) -> dict[str, Any]:
        """Return the results of a block that is there: of the newest they come a moment later, of an old one never."""
        try:
            return await self.rpc.call(f"block_results?height={height}")
        except NotYetError as error:
            if (await self.status()).height <= height + 1:
                raise
            raise GoneError(f"chain node {self.name} no longer has the results of block {height}", KEEPS_IT) from error

    async def header(self, height: Height) -> Header:
        """Return a block's header."""
        raw = await self.rpc.call(f"header?height={height}")
        try:
            header = parse_header(raw.get("header"))
        except DecodeError as error:
            raise self.unsound(error) from error
        self._same_height(height, header)
        return header

    async def signed_header(self, height: Height) -> light.SignedHeader:
        """Return a block's header with the commit over it."""
        raw = await self.rpc.call(f"commit?height={height}")
        try:
            said = raw.get("signed_header") or {}
            header, commit = parse_header(said.get("header")), light.parse_commit(said.get("commit"))
        except (DecodeError, AttributeError) as error:
            raise self.unsound(error) from error
        self._same_height(height, header)
        return light.SignedHeader(header, commit)

    async def validators(self, height: Height) -> light.ValidatorSet:
        """Return the validators who vote on the block of the height."""
        rows: list[Any] = []
        page, total = 1, 1
        while len(rows) < total:
            raw = await self.rpc.call(f"validators?height={height}&page={page}&per_page={_VALIDATORS_PAGE}")
            try:
                found, total = list(raw["validators"]), int(raw["total"])
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise UnknownAnswerError(self.name, "validators", f"{type(error).__name__} {error}") from error
            rows, page = rows + found, page + 1
            if not found or total > _MAX_VALIDATORS:
                raise UnknownAnswerError(self.name, "validators", f"{len(rows)} of {total}")
        try:
            return light.parse_validators(rows)
        except DecodeError as error:
            raise self.unsound(error) from error

    def _same_height(self, height: Height, header: Header) -> None:
        if header.height != height:
            raise self.unsound(f"asked for block {height}, got {header.height}")

    def unsound(self, why: object) -> ChainError:
        """Return the error for an answer of this node that cannot be true."""
        return ChainError(f"chain node {self.name}: {printable(str(why))}", _NOT_SOUND)

    # -- state ------------------------------------------------------------------------------------------------------

    async def environment(self, height: Height, prefix: str) -> Environment:
        """Return epoch schedule and weights at the end of the block; a chain without epochs has neither."""
        try:
            path, request = _INFERENCE + "EpochInfo", inference_pb2.QueryEpochInfoRequest()
            info = await self.call(path, request, inference_pb2.QueryEpochInfoResponse, height)
        except NodeAnswerError as error:
            if error.status is not grpc.StatusCode.UNIMPLEMENTED or self._has_epochs:
                raise await self._state_error(height, error) from error
            return Environment(NO_EPOCHS, ())
        if info.block_height != height:
            raise ChainUnavailableError(f"chain node {self.name} answers for {info.block_height}, not {height}")
        self._has_epochs = True
        return Environment(epochs.schedule(info), epochs.weights(await self._members(height), prefix))

    async def _members(self, height: Height) -> Sequence[inference_pb2.ValidationWeight]:
        path, request = _INFERENCE + "CurrentEpochGroupData", inference_pb2.QueryCurrentEpochGroupDataRequest()
        try:
            answer = await self.call(path, request, inference_pb2.QueryCurrentEpochGroupDataResponse, height)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.NOT_FOUND:  # before the first epoch's group
                return ()
            raise await self._state_error(height, error) from error
        return answer.epoch_group_data.validation_weights

    async def _state_error(self, height: Height, error: NodeAnswerError) -> ChainError:
        if "pruned" not in error.details:
            return error
        latest = _LATEST.search(error.details)
        if latest is not None and int(latest[1]) < height:
            return NotYetError(f"chain node {self.name} is not that far yet: {printable(error.details)}")
        lowest = await self._earliest_state()
        said = f"the lowest that it has is {lowest}" if lowest else "it does not say which is the lowest that it has"
        return GoneError(f"chain node {self.name} no longer has the state of block {height}: {said}", KEEPS_IT)

    async def _earliest_state(self) -> int:
        """Return the lowest height whose state the node has; 0 when it does not say."""
        path = "/cosmos.base.node.v1beta1.Service/Status"
        try:
            answer = await self.call(path, node_pb2.StatusRequest(), node_pb2.StatusResponse)
        except NodeAnswerError:
            return 0
        return answer.earliest_store_height


def _height(number: Any) -> Height:
    """Read a height; ValueError or OverflowError for what no chain has: it would be acted on and sent."""
    if not 0 <= int(number) <= _MAX_HEIGHT:
        raise ValueError("no height of a block")
    return Height(int(number))
