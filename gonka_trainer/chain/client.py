"""Reading a chain node: itself, whole blocks by position, the environment at a height, accounts, tasks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import grpc

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.chain import blocks, epochs
from gonka_trainer.chain.service import TxService
from gonka_trainer.chain.transport import GoneError, GrpcNode, NodeAnswerError, RpcNode, printable
from gonka_trainer.errors import ChainError, ChainUnavailableError, DecodeError
from gonka_trainer.ports import Block, NodeInfo, ProofOfCompute
from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.types import Digest, Height

_INFERENCE: Final = "/inference.inference.Query/"
_KEPT_BLOCKS: Final = 8
_KEPT_HASHES: Final = 256


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Where a node listens. `grpc`: host:port, or https://host:port; `rpc`: http(s)://host:port of CometBFT's RPC."""

    grpc: str
    rpc: str


class ChainClient:
    """A node of one chain; implements `ports.Chain`. Use as `async with`.

    `chain_id` (None: whatever the node says first) is the only chain that it accepts. With `verify` transactions are
    checked against data_hash, headers against block hashes, and results once the next block is read: for a node that
    is not one's own. Blocks must form one history, whether verified or not.
    """

    def __init__(
        self,
        node: NodeAddress,
        *,
        chain_id: str | None = None,
        prefix: str = "gonka",
        verify: bool = False,
        timeout_seconds: float = 10.0,
    ) -> None:
        self.prefix = prefix
        self._chain_id = chain_id
        self._verify = verify
        self._grpc = GrpcNode(node.grpc, timeout_seconds)
        self._rpc = RpcNode(node.rpc, timeout_seconds)
        self.tx = TxService(self._grpc, prefix)
        self._stack = AsyncExitStack()
        self._highest = 0
        self._training_module: bool | None = None
        self._has_epochs = False
        self._version: str | None = None
        self._blocks: OrderedDict[int, Block] = OrderedDict()
        self._hashes: OrderedDict[int, Digest] = OrderedDict()

    async def __aenter__(self) -> ChainClient:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._grpc)
            await stack.enter_async_context(self._rpc)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    # -- the node ---------------------------------------------------------------------------------------------------

    async def info(self) -> NodeInfo:
        """Ask the node about itself.

        Raises ChainError when gRPC or RPC are of another chain than before or than was configured, and
        ChainUnavailableError when the node is behind the height that it had (restored from a backup, or one of several
        behind a balancer): nothing is to be done until it has caught up.
        """
        status = await self._rpc.call("status")
        try:
            sync = status["sync_info"]
            info = NodeInfo(
                chain_id=str(status["node_info"]["network"]),
                height=Height(int(sync["latest_block_height"])),
                earliest_height=Height(int(sync["earliest_block_height"])),
                time_ns=blocks.time_ns(sync["latest_block_time"]),
                syncing=bool(sync["catching_up"]),
                version=await self._node_version(),
                training_module=await self.has_training_module(),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ChainUnavailableError(f"{self._rpc.url} gives no status as CometBFT 0.38 does: {error}") from error
        self._same_chain(info.chain_id, self._rpc.url)
        if info.height < self._highest:
            raise ChainUnavailableError(
                f"chain node {self._rpc.url} is at height {info.height} and was at {self._highest}",
                "wait until it has caught up; if it was reset, it is another chain: start afresh",
            )
        self._highest = info.height
        return info

    async def chain_id(self) -> str:
        """Return the chain's id, asking the node when none was configured."""
        if self._chain_id is None:
            await self.info()
        assert self._chain_id is not None
        return self._chain_id

    async def _node_version(self) -> str:
        if self._version is None:
            path = "/cosmos.base.tendermint.v1beta1.Service/GetNodeInfo"
            answer = await self._grpc.call(path, node_pb2.GetNodeInfoRequest(), node_pb2.GetNodeInfoResponse)
            self._same_chain(printable(answer.default_node_info.network), self._grpc.target)
            said = answer.application_version
            self._version = printable(said.version) or f"Cosmos SDK {printable(said.cosmos_sdk_version)}"
        return self._version

    def _same_chain(self, found: str, where: str) -> None:
        if self._chain_id is None:
            self._chain_id = found
        if found != self._chain_id:
            raise ChainError(
                f"chain node {where} is of chain {found}, not {self._chain_id}",
                "name a node of the right chain in chain.grpc and chain.rpc, or mend chain.chain_id",
            )

    async def has_training_module(self) -> bool:
        """Whether the node answers the training module's queries (Gonka v0.2.0 - v0.2.11)."""
        if self._training_module is None:
            request = inference_pb2.QueryTrainingTaskRequest(id=0)
            try:
                await self._grpc.call(_INFERENCE + "TrainingTask", request, inference_pb2.QueryTrainingTaskResponse)
                self._training_module = True
            except NodeAnswerError as error:  # task 0 does not exist: any other refusal comes from the module
                self._training_module = error.status is not grpc.StatusCode.UNIMPLEMENTED
        return self._training_module

    async def bech32_prefix(self) -> str:
        """Return the prefix of the chain's addresses; ChainError when the node does not say."""
        path = "/cosmos.auth.v1beta1.Query/Bech32Prefix"
        answer = await self._grpc.call(path, node_pb2.Bech32PrefixRequest(), node_pb2.Bech32PrefixResponse)
        return printable(answer.bech32_prefix)

    # -- blocks -----------------------------------------------------------------------------------------------------

    async def block(self, height: Height) -> Block:
        """Return the whole block, results by position; NotYetError when it is not there yet.

        Raises ChainError when the node's blocks contradict each other or those read before.
        """
        if height in self._blocks:
            return self._blocks[height]
        raw = await self._rpc.call(f"block?height={height}")
        results = await self._rpc.call(f"block_results?height={height}")
        try:
            header, block = blocks.parse_block(raw, results)
            self._check(height, header, block)
        except DecodeError as error:
            raise ChainError(
                f"chain node {self._rpc.url}: {error}", "use another node; this one is not sound"
            ) from error
        self._remember(block)
        return block

    def _check(self, height: Height, header: blocks.Header, block: Block) -> None:
        self._same_chain(header.chain_id, self._rpc.url)
        if header.height != height:
            raise DecodeError(f"asked for block {height}, got {header.height}")
        known, previous = self._hashes.get(height), self._hashes.get(height - 1)
        if known not in {None, block.block_hash} or previous not in {None, block.previous_hash}:
            raise DecodeError(f"block {height} is not of the history that was read before: the chain was reset")
        if self._verify:
            blocks.check_block(header, block)
            if height - 1 in self._blocks:
                blocks.check_results(self._blocks[height - 1], header)

    def _remember(self, block: Block) -> None:
        self._blocks[block.height] = block
        self._hashes[block.height] = block.block_hash
        self._highest = max(self._highest, block.height)
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        if len(self._hashes) > _KEPT_HASHES:
            self._hashes.popitem(last=False)

    # -- state ------------------------------------------------------------------------------------------------------

    async def environment(self, height: Height) -> Environment:
        """Return epoch schedule and weights at the end of the block; a chain without epochs has neither.

        NotYetError when the state is not there yet; ChainError when the node has pruned it.
        """
        try:
            path, request = _INFERENCE + "EpochInfo", inference_pb2.QueryEpochInfoRequest()
            info = await self._grpc.call(path, request, inference_pb2.QueryEpochInfoResponse, height)
        except NodeAnswerError as error:
            if error.status is not grpc.StatusCode.UNIMPLEMENTED or self._has_epochs:
                raise self._state_error(height, error) from error
            return Environment(NO_EPOCHS, ())
        if info.block_height != height:
            raise ChainUnavailableError(f"chain node {self._grpc.target} answers for {info.block_height}, not {height}")
        self._has_epochs = True
        return Environment(epochs.schedule(info), epochs.weights(await self._members(height), self.prefix))

    async def proof_of_compute(self) -> ProofOfCompute:
        """Return when GPUs are wanted, as of the latest block (EpochInfo); a chain without epochs wants none."""
        node = await self.info()
        try:
            path, request = _INFERENCE + "EpochInfo", inference_pb2.QueryEpochInfoRequest()
            answer = await self._grpc.call(path, request, inference_pb2.QueryEpochInfoResponse)
        except NodeAnswerError as error:
            if error.status is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            return ProofOfCompute(node.height, node.time_ns, NO_EPOCHS, None)
        schedule = epochs.schedule(answer)
        return ProofOfCompute(Height(answer.block_height), node.time_ns, schedule, epochs.confirmation(answer))

    async def _members(self, height: Height) -> Sequence[inference_pb2.ValidationWeight]:
        path, request = _INFERENCE + "CurrentEpochGroupData", inference_pb2.QueryCurrentEpochGroupDataRequest()
        try:
            answer = await self._grpc.call(path, request, inference_pb2.QueryCurrentEpochGroupDataResponse, height)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.NOT_FOUND:  # before the first epoch's group
                return ()
            raise self._state_error(height, error) from error
        return answer.epoch_group_data.validation_weights

    def _state_error(self, height: Height, error: NodeAnswerError) -> ChainError:
        if "pruned" not in error.details:
            return error
        return GoneError(
            f"chain node {self._grpc.target} no longer has the state of block {height}",
            "use a node that keeps it (pruning = nothing, or a larger pruning-keep-recent)",
        )

    async def tasks(self) -> list[inference_pb2.TrainingTask]:
        """Return the training module's tasks; none on a chain without it."""
        request = inference_pb2.QueryTrainingTaskAllRequest()
        try:
            path = _INFERENCE + "TrainingTaskAll"
            return list((await self._grpc.call(path, request, inference_pb2.QueryTrainingTaskAllResponse)).tasks)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.UNIMPLEMENTED:
                return []
            raise
