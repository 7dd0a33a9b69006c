"""How an open round goes on after a whole block, and what is left of it when it has ended (docs/protocol.md 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gonka_trainer.round import inclusion
from gonka_trainer.round.environment import environment_digest
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.state import Final, Round
from gonka_trainer.round.summary import Outcome, Posted, RoundSummary, VoidReason
from gonka_trainer.types import Address, Digest, Height


@dataclass(frozen=True, slots=True)
class Ended:
    """The round is over: `triple` is the final (root, environment, roster), None when it is void for `reason`."""

    triple: tuple[Digest, Digest, Digest] | None
    reason: str = ""


def after_block(params: RoundParams, round_: Round, height: Height, block_hash: Digest) -> tuple[Round, Ended | None]:
    """Make the transition that is due after this block, at most one; return the round and how it ended, if it did."""
    if round_.closed is None:
        return _commit_window(params, round_, height, block_hash)
    if round_.frozen is None:
        return _attest_window(params, round_, height)
    return _state_window(params, round_, height)


def _commit_window(
    params: RoundParams, round_: Round, height: Height, block_hash: Digest
) -> tuple[Round, Ended | None]:
    over = height >= round_.commit_limit(params)
    if not (over or (round_.roster.decides and inclusion.all_committed(round_))):
        return round_, None
    round_ = inclusion.close(round_, height, block_hash)
    if not round_.roster.decides:
        return round_, Ended(None, VoidReason.FLOOR)
    if not inclusion.committed_by_majority(round_):
        return round_, Ended(None, VoidReason.COMMIT)
    return round_, None


def _attest_window(params: RoundParams, round_: Round, height: Height) -> tuple[Round, Ended | None]:
    included = inclusion.included(round_)
    over = height >= round_.attest_limit(params)
    if included == round_.committers or (over and inclusion.included_by_majority(round_)):
        return replace(round_, frozen=height, included=included), None
    if not over:
        return round_, None
    if round_.extensions < params.extensions:
        return replace(round_, extensions=round_.extensions + 1), None
    return round_, Ended(None, VoidReason.ATTEST)


def _state_window(params: RoundParams, round_: Round, height: Height) -> tuple[Round, Ended | None]:
    triple = inclusion.winner(round_)
    if triple is not None:
        return round_, Ended(triple)
    return round_, Ended(None, VoidReason.STATE) if height >= round_.state_limit(params) else None


def summary(round_: Round, height: Height, end: Ended) -> RoundSummary:
    """Return what became of a round that ended after the block of this height."""
    names = round_.committers
    return RoundSummary(
        round=round_.number,
        opened=round_.opened,
        deadline=round_.deadline,
        base_root=round_.base_root,
        roster=round_.roster.seats,
        commitments=tuple((p, *round_.commits[p]) for p in sorted(round_.commits)),
        closed=round_.closed,
        attestations=tuple((p, tuple(names[i] for i in sorted(bits))) for p, bits in sorted(round_.bits.items())),
        frozen=round_.frozen,
        included=round_.included,
        posts=tuple(round_.posts[p] for p in sorted(round_.posts)),
        ended=height,
        outcome=Outcome.VOID if end.triple is None else Outcome.FINAL,
        root=None if end.triple is None else end.triple[0],
        reason=end.reason,
    )


def frozen_set(round_: Round) -> tuple[tuple[Address, Digest, int], ...]:
    """Return (participant, commitment, weight) of everybody included."""
    voices = round_.roster.voices
    return tuple((p, commitment, voices[p]) for p, commitment in round_.commitments(round_.included))


def settle(round_: Round, triple: tuple[Digest, Digest, Digest], told: RoundSummary) -> Final:
    """Return what the next round starts from, after a round that ended with this triple."""
    root, environment, _ = triple
    own = round_.frozen_environment
    return Final(
        number=round_.number,
        base_root=round_.base_root,
        root=root,
        environment_digest=environment,
        environment=own if own is not None and environment_digest(own) == environment else None,
        frozen=round_.frozen or Height(0),
        included=frozen_set(round_),
        holders=tuple(sorted(p for p, post in round_.posts.items() if _triple(post) == triple)),
        summary=told,
    )


def _triple(post: Posted) -> tuple[Digest, Digest, Digest]:
    return post.root, post.environment, post.roster
