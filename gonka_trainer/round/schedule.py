"""Which blocks are scheduled proof of compute, and when a round's training ends (docs/protocol.md 3, `train`)."""

from __future__ import annotations

from gonka_trainer.round.environment import EpochSchedule
from gonka_trainer.types import Height


def poc_end(schedule: EpochSchedule, margin_blocks: int, height: int) -> int | None:
    """Return the first height after the scheduled PoC window that `height` lies in; None when it lies in none.

    The windows are S + k * length - margin <= h < S + k * length + stage + delay + validation, for every k >= 0.
    """
    length = schedule.epoch_length_blocks
    if not _leaves_a_gap(schedule, margin_blocks):
        return None
    k = (height + margin_blocks - schedule.poc_start) // length
    end = schedule.poc_start + k * length + _poc_blocks(schedule)
    return end if k >= 0 and height < end else None


def deadline(schedule: EpochSchedule, margin_blocks: int, opened: Height, train_blocks: int) -> Height:
    """Return T, the last of the `train_blocks` blocks after `opened` that are not scheduled PoC."""
    if not _leaves_a_gap(schedule, margin_blocks):
        return Height(opened + train_blocks)
    height, left = int(opened), train_blocks
    while left > 0:
        end = poc_end(schedule, margin_blocks, height + 1)
        if end is not None:
            height = end - 1
            continue
        free = min(left, _next_start(schedule, margin_blocks, height + 1) - (height + 1))
        height, left = height + free, left - free
    return Height(height)


def _next_start(schedule: EpochSchedule, margin_blocks: int, height: int) -> int:
    """Return the first block of the next window after `height`, which lies in none."""
    first = schedule.poc_start - margin_blocks
    passed = max(0, (height - first) // schedule.epoch_length_blocks + 1)
    return first + passed * schedule.epoch_length_blocks


def _poc_blocks(schedule: EpochSchedule) -> int:
    return schedule.poc_stage_blocks + schedule.poc_validation_delay_blocks + schedule.poc_validation_blocks


def _leaves_a_gap(schedule: EpochSchedule, margin_blocks: int) -> bool:
    """Whether there are windows with free blocks between them; without a gap no training would ever end."""
    length = schedule.epoch_length_blocks
    return length > 0 and 0 < _poc_blocks(schedule) + margin_blocks < length
