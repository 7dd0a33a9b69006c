"""What a chain is and can: asked once at the start, shown to the operator. Nothing of a run depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeVar

import grpc
from google.protobuf.message import Message as WireMessage

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.chain import epochs
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.node import NodeStatus
from gonka_trainer.chain.transport import NodeAnswerError, UnknownAnswerError
from gonka_trainer.ports import NodeInfo
from gonka_trainer.round.environment import EpochSchedule
from gonka_trainer.text import printable
from gonka_trainer.types import Address, Height

_Answer = TypeVar("_Answer", bound=WireMessage)
_INFERENCE: Final = "/inference.inference.Query/"
_EXECUTE, _START = 0, 1
_TIMED_BLOCKS: Final = 100
_NANOSECONDS: Final = 1_000_000_000
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
LAST_KNOWN: Final = (0, 2, 16)
_WITH_CONFIRMATION: Final = (0, 2, 5)
_REFUSED: Final = frozenset({grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found. None: the chain or its node does not say.

    `may_execute` and `may_start`: whether the key that signs may write a task's records, and create and assign tasks;
    None where the chain has no allow lists (everybody may) or no training module. `minimum_gas_price` is the node's own
    setting as it writes it ("" for none); a chain may ask for more. `block_seconds` is the mean of the newest blocks.
    """

    chain_id: str
    height: int
    earliest_height: int
    syncing: bool
    application: str
    cosmos_sdk: str
    comet: str
    nodes: tuple[tuple[str, str], ...]
    training_module: bool
    may_execute: bool | None
    may_start: bool | None
    schedule: EpochSchedule | None
    confirmation_known: bool
    block_seconds: float | None
    minimum_gas_price: str | None
    memo_limit_bytes: int | None
    sends_restricted: bool | None
    restricted_until: int
    tx_index: bool | None

    @property
    def is_later(self) -> bool:
        """Whether a chain with epochs says to be of a later version than this program knows."""
        return self.schedule is not None and version_numbers(self.application) > LAST_KNOWN


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version such as v0.2.16; none when there is none in the text."""
    found = _VERSION.search(text)
    return tuple(map(int, found.groups())) if found is not None else ()


async def discover(chain: ChainClient, signer: Address) -> Discovery:
    """Ask the chain what it is; `signer` is the account whose name stands in training messages.

    UnknownAnswerError for answers in a form that is not known; ChainUnavailableError while no node answers.
    """
    info, status, software = await chain.info(), await chain.status(), await chain.node_info()
    said = software.application_version
    schedule, confirmation = await _epochs(chain)
    restricted, until = await _restriction(chain)
    application = f"{printable(said.app_name or said.name)} {printable(said.version) or '(version not said)'}".strip()
    return Discovery(
        chain_id=info.chain_id,
        height=info.height,
        earliest_height=info.earliest_height,
        syncing=info.syncing,
        application=application,
        cosmos_sdk=printable(said.cosmos_sdk_version) or "unknown",
        comet=printable(software.default_node_info.version) or status.comet_version or "unknown",
        nodes=chain.endpoints.standing(),
        training_module=info.training_module,
        may_execute=await _is_allowed(chain, signer, _EXECUTE) if info.training_module else None,
        may_start=await _is_allowed(chain, signer, _START) if info.training_module else None,
        schedule=schedule,
        confirmation_known=confirmation
        or (schedule is not None and version_numbers(application) >= _WITH_CONFIRMATION),
        block_seconds=await _block_seconds(chain, info, status),
        minimum_gas_price=await _minimum_gas_price(chain),
        memo_limit_bytes=await _memo_limit(chain),
        sends_restricted=restricted,
        restricted_until=until,
        tx_index=status.tx_index,
    )


async def _optional(chain: ChainClient, path: str, request: WireMessage, answer: type[_Answer]) -> _Answer | None:
    """Ask what not every chain answers; None when this one does not."""
    try:
        return await chain.call(path, request, answer)
    except NodeAnswerError as error:
        if error.status in _REFUSED:
            return None
        raise UnknownAnswerError(chain.endpoints.current.name, path, error.details) from error


async def _epochs(chain: ChainClient) -> tuple[EpochSchedule | None, bool]:
    """Return the schedule (None: the chain has no epochs) and whether it knows confirmations of proof of compute."""
    path, request = _INFERENCE + "EpochInfo", inference_pb2.QueryEpochInfoRequest()
    answer = await _optional(chain, path, request, inference_pb2.QueryEpochInfoResponse)
    if answer is None:
        return None, False
    found, params = epochs.schedule(answer), answer.params
    lengths = (found.epoch_length_blocks, found.poc_stage_blocks, answer.block_height)
    if min(lengths) <= 0 or found.epoch_length_blocks < found.poc_stage_blocks:
        raise UnknownAnswerError(
            chain.endpoints.current.name,
            path,
            f"an epoch of {lengths[0]} blocks with proof of compute of {lengths[1]} at block {lengths[2]}",
        )
    return found, params.HasField("confirmation_poc_params")


async def _is_allowed(chain: ChainClient, signer: Address, role: int) -> bool | None:
    path, request = _INFERENCE + "TrainingAllowList", inference_pb2.QueryTrainingAllowListRequest(role=role)
    answer = await _optional(chain, path, request, inference_pb2.QueryTrainingAllowListResponse)
    return None if answer is None else encode_address(signer, chain.prefix).encode() in answer.addresses


async def _minimum_gas_price(chain: ChainClient) -> str | None:
    path = "/cosmos.base.node.v1beta1.Service/Config"
    answer = await _optional(chain, path, node_pb2.ConfigRequest(), node_pb2.ConfigResponse)
    return None if answer is None else printable(answer.minimum_gas_price)


async def _memo_limit(chain: ChainClient) -> int | None:
    path = "/cosmos.auth.v1beta1.Query/Params"
    answer = await _optional(chain, path, node_pb2.QueryAuthParamsRequest(), node_pb2.QueryAuthParamsResponse)
    return None if answer is None else answer.params.max_memo_characters


async def _restriction(chain: ChainClient) -> tuple[bool | None, int]:
    path = "/inference.restrictions.Query/TransferRestrictionStatus"
    request = node_pb2.QueryTransferRestrictionStatusRequest()
    answer = await _optional(chain, path, request, node_pb2.QueryTransferRestrictionStatusResponse)
    return (None, 0) if answer is None else (answer.is_active, answer.restriction_end_block)


async def _block_seconds(chain: ChainClient, info: NodeInfo, status: NodeStatus) -> float | None:
    """Return the mean time of the newest blocks; None on a chain of a single block."""
    first = max(info.earliest_height, info.height - _TIMED_BLOCKS)
    if first >= min(info.height, status.height):  # two answers, and perhaps of two nodes
        return None
    header = await chain.header(Height(first))
    return (status.time_ns - header.time_ns) / _NANOSECONDS / (status.height - first)
