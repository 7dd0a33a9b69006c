"""T against a plain count of blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.round.environment import NO_EPOCHS, EpochSchedule
from gonka_trainer.round.schedule import deadline, poc_end
from gonka_trainer.types import Height

SCHEDULE = EpochSchedule(7, Height(1000), 50, 4, 1, 5)


def _is_poc(s: EpochSchedule, margin: int, h: int) -> bool:
    poc = s.poc_stage_blocks + s.poc_validation_delay_blocks + s.poc_validation_blocks
    starts = range(s.poc_start, h + margin + 1, s.epoch_length_blocks)
    return any(start - margin <= h < start + poc for start in starts)


def _plain(s: EpochSchedule, margin: int, opened: int, train: int) -> int:
    h = opened
    while train > 0:
        h += 1
        train -= not _is_poc(s, margin, h)
    return h


def test_without_epochs_every_block_counts() -> None:
    assert deadline(NO_EPOCHS, 3, Height(10), 7) == 17


def test_a_window_and_its_margin_are_left_out() -> None:
    assert deadline(SCHEDULE, 2, Height(990), 7) == 997
    assert deadline(SCHEDULE, 2, Height(990), 8) == 1010
    assert deadline(SCHEDULE, 2, Height(997), 1) == 1010
    assert deadline(SCHEDULE, 2, Height(1009), 1) == 1010
    assert deadline(SCHEDULE, 2, Height(1009), 39) == 1060


def test_no_window_lies_before_the_first() -> None:
    assert deadline(SCHEDULE, 2, Height(100), 700) == 800
    assert [poc_end(SCHEDULE, 2, h) for h in (947, 997, 998, 1009, 1010)] == [None, None, 1010, 1010, None]


def test_windows_without_a_gap_are_no_windows() -> None:
    assert deadline(SCHEDULE, 40, Height(990), 7) == 997


@given(
    st.integers(0, 300),
    st.integers(1, 40),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 400),
    st.integers(0, 120),
)
def test_the_deadline_is_that_of_a_plain_count(
    start: int, length: int, stage: int, delay: int, validation: int, margin: int, opened: int, train: int
) -> None:
    schedule = EpochSchedule(3, Height(start), length, stage, delay, validation)
    if stage + delay + validation + margin >= length:
        assert deadline(schedule, margin, Height(opened), train) == opened + train
    else:
        assert deadline(schedule, margin, Height(opened), train) == _plain(schedule, margin, opened, train)
