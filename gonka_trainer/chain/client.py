"""Reading the chain from one node or several: what the chain is, whole blocks by position, state at a height."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Final

import grpc
from google.protobuf.message import Message as WireMessage

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.chain import epochs
from gonka_trainer.chain.comparing import Comparing
from gonka_trainer.chain.endpoints import Endpoints
from gonka_trainer.chain.headers import Header
from gonka_trainer.chain.node import ChainNode, NodeAddress, NodeStatus
from gonka_trainer.chain.service import TxService
from gonka_trainer.chain.transport import Answer, GoneError, NodeAnswerError, NotYetError, UnknownAnswerError
from gonka_trainer.chain.verifying import TrustedBlock, Verifier
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Block, NodeInfo, ProofOfCompute
from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.text import printable
from gonka_trainer.types import Height

__all__ = ["ChainClient", "NodeAddress", "TrustedBlock"]

_LOG: Final = logging.getLogger(__name__)
_INFERENCE: Final = "/inference.inference.Query/"
_KEPT_BLOCKS: Final = 8


class ChainClient:
    """One chain, read from its nodes in the order of preference; implements `ports.Chain`. Use as `async with`.

    `chain_id` (None: whatever a node says first) is the only chain that it accepts. `verify` is for the first node, the
    `others` say it of themselves: such a node's blocks are given out one block late, when the next header has proved
    them. Blocks must form one history, whether verified or not, and the same one at every node: otherwise every call
    raises ChainError from then on. Every `tend_seconds` it looks after those that did not answer, or lag behind.
    """

    def __init__(
        self,
        node: NodeAddress,
        *,
        others: Sequence[NodeAddress] = (),
        chain_id: str | None = None,
        prefix: str = "gonka",
        verify: bool = False,
        trusted: TrustedBlock | None = None,
        timeout_seconds: float = 10.0,
        tend_seconds: float = 2.0,
    ) -> None:
        self.prefix = prefix
        addresses = (replace(node, verify=node.verify or verify), *others)
        self.endpoints = Endpoints([ChainNode(address, timeout_seconds) for address in addresses])
        self.endpoints.chain_id = chain_id
        self.tx = TxService(self.endpoints, prefix)
        self._comparing = Comparing(self.endpoints)
        self._verifier = Verifier(trusted)
        self._trusted_height = 0 if trusted is None else trusted.height
        self._stack = AsyncExitStack()
        self._tend_seconds = tend_seconds
        self._met = False
        self._highest = 0
        self._training_module: bool | None = None
        self._version: str | None = None
        self._blocks: OrderedDict[int, Block] = OrderedDict()

    async def __aenter__(self) -> ChainClient:
        async with AsyncExitStack() as stack:
            for node in self.endpoints.nodes:
                await stack.enter_async_context(node)
            if len(self.endpoints.nodes) > 1:
                stack.push_async_callback(_end, asyncio.create_task(self._tend()))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _tend(self) -> None:
        """Keep an eye on all nodes; what stops everything is raised by the next call."""
        while True:
            try:
                await self.endpoints.tend(self._highest)
                await self._comparing.catch_up()
            except ChainError as error:
                _LOG.error("%s", error)
                self.endpoints.stop(error)
                return
            await asyncio.sleep(self._tend_seconds)

    # -- the node ---------------------------------------------------------------------------------------------------

    async def info(self) -> NodeInfo:
        """Ask the current node about itself; of one that is verified, the height is the last that can be proved.

        Raises ChainError when gRPC or RPC of a node are of another chain than before or than was configured, and
        ChainUnavailableError when the node is behind the height that was seen (restored from a backup, or one of
        several behind a balancer): nothing is to be done until it has caught up.
        """
        await self._meet()
        node, status = await self.endpoints.ask(self._status)
        height = Height(status.height - 1 if node.verify else status.height)
        if node.verify and height < self._trusted_height:
            raise ChainUnavailableError(
                f"chain node {node.name} can prove block {height}, chain.trusted_block is {self._trusted_height}",
                "wait until it has caught up, or name another node in chain",
            )
        if height < self._highest:
            raise ChainUnavailableError(
                f"chain node {node.name} is at height {height} and was at {self._highest}",
                "wait until it has caught up; if it was reset, it is another chain: start afresh",
            )
        if not node.verify:  # what a verified node says it is at has no proof: its blocks have
            self._highest = height
        return NodeInfo(
            chain_id=status.chain_id,
            height=height,
            earliest_height=status.earliest_height,
            time_ns=status.time_ns,
            syncing=status.syncing,
            version=await self._node_version(),
            training_module=await self.has_training_module(),
        )

    async def checked_info(self) -> NodeInfo:
        """Return `info` for what is signed: of a verified node, height and time are of a block that was checked.

        NotYetError while the node does not have the block that it says it is at.
        """
        info = await self.info()
        if not self.endpoints.current.verify:
            return info
        return replace(info, time_ns=(await self.block(info.height)).time_ns)

    async def _meet(self) -> None:
        """Ask all nodes once, so that one of another chain is known from the start."""
        if not self._met and len(self.endpoints.nodes) > 1:
            await self.endpoints.tend(self._highest)
        self._met = True

    async def _status(self, node: ChainNode) -> tuple[ChainNode, NodeStatus]:
        status = await node.status()
        self.endpoints.same_chain(status.chain_id, node.name)
        self.endpoints.note(node, status)
        return node, status

    async def status(self) -> NodeStatus:
        """Return what the current node's RPC says of itself."""
        return (await self.endpoints.ask(self._status))[1]

    async def chain_id(self) -> str:
        """Return the chain's id, asking a node when none was configured."""
        if self.endpoints.chain_id is None:
            return (await self.info()).chain_id
        return self.endpoints.chain_id

    async def _node_version(self) -> str:
        if self._version is None:
            said = (await self.node_info()).application_version
            self._version = printable(said.version) or f"Cosmos SDK {printable(said.cosmos_sdk_version)}"
        return self._version

    async def node_info(self) -> node_pb2.GetNodeInfoResponse:
        """Return what the node says of its software, over gRPC, whose chain must be the same."""
        path = "/cosmos.base.tendermint.v1beta1.Service/GetNodeInfo"
        answer = await self.call(path, node_pb2.GetNodeInfoRequest(), node_pb2.GetNodeInfoResponse)
        self.endpoints.same_chain(printable(answer.default_node_info.network), self.endpoints.current.grpc.target)
        return answer

    async def has_training_module(self) -> bool:
        """Whether the node answers the training module's queries (Gonka v0.2.0 - v0.2.11)."""
        if self._training_module is None:
            request = inference_pb2.QueryTrainingTaskRequest(id=0)
            try:
                await self.call(_INFERENCE + "TrainingTask", request, inference_pb2.QueryTrainingTaskResponse)
                self._training_module = True
            except NodeAnswerError as error:  # task 0 does not exist: any other refusal comes from the module
                self._training_module = error.status is not grpc.StatusCode.UNIMPLEMENTED
        return self._training_module

    async def bech32_prefix(self) -> str:
        """Return the prefix of the chain's addresses; ChainError when the node does not say."""
        path = "/cosmos.auth.v1beta1.Query/Bech32Prefix"
        answer = await self.call(path, node_pb2.Bech32PrefixRequest(), node_pb2.Bech32PrefixResponse)
        return printable(answer.bech32_prefix)

    async def call(self, path: str, request: WireMessage, answer: type[Answer], height: int | None = None) -> Answer:
        """Call a gRPC method of the first node that answers, as `GrpcNode.call`."""
        return await self.endpoints.call(path, request, answer, height)

    # -- blocks -----------------------------------------------------------------------------------------------------

    async def block(self, height: Height) -> Block:
        """Return the whole block, results by position; NotYetError when it is not there yet.

        Raises ChainError when a node's blocks contradict each other, those read before or another node's, and GoneError
        when no node has the block any longer.
        """
        self.endpoints.check()
        if height in self._blocks:
            return self._blocks[height]
        node, block = await self.endpoints.ask(lambda node: self._read(node, height))
        await self._comparing.with_others(node, block)
        self._remember(node, block)
        return block

    async def header(self, height: Height) -> Header:
        """Return a block's header as the current node gives it, unchecked: to show, not to act on."""
        return await self.endpoints.ask(lambda node: node.header(height))

    async def _read(self, node: ChainNode, height: Height) -> tuple[ChainNode, Block]:
        header, block = await node.block(height)
        self.endpoints.same_chain(header.chain_id, node.name)
        self._comparing.check(node, block)
        if node.verify:
            await self._verifier.check(node, header, block)
        else:
            self._verifier.note(node, header)
        return node, block

    def _remember(self, node: ChainNode, block: Block) -> None:
        self._comparing.remember(node, block)
        self._blocks[block.height] = block
        self._highest = max(self._highest, block.height)
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)

    # -- state ------------------------------------------------------------------------------------------------------

    async def environment(self, height: Height) -> Environment:
        """Return epoch schedule and weights at the end of the block; a chain without epochs has neither.

        State has no proofs: all nodes that have it must say the same. NotYetError when the state is not there yet;
        GoneError when no node has it any longer; ChainError when two differ.
        """
        node, found = await self.endpoints.ask(lambda node: self._environment(node, height))
        for other in self.endpoints.others(node):
            if not self.endpoints.is_away(other):
                await self._compare_environment(height, (node, found), other)
        return found

    async def _environment(self, node: ChainNode, height: Height) -> tuple[ChainNode, Environment]:
        return node, await node.environment(height, self.prefix)

    async def _compare_environment(
        self, height: Height, known: tuple[ChainNode, Environment], other: ChainNode
    ) -> None:
        try:
            found = await other.environment(height, self.prefix)
        except (NotYetError, GoneError):
            return
        except (ChainUnavailableError, NodeAnswerError, UnknownAnswerError) as error:
            self.endpoints.failed(other, error)  # it contradicts nothing, and must hold nothing up
            return
        if found != known[1]:
            raise self._comparing.differ(height, known[0].name, _shown(known[1]), other.name, _shown(found))

    async def proof_of_compute(self) -> ProofOfCompute:
        """Return when GPUs are wanted, as of the latest block (EpochInfo); a chain without epochs wants none."""
        node = await self.info()
        try:
            path, request = _INFERENCE + "EpochInfo", inference_pb2.QueryEpochInfoRequest()
            answer = await self.call(path, request, inference_pb2.QueryEpochInfoResponse)
        except NodeAnswerError as error:
            if error.status is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            return ProofOfCompute(node.height, node.time_ns, NO_EPOCHS, None)
        schedule = epochs.schedule(answer)
        height, shift_blocks = Height(answer.block_height), max(answer.params.epoch_params.epoch_shift, 0)
        return ProofOfCompute(height, node.time_ns, schedule, epochs.confirmation(answer), shift_blocks)

    async def tasks(self) -> list[inference_pb2.TrainingTask]:
        """Return the training module's tasks; none on a chain without it."""
        request = inference_pb2.QueryTrainingTaskAllRequest()
        try:
            path = _INFERENCE + "TrainingTaskAll"
            return list((await self.call(path, request, inference_pb2.QueryTrainingTaskAllResponse)).tasks)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.UNIMPLEMENTED:
                return []
            raise


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _shown(environment: Environment) -> str:
    total = sum(weight for _, weight in environment.weights)
    return f"epoch {environment.schedule.index}, {len(environment.weights)} weights of {total} in all"
