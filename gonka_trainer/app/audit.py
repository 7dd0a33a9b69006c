"""The audit: a run judged from the chain alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gonka_trainer.app.reading import RunReader
from gonka_trainer.daemon.roots import late_roots, other_roots
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Note, RoundSummary


@dataclass(frozen=True)
class Audit:
    """The rounds in order, what contradicts the protocol, what is merely nothing, and where the run stands."""

    rounds: tuple[RoundSummary, ...]
    contradictions: tuple[Note, ...]
    ignored: tuple[Note, ...]
    state: CoreState


async def audit(reader: RunReader, progress: Callable[[int], None] = lambda _height: None) -> Audit:
    """Replay the run to the chain's tip."""
    rounds: list[RoundSummary] = []
    notes: list[Note] = []
    former = reader.state
    async for block, event, state in reader.to_tip():
        progress(block.height)
        notes += late_roots(former.last, former.membership, event.height, event.records)
        if state.last is not None and (not rounds or rounds[-1].round != state.last.round):
            rounds.append(state.last)
            notes += other_roots(state.last)
        former = state
    notes = sorted([*reader.notes, *notes], key=lambda note: note.height)
    wrong = tuple(note for note in notes if note.contradicts)
    return Audit(tuple(rounds), wrong, tuple(note for note in notes if not note.contradicts), reader.state)
