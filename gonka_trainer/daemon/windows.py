"""When GPUs are wanted for proof of compute, and when the worker must be told to leave: heights in, decisions out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from gonka_trainer.ports import ConfirmationPoc, ProofOfCompute
from gonka_trainer.round.environment import EpochSchedule

SAFETY: Final = 1.5
"""The worker is told this many measured stops before the window: its next stop may be longer, a block may be short."""


@dataclass(frozen=True, slots=True)
class Window:
    """GPUs are wanted for proof of compute at start <= h < end. `confirmation` is one that came unannounced."""

    start: int
    end: int
    confirmation: bool = False


def scheduled(poc: ProofOfCompute, height: int) -> Window | None:
    """Return the window that `height` lies in, or else the next one; None on a chain that has none.

    Windows are periodic, and the next one starts before the epoch that it belongs to can be read: the epoch after this
    one is made at the end of its first block. Epoch 0 has no proof of compute; the first one comes at epoch_length -
    epoch_shift.
    """
    schedule = poc.schedule
    length, blocks = schedule.epoch_length_blocks, poc_blocks(schedule)
    if length <= 0 or blocks <= 0:
        return None
    first = schedule.poc_start if schedule.index else length - poc.epoch_shift_blocks
    turn = max(0, -((first + blocks - 1 - height) // length))
    start = first + turn * length
    return Window(start, start + blocks)


def poc_blocks(schedule: EpochSchedule) -> int:
    """Return how many blocks a window has: generation, the pause, validation."""
    return schedule.poc_stage_blocks + schedule.poc_validation_delay_blocks + schedule.poc_validation_blocks


def lead_blocks(schedule: EpochSchedule, stop_seconds: float, look_seconds: float, block_seconds: float) -> int:
    """Return how many blocks before a window's start the worker is told to leave; at least 1.

    `look_seconds` may pass until a block is noticed. Half of the blocks between two windows at most: with a worker that
    takes longer to leave than they last, nothing would ever be trained.
    """
    wanted = math.ceil((SAFETY * stop_seconds + look_seconds) / max(block_seconds, 1e-3))
    gap = schedule.epoch_length_blocks - poc_blocks(schedule)
    return max(1, min(wanted, gap // 2))


def due(poc: ProofOfCompute, lead: int) -> Window | None:
    """Return the window for which the GPUs must be free as of the block `poc.height`; None when training may go on."""
    if poc.confirmation is not None and poc.height < poc.confirmation.end:
        return _unannounced(poc.confirmation)
    window = scheduled(poc, poc.height)
    return window if window is not None and window.start - lead <= poc.height else None


def _unannounced(confirmation: ConfirmationPoc) -> Window:
    return Window(confirmation.generation_start, confirmation.end, confirmation=True)
