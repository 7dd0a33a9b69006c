"""Every planted fault is found: a simulation that stays green with a broken core proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .mutant import Mutant
from .mutant_list import MUTANTS
from .mutants import kill, plant


def some(always: bool) -> list[object]:
    return [pytest.param(m, id=m.name) for m in MUTANTS if m.always is always]


@pytest.mark.parametrize("mutant", [pytest.param(m, id=m.name) for m in MUTANTS])
def test_patterns_are_where_the_mutants_expect_them(mutant: Mutant, tmp_path: Path) -> None:
    plant(mutant, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", some(always=True))
def test_mutant_dies(mutant: Mutant) -> None:
    assert kill(mutant).dead


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", some(always=False))
def test_mutant_dies_too(mutant: Mutant) -> None:
    assert kill(mutant).dead
