"""A journal that begins with a checkpoint, and one that goes on from one: replayed to the same state."""

from __future__ import annotations

from pathlib import Path

import pytest

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import machine
from gonka_trainer.round.environment import NO_EPOCHS, Environment, environment_digest
from gonka_trainer.round.events import BlockSeen, Event, Resumed
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Standing
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import Join
from gonka_trainer.round.roster import draw
from gonka_trainer.round.roster_bytes import Settled, decode_roster
from gonka_trainer.storage.event_codec import decode_event, encode_event
from gonka_trainer.storage.journal import Journal
from gonka_trainer.types import Address, Digest, Height, Role, sha256

RUN = sha256(b"run")
ME = Address(bytes([1]) * 20)
LOCAL = Local(ME, ME)
ENVIRONMENT = Environment(NO_EPOCHS, ((ME, 3),))
PARAMS = RoundParams(RUN, sha256(b"initial"), Height(1), Height(2), (ME,), 1, 4, 0, 4, 4, 1, 4)


def _resumed(height: int, number: int) -> Resumed:
    join = Join(ME, Role.MEMBER, sha256(b"spki"), b"h.example", 9000, b"test", Height(1))
    members = Membership({ME: KeyEntry(Height(1), join, Place(Height(2), 1, 0))}, {ME: Standing(ME)}, frozenset([ME]))
    settled = Settled(number - 1, sha256(b"root"), environment_digest(ENVIRONMENT))
    drawn = draw(PARAMS, members, ENVIRONMENT, number, Height(height), settled)
    return Resumed(decode_roster(drawn.preimage), ENVIRONMENT, ENVIRONMENT)


def _fold(events: list[Event]) -> object:
    state = machine.initial(PARAMS, LOCAL)
    for event in events:
        state, _ = machine.step(PARAMS, LOCAL, state, event)
    return state


def _block(height: int) -> BlockSeen:
    return BlockSeen(Height(height), Digest(sha256(bytes([height]))), ())


def test_a_journal_may_begin_with_a_checkpoint_and_go_on_from_later_ones(tmp_path: Path) -> None:
    given: list[Event] = [_resumed(50, 4), _block(51), _block(52), _resumed(90, 7), _block(91)]
    for event in given:  # each in a run of the daemon of its own
        with Journal(tmp_path / "events", RUN) as journal:
            journal.append(event)
    with Journal(tmp_path / "events", RUN) as journal:
        found = list(journal.replay())
    assert found == given
    state = machine.initial(PARAMS, LOCAL)
    heights = []
    for event in found:
        state, _ = machine.step(PARAMS, LOCAL, state, event)
        heights.append((state.height, state.round, state.notes))
    assert heights == [(50, 4, ()), (51, 4, ()), (52, 4, ()), (90, 7, ()), (91, 7, ())]
    assert _fold(found) == state


def test_a_checkpoint_before_the_first_final_round_has_one_environment() -> None:
    event = _resumed(50, 4)
    early = Resumed(event.roster, event.environment, None)
    assert decode_event(encode_event(early)) == early
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("cut", [1, 5, 60, 200])
def test_a_checkpoint_that_is_cut_short_is_no_event(cut: int) -> None:
    data = encode_event(_resumed(50, 4))
    for changed in (data[:-cut], data + bytes(cut), data[:1] + data[2:]):
        with pytest.raises(DecodeError):
            decode_event(changed)
