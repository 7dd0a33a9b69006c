"""Who said that a round ends in another state than it did: for logs and the audit; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gonka_trainer.round.membership import Membership
from gonka_trainer.round.records import PlacedRecord, StateRoot
from gonka_trainer.round.summary import Note, Outcome, RoundSummary
from gonka_trainer.types import Address, Digest, Height


def other_roots(summary: RoundSummary) -> Iterator[Note]:
    """Yield a note for each participant whose post counted and names another root than the final one."""
    for post in summary.posts:
        yield from _note(summary, post.height, post.participant, post.root)


def late_roots(
    last: RoundSummary | None, members: Membership, height: Height, records: Iterable[PlacedRecord]
) -> Iterator[Note]:
    """Yield the same for posts in a block after the round's end, by participants of its roster: they count no more.

    `last` and `members` are of the end of the block before.
    """
    roster = set() if last is None else {seat.participant for seat in last.roster}
    for placed in records:
        record, who = placed.record, members.speaks_for(placed.author)
        if isinstance(record, StateRoot) and last is not None and record.round == last.round and who in roster:
            yield from _note(last, height, who, record.root)


def _note(summary: RoundSummary, height: Height, who: Address, root: Digest) -> Iterator[Note]:
    if summary.outcome is Outcome.FINAL and summary.root is not None and root != summary.root:
        text = f"round {summary.round}: posted root {root.hex()}, final is {summary.root.hex()}"
        yield Note(height, who, text, contradicts=True)
