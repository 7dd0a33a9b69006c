"""Text of others is shown as it is: brackets are no markup, which could end a command with a traceback."""

from __future__ import annotations

import pytest

from gonka_trainer.chain.hardware import Match
from gonka_trainer.cli.task_views import print_matches


def test_hardware_with_brackets_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_matches((Match("gonka1abc", ("[/n]",), (("[/gpu]", 8),), suffices=True),))
    shown = capsys.readouterr().out
    assert "[/n]" in shown
    assert "[/gpu]" in shown
