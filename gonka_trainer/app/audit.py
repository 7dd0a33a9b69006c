"""The audit: a run judged from the chain alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gonka_trainer.app.reading import RunReader
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Note, Outcome, RoundSummary


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
    async for block, _, state in reader.to_tip():
        progress(block.height)
        notes += state.notes
        if state.last is not None and (not rounds or rounds[-1].round != state.last.round):
            rounds.append(state.last)
            notes += _other_roots(state.last)
    wrong = tuple(note for note in notes if note.contradicts)
    return Audit(tuple(rounds), wrong, tuple(note for note in notes if not note.contradicts), reader.state)


def _other_roots(summary: RoundSummary) -> list[Note]:
    """Return a note for each participant that posted another root than the final one."""
    if summary.outcome is not Outcome.FINAL:
        return []
    return [
        Note(
            post.height,
            post.participant,
            f"round {summary.round}: posted root {post.root.hex()}, final is {(summary.root or b'').hex()}",
            contradicts=True,
        )
        for post in summary.posts
        if post.root != summary.root
    ]
