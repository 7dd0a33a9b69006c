"""The epoch schedule and validation weights, from the chain's answers: pure."""

from __future__ import annotations

from collections.abc import Iterable

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2
from gonka_trainer.chain.address import decode_address
from gonka_trainer.errors import DecodeError
from gonka_trainer.ports import ConfirmationPoc
from gonka_trainer.round.environment import EpochSchedule
from gonka_trainer.types import Address, Height


def schedule(answer: inference_pb2.QueryEpochInfoResponse) -> EpochSchedule:
    """Return the schedule of an EpochInfo answer; negative numbers, which no chain has, become 0."""
    params, latest = answer.params.epoch_params, answer.latest_epoch
    return EpochSchedule(
        index=latest.index,
        poc_start=Height(max(latest.poc_start_block_height, 0)),
        epoch_length_blocks=max(params.epoch_length, 0),
        poc_stage_blocks=max(params.poc_stage_duration, 0),
        poc_validation_delay_blocks=max(params.poc_validation_delay, 0),
        poc_validation_blocks=max(params.poc_validation_duration, 0),
    )


def confirmation(answer: inference_pb2.QueryEpochInfoResponse) -> ConfirmationPoc | None:
    """Return the confirmation of proof of compute that an EpochInfo answer tells of; None when none goes on.

    The chain anchors it at the start of its generation; its length is that of a scheduled one.
    """
    event, latest = answer.active_confirmation_poc_event, schedule(answer)
    if not answer.is_confirmation_poc_active or event.generation_start_height <= 0:
        return None
    validation = event.generation_start_height + latest.poc_stage_blocks + latest.poc_validation_delay_blocks
    return ConfirmationPoc(
        trigger=Height(max(event.trigger_height, 0)),
        generation_start=Height(event.generation_start_height),
        validation_start=Height(validation),
        end=Height(validation + latest.poc_validation_blocks),
    )


def weights(members: Iterable[inference_pb2.ValidationWeight], prefix: str) -> tuple[tuple[Address, int], ...]:
    """Return the positive weights sorted by address.

    A member whose address is not one of the prefix is left out, of one that is named twice the first stands.
    """
    found: dict[Address, int] = {}
    for member in members:
        try:
            address = decode_address(member.member_address, prefix)
        except DecodeError:
            continue
        found.setdefault(address, member.weight)
    return tuple(sorted((address, weight) for address, weight in found.items() if weight > 0))
