"""Commits, attestations and state records of the open round: which count, what follows (docs/protocol.md 2 and 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import bitmap, tags
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.records import Attest, Commit, StateRoot
from gonka_trainer.round.state import Round
from gonka_trainer.round.summary import Posted
from gonka_trainer.types import Address, Digest, Height, sha256

LIST_DIGEST_BYTES = 16
_EQUIVOCATION = "equivocation:"
_OTHER_LIST = "an attestation of another list of committers"
_BAD_BITMAP = "an attestation whose bitmap is wrong:"
CONTRADICTIONS = (_EQUIVOCATION, _OTHER_LIST, _BAD_BITMAP)
"""How the reasons begin that no honest host gives cause for."""


def list_digest(close_hash: Digest, committers: Iterable[Address]) -> bytes:
    """Return the digest of the sorted committers, bound to the block hash at the close (docs/protocol.md 3)."""
    return sha256(tags.COMMITTERS, close_hash, *sorted(committers))[:LIST_DIGEST_BYTES]


def count(
    params: RoundParams, round_: Round, height: Height, author: Address, record: Commit | Attest | StateRoot
) -> tuple[Round, str]:
    """Count a record of a round; return the round and why the record is nothing ("" if it counts or is a repeat)."""
    if record.round != round_.number:
        return round_, f"of round {record.round}, round {round_.number} is open"
    participant = round_.roster.keys.get(author)
    if participant is None:
        return round_, "its author has no voice in this round"
    match record:
        case Commit():
            return _commit(params, round_, height, participant, record)
        case Attest():
            return _attest(params, round_, height, participant, record)
    return _state(params, round_, height, participant, record)


def _commit(
    params: RoundParams, round_: Round, height: Height, participant: Address, record: Commit
) -> tuple[Round, str]:
    if round_.closed is not None or not round_.opened <= height <= round_.commit_limit(params):
        return round_, "a commit outside its window"
    first = round_.commits.get(participant)
    if first is not None:
        return round_, "" if first[0] == record.commitment else f"{_EQUIVOCATION} another commitment"
    return replace(round_, commits={**round_.commits, participant: (record.commitment, height)}), ""


def _attest(
    params: RoundParams, round_: Round, height: Height, participant: Address, record: Attest
) -> tuple[Round, str]:
    if round_.closed is None or round_.frozen is not None:
        return round_, "an attestation outside its window"
    if not round_.closed < height <= round_.attest_limit(params):
        return round_, "an attestation outside its window"
    if record.list_digest != round_.list_digest:
        return round_, _OTHER_LIST
    try:
        attested = bitmap.unpack(record.bitmap, len(round_.committers))
    except DecodeError as error:
        return round_, f"{_BAD_BITMAP} {error}"
    return _add_bits(round_, participant, attested), ""


def _add_bits(round_: Round, participant: Address, attested: frozenset[int]) -> Round:
    before = round_.bits.get(participant, frozenset())
    weight, support = round_.roster.voices[participant], list(round_.support)
    for position in attested - before:
        support[position] += weight
    return replace(round_, bits={**round_.bits, participant: before | attested}, support=tuple(support))


def _state(
    params: RoundParams, round_: Round, height: Height, participant: Address, record: StateRoot
) -> tuple[Round, str]:
    if round_.frozen is None or not round_.frozen < height <= round_.state_limit(params):
        return round_, "a state record outside its window"
    found = Posted(participant, record.root, record.environment, record.roster, height)
    first = round_.posts.get(participant)
    if first is not None:
        same = replace(found, height=first.height) == first
        return round_, "" if same else f"{_EQUIVOCATION} another state record"
    return replace(round_, posts={**round_.posts, participant: found}), ""


def all_committed(round_: Round) -> bool:
    """Whether every voice has committed, and there is one."""
    voices = round_.roster.voices
    return bool(voices) and len(round_.commits) == len(voices)


def committed_by_majority(round_: Round) -> bool:
    """Whether participants of more than W/2 have committed."""
    voices = round_.roster.voices
    return round_.roster.majority(sum(voices[p] for p in round_.commits))


def close(round_: Round, height: Height, block_hash: Digest) -> Round:
    """Close the commit window after the block of this height and hash: the list of committers is fixed."""
    committers = tuple(sorted(round_.commits))
    return replace(
        round_,
        closed=height,
        close_hash=block_hash,
        committers=committers,
        list_digest=list_digest(block_hash, committers),
        support=(0,) * len(committers),
    )


def included(round_: Round) -> tuple[Address, ...]:
    """Return the committers whose commitment is attested by more than W/2, sorted."""
    majority = round_.roster.majority
    return tuple(p for p, weight in zip(round_.committers, round_.support, strict=True) if majority(weight))


def included_by_majority(round_: Round) -> bool:
    """Whether the authors of the included commitments hold more than W/2."""
    voices = round_.roster.voices
    return round_.roster.majority(sum(voices[p] for p in included(round_)))


def winner(round_: Round) -> tuple[Digest, Digest, Digest] | None:
    """Return the (root, environment, roster) that participants of more than W/2 posted, if any."""
    voices, tally = round_.roster.voices, Counter[tuple[Digest, Digest, Digest]]()
    for participant, post in round_.posts.items():
        tally[post.root, post.environment, post.roster] += voices[participant]
    return next((triple for triple, weight in tally.items() if round_.roster.majority(weight)), None)
