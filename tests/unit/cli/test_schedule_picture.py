"""The picture of the coming epoch, at several widths, and the rounds that it foresees."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from gonka_trainer.app.coming import Coming, RunPlan, around, foresee
from gonka_trainer.cli.schedule_command import draw, picture
from gonka_trainer.daemon.windows import Window
from gonka_trainer.manifest import WindowSpec
from gonka_trainer.ports import ConfirmationPoc, ProofOfCompute
from gonka_trainer.round.environment import NO_EPOCHS, EpochSchedule
from gonka_trainer.types import Height

SCHEDULE = EpochSchedule(3, Height(100), 50, 4, 1, 5)
WINDOWS = WindowSpec(10, 2, 6, 5, 1, 4, 3, 3, 3)


def coming(**changes: Any) -> Coming:
    rounds = foresee(poc(120, SCHEDULE), WINDOWS, 7, 111, 160, 100)
    base = Coming(
        chain_id="gonka-test",
        height=120,
        epoch=3,
        block_seconds=5.0,
        first=100,
        end=160,
        windows=(Window(100, 110), Window(150, 160)),
        lead_blocks=4,
        stop_seconds=2.5,
        run=RunPlan("toy", rounds, 2),
    )
    return replace(base, **changes)


def drawn(what: Coming, width: int) -> list[str]:
    out = io.StringIO()
    draw(what, Console(file=out, width=width, force_terminal=False))
    return out.getvalue().splitlines()


def test_one_column_a_block_shows_every_block() -> None:
    rows = [row.plain[8:] for row in picture(coming(), 60)]
    assert rows[0] == "█" * 10 + "·" * 36 + "░" * 4 + "█" * 10
    assert rows[1] == "·" * 11 + "┣━━━━━━━━━━aass" * 2 + "┣" + "━" * 18
    assert rows[2] == " " * 20 + "▲"
    assert rows[3].split() == ["100", "120", "150", "159"]
    assert rows[4].split() == ["-2", "0", "+2", "+3"]


@pytest.mark.parametrize("width", [10, 24, 40, 80, 200])
def test_no_line_of_the_picture_is_wider_than_the_terminal(width: int) -> None:
    rows = picture(coming(), max(16, width - 8))
    assert all(len(row.plain) <= max(24, width) for row in rows)
    assert rows[0].plain.count("█") >= 2
    lines = drawn(coming(), width)
    assert all(len(line) <= width for line in lines)
    assert any("PoC" in line for line in lines)


def test_what_is_said_beside_it() -> None:
    text = "\n".join(drawn(coming(), 120))
    assert "PoC: blocks 150 to 159 (in 2.5 min)." in text
    assert "told to leave 4 blocks before" in text
    assert "Run toy: 2 to 3 rounds open before block 160." in text
    assert "Round 7: trains until block 121, in 0 min, over at block 125 or later." in text
    dedicated = "\n".join(drawn(coming(lead_blocks=0), 120))
    assert "not shared with proof of compute" in dedicated
    assert "░" not in dedicated
    assert "[red]" in "\n".join(drawn(coming(chain_id="[red]x"), 120))


def test_a_chain_without_epochs_and_without_a_run() -> None:
    text = "\n".join(drawn(coming(windows=(), lead_blocks=0, run=None, block_seconds=0.0), 80))
    assert "no scheduled proof of compute" in text


def test_a_proof_of_compute_of_mainnet_is_seen_though_it_is_less_than_a_column() -> None:
    windows = (Window(17280, 17365), Window(34560, 34645))
    mainnet = coming(height=20000, first=17280, end=34645, windows=windows, lead_blocks=10, run=None)
    cells = picture(mainnet, 60)[0].plain[8:]
    assert (cells[0], cells[-1]) == ("█", "█")
    assert cells.count("█") <= 3


def test_a_round_that_is_late_is_not_over_yet() -> None:
    late = foresee(poc(140, SCHEDULE), WINDOWS, 7, 111, 160, 100)
    assert [(r.opened, r.ended) for r in late] == [(111, 140), (141, 167)]


def test_rounds_skip_proof_of_compute_as_the_protocol_does() -> None:
    rounds = foresee(poc(1, SCHEDULE), WINDOWS, 0, 141, 300, 3)
    # ten blocks after 141 that are not 148 <= h < 160: 142 to 147, 160 to 163
    assert [(r.opened, r.trained, r.attested, r.ended) for r in rounds] == [
        (141, 163, 165, 167),
        (168, 178, 180, 182),
        (183, 193, 195, 197),
    ]
    full = foresee(poc(1, SCHEDULE), WINDOWS, 0, 141, 300, 1, full=True)
    assert [(r.opened, r.trained, r.attested, r.ended) for r in full] == [(141, 169, 174, 178)]


def poc(height: int, schedule: EpochSchedule, confirmation: ConfirmationPoc | None = None) -> ProofOfCompute:
    return ProofOfCompute(Height(height), 0, schedule, confirmation, 20)


def test_the_epoch_around_a_height() -> None:
    assert around(poc(120, SCHEDULE)) == (Window(100, 110), Window(150, 160))
    assert around(poc(104, SCHEDULE)) == (Window(100, 110), Window(150, 160))
    assert around(poc(150, SCHEDULE)) == (Window(150, 160), Window(200, 210))
    confirmation = ConfirmationPoc(Height(118), Height(122), Height(127), Height(132))
    assert Window(122, 132, confirmation=True) in around(poc(120, SCHEDULE, confirmation))
    assert around(poc(5, replace(SCHEDULE, index=0, poc_start=Height(0)))) == (Window(30, 40),)
    assert around(poc(5, NO_EPOCHS)) == ()
