"""What this host trained, holds and computed: how its own events change its own state, never anybody else's."""

from __future__ import annotations

from dataclasses import replace

from gonka_trainer.round.events import BlobHeld, CaughtUp, PossessionProved, StateComputed, StateSynced, UpdateReady
from gonka_trainer.round.params import Local
from gonka_trainer.round.state import Anchor, CoreState, Dispute, Final, Own, Round, Work
from gonka_trainer.types import Address, Digest

CAUGHT_UP_SLACK_BLOCKS = 5
"""A `CaughtUp` of a height this far behind the last block seen still counts."""

OwnEvent = CaughtUp | UpdateReady | BlobHeld | PossessionProved | StateComputed | StateSynced


def take(local: Local, state: CoreState, event: OwnEvent) -> CoreState:
    """Return the state after an event of this host; one that is of no use now changes nothing."""
    match event:
        case CaughtUp():
            own = _caught_up(state) if _is_recent(state, event) else state.own
        case UpdateReady():
            own = _update_ready(state, event)
        case BlobHeld():
            own = _blob_held(state, event)
        case PossessionProved():
            own = _possession_proved(local, state, event)
        case StateComputed():
            own = _state_computed(state, event)
        case StateSynced():
            own = _state_synced(state, event)
    return replace(state, own=own)


def _caught_up(state: CoreState) -> Own:
    """Begin to act; the first time, nothing is said in a round that is open already.

    Whoever used this key before, and lost the journal, may have records of that round on their way into a block.
    """
    own = replace(state.own, caught_up=True)
    if own.speaks_from is not None:
        return own
    begun = state.current is not None or state.need is not None
    return replace(own, speaks_from=state.round + begun)


def _is_recent(state: CoreState, event: CaughtUp) -> bool:
    return event.height >= state.height + len(state.queue) - CAUGHT_UP_SLACK_BLOCKS


def _update_ready(state: CoreState, event: UpdateReady) -> Own:
    own, work = state.own, state.own.work
    if state.current is None or event.round != work.number or work.commitment is not None:
        return own
    return replace(own, work=replace(work, commitment=event.commitment))


def _blob_held(state: CoreState, event: BlobHeld) -> Own:
    own, current, work = state.own, state.current, state.own.work
    if current is not None and event.round == work.number and event.participant in current.committers:
        return replace(own, work=_with_blob(work, event))
    final = state.final
    if final is not None and event.round == final.number and event.participant in {p for p, _, _ in final.included}:
        return replace(own, former=_with_blob(own.former, event))
    return own


def _with_blob(work: Work, event: BlobHeld) -> Work:
    return replace(work, held={**work.held, event.participant: event.form_good})


def _possession_proved(local: Local, state: CoreState, event: PossessionProved) -> Own:
    own, current, work = state.own, state.current, state.own.work
    if current is None or event.round != work.number or current.frozen is not None or len(event.possession) != 16:
        return own
    good = holds_good(local, current, work)
    usable = set(event.participants) <= good
    return replace(own, work=replace(work, proof=event)) if usable else own


def _state_computed(state: CoreState, event: StateComputed) -> Own:
    own, current, final, dispute = state.own, state.current, state.final, state.own.dispute
    if dispute is not None and (event.round, event.attempt) == (dispute.number, 1):
        return _recomputed(own, dispute, event)
    if event.attempt != 0:
        return own
    if current is not None and event.round == current.number and current.frozen is not None:
        return _first_computed(own, event)
    late = final is not None and event.round == final.number and own.former.computed is None
    if final is not None and late and final.root not in own.states:
        return _late_computed(own, final, event)
    return own


def _first_computed(own: Own, event: StateComputed) -> Own:
    if own.work.computed is not None:
        return own
    return with_state(replace(own, work=replace(own.work, computed=event.root)), event.root, event.tokens)


def _late_computed(own: Own, final: Final, event: StateComputed) -> Own:
    own = replace(own, former=replace(own.former, computed=event.root))
    own = with_state(own, event.root, event.tokens) if event.root == final.root else own
    return _judge(own, final)


def _recomputed(own: Own, dispute: Dispute, event: StateComputed) -> Own:
    if dispute.recomputed is not None:
        return own
    if event.root != dispute.final:
        return replace(own, dispute=replace(dispute, recomputed=event.root))
    return with_state(replace(own, dispute=None), event.root, event.tokens)


def _state_synced(state: CoreState, event: StateSynced) -> Own:
    if event.root != state.final_root or state.own.dispute is not None:
        return state.own
    return with_state(state.own, event.root, event.tokens)


def with_state(own: Own, root: Digest, tokens: int) -> Own:
    """Return the own state with this root on disk."""
    return replace(own, states={**own.states, root: tokens})


def holds(local: Local, round_: Round, work: Work, participant: Address) -> bool:
    """Whether a committed blob is here; this host's own is, if what it made is what stands on chain."""
    return participant in work.held or _is_ours(local, round_, work, participant)


def holds_good(local: Local, round_: Round, work: Work) -> frozenset[Address]:
    """Return the committers whose blobs are here in good form."""
    return frozenset(p for p in round_.committers if work.held.get(p, False) or _is_ours(local, round_, work, p))


def _is_ours(local: Local, round_: Round, work: Work, participant: Address) -> bool:
    made, stands = work.commitment, round_.commits.get(participant)
    return participant == local.participant and made is not None and stands is not None and stands[0] == made


def end_round(local: Local, own: Own, round_: Round, final: Final | None) -> Own:
    """Return the own state after a round ended: its work is put away, and a final root is compared with ours."""
    work = own.work
    if final is not None:
        held = {p: work.held.get(p, True) for p, _, _ in final.included if holds(local, round_, work, p)}
        own = _judge(replace(own, former=replace(work, held=held)), final)
    if round_.closed is not None:
        own = replace(own, closed=(*own.closed, (round_.number, round_.commitments(round_.committers))))
    return replace(own, work=Work(round_.number + 1))


def _judge(own: Own, final: Final) -> Own:
    """Open a dispute when this host computed another root than the final one (and has no older dispute open)."""
    computed = own.former.computed
    if computed is None or computed == final.root or own.dispute is not None:
        return own
    return replace(own, dispute=Dispute(final.number, final.base_root, final.included, final.root, computed))


def tidy(state: CoreState) -> Own:
    """Return the own state without what is no longer kept, and with the anchor moved to a final state that is here."""
    own, final = state.own, state.final
    if final is not None and final.root in own.states and own.anchor.number != final.number:
        own = replace(own, anchor=Anchor(final.number, final.base_root, final.root))
    kept, first = kept_roots(state, own), blobs_from(own)
    return replace(
        own,
        states={root: tokens for root, tokens in own.states.items() if root in kept},
        closed=tuple(item for item in own.closed if item[0] >= first),
    )


def kept_roots(state: CoreState, own: Own) -> tuple[Digest, ...]:
    """Return the roots that must stay on disk, or are on their way there; oldest first, each once."""
    roots = [own.anchor.former_root, own.anchor.root]
    if state.final is not None:
        roots += [state.final.base_root, state.final.root]
    if own.work.computed is not None:
        roots.append(own.work.computed)
    if own.dispute is not None:
        roots += [own.dispute.base_root, own.dispute.final]
    return tuple(dict.fromkeys(roots))


def blobs_from(own: Own) -> int:
    """Return the first round whose blobs must stay on disk."""
    first = own.anchor.number if own.dispute is None else min(own.anchor.number, own.dispute.number)
    return max(0, first)
