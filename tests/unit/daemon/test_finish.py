"""A round's training that is ended by hand: the same wanted command, in its last form."""

from __future__ import annotations

from dataclasses import replace

from gonka_trainer.daemon.host import shortened
from gonka_trainer.round.commands import Keep, Train
from gonka_trainer.types import Digest, Height

TRAIN = Train(3, Digest(bytes(32)), (), Height(50), False)


def test_only_the_round_that_was_named_ends_early() -> None:
    other, keep = replace(TRAIN, round=4), Keep((), 0)
    assert shortened((TRAIN, other, keep), 3) == (replace(TRAIN, finish=True), other, keep)
    assert shortened((TRAIN, other, keep), -1) == (TRAIN, other, keep)
