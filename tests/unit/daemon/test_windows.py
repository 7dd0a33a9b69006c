"""When the GPUs must be free: pure decisions, on the epochs that real chains have."""

from __future__ import annotations

import pytest

from gonka_trainer.daemon.windows import Window, due, lead_blocks, scheduled
from gonka_trainer.ports import ConfirmationPoc, ProofOfCompute
from gonka_trainer.round.environment import NO_EPOCHS, EpochSchedule
from gonka_trainer.round.schedule import poc_end
from gonka_trainer.types import Height

# length, shift, stage, delay, validation: mainnet's genesis and later documents, module default, tests, shortest.
EPOCHS = {
    "mainnet genesis": (17280, 16980, 60, 5, 20),
    "mainnet later": (15391, 16980, 60, 5, 20),
    "module default": (40, 0, 10, 2, 6),
    "test overrides": (50, 0, 4, 1, 4),
    "shortest": (15, 0, 2, 1, 2),
}


def at(name: str, height: int, index: int = 1, start: int | None = None) -> ProofOfCompute:
    """What the chain says at a height of the epoch that starts there."""
    length, shift, stage, delay, validation = EPOCHS[name]
    poc_start = (0 if index == 0 else 1000) if start is None else start
    schedule = EpochSchedule(index, Height(poc_start), length, stage, delay, validation)
    return ProofOfCompute(Height(height), 0, schedule, None, min(shift, length))


def blocks(name: str) -> int:
    return sum(EPOCHS[name][2:])


@pytest.mark.parametrize("name", EPOCHS)
def test_every_block_of_three_epochs(name: str) -> None:
    length, end = EPOCHS[name][0], 1000 + blocks(name)
    for height in {*range(1000, end + 3), *range(1000 + length - 20, 1000 + length + blocks(name) + 3)}:
        turn = 0 if height < end else 1 if height < end + length else 2
        assert scheduled(at(name, height), height) == Window(1000 + turn * length, end + turn * length)


@pytest.mark.parametrize(
    ("name", "first"),
    [("mainnet genesis", 300), ("module default", 40), ("test overrides", 50), ("shortest", 15)],
)
def test_epoch_0_has_no_proof_and_the_first_comes_earlier_by_the_shift(name: str, first: int) -> None:
    for height in (1, 5, first - 1, first, first + blocks(name) - 1):
        assert scheduled(at(name, height, index=0), height) == Window(first, first + blocks(name))


@pytest.mark.parametrize("name", EPOCHS)
def test_free_from_the_lead_to_the_end(name: str) -> None:
    length, lead = EPOCHS[name][0], 3
    start, end = 1000 + length, 1000 + length + blocks(name)
    held = [h for h in range(end - length, end + 3) if due(at(name, h), lead) is not None]
    assert held == list(range(start - lead, end))


@pytest.mark.parametrize("name", EPOCHS)
def test_the_window_covers_what_the_protocol_takes_for_proof_of_compute(name: str) -> None:
    for height in range(1000, 1000 + 2 * EPOCHS[name][0] if EPOCHS[name][0] < 100 else 1200):
        poc = at(name, height)
        assert (due(poc, 0) is not None) == (poc_end(poc.schedule, 0, height) is not None)


def test_the_next_window_is_known_before_the_epoch_object_is() -> None:
    """At block S + length the chain still answers with the former epoch; one block later with the new one."""
    old, new = at("shortest", 1015, start=1000), at("shortest", 1016, index=2, start=1015)
    assert due(old, 1) == due(new, 1) == Window(1015, 1020)


def test_a_chain_without_epochs_wants_nothing() -> None:
    poc = ProofOfCompute(Height(100), 0, NO_EPOCHS, None)
    assert scheduled(poc, 100) is None
    assert due(poc, 10) is None


def confirming(height: int) -> ProofOfCompute:
    confirmation = ConfirmationPoc(Height(1020), Height(1024), Height(1029), Height(1033))
    poc = at("test overrides", height)
    return ProofOfCompute(poc.height, 0, poc.schedule, confirmation)


def test_a_confirmation_is_held_for_at_once_and_until_its_end() -> None:
    wanted = Window(1024, 1033, confirmation=True)
    assert [due(confirming(h), 1) for h in (1020, 1021, 1024, 1032)] == [wanted] * 4
    assert due(confirming(1033), 1) is None
    assert due(at("test overrides", 1025), 1) is None


@pytest.mark.parametrize(
    ("stop", "look", "block", "lead"),
    [
        (3.0, 0.0, 5.0, 1),
        (10.0, 0.0, 5.0, 3),
        (30.0, 1.25, 5.0, 10),
        (0.0, 0.0, 5.0, 1),
        (30.0, 0.5, 0.3, 20),  # half of the 41 blocks between two windows, rounded down
        (30.0, 0.5, 0.0, 20),
    ],
)
def test_the_lead_covers_the_measured_stop(stop: float, look: float, block: float, lead: int) -> None:
    assert lead_blocks(at("test overrides", 1).schedule, stop, look, block) == lead
