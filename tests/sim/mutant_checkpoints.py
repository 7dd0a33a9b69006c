"""The planted faults of checkpoints: their bytes, the start from them, and what a host without memory may say."""

from __future__ import annotations

from typing import Final

from .mutant import core

CHECKPOINTS: Final = (
    core(
        "a host without memory speaks in the open round",
        "wanted",
        "return own_.speaks_from is not None and round_.number >= own_.speaks_from",
        "return own_.speaks_from is not None",
        always=True,
    ),
    core(
        "the checkpoint's bytes lose who is barred",
        "roster_bytes",
        "places, u64(s.barred), u32(s.absence)",
        "places, u64(0), u32(s.absence)",
    ),
    core(
        "the checkpoint's bytes lose where a daemon listens",
        "roster_bytes",
        'record = b"" if entry.join is None else encode_record(entry.join)',
        'record = b"" if entry.join is None else encode_record(Join(entry.join.participant, entry.join.role, '
        'bytes(32), b"", 0, b"", Height(0)))',
    ),
    core(
        "the decoder reads leaves as revocations",
        "roster_bytes",
        "revoked=_read_place(reader),\n        left=_read_place(reader)",
        "left=_read_place(reader),\n        revoked=_read_place(reader)",
    ),
    core(
        "a start forgets who was ever in a deciding roster",
        "resuming",
        "membership=covered.members,",
        "membership=replace(covered.members, ever=frozenset()),",
        always=True,
    ),
    core(
        "a start forgets the verdicts that were counted",
        "resuming",
        "membership=covered.members,",
        "membership=replace(covered.members, verdicts={}, tallied=frozenset()),",
    ),
    core(
        "a start takes the round's environment for the final one",
        "resuming",
        "environment=event.final,",
        "environment=event.environment,",
    ),
    core(
        "a start counts rounds from the last final one",
        "resuming",
        "        round=covered.round,\n",
        "        round=covered.round if covered.settled is None else covered.settled.number + 1,\n",
    ),
    core(
        "a start from the state before round 0",
        "resuming",
        "final_root=params.initial_root if covered.settled is None else covered.settled.root,",
        "final_root=params.initial_root,",
    ),
    core(
        "a gap keeps the blobs of the round that was open",
        "resuming",
        "work=Work(covered.round)",
        "work=replace(state.own.work, number=covered.round)",
    ),
)
