"""What this host wants done in a state: its policy, as far as the protocol leaves it free.

Nothing is started on chain, trained or fetched before the host has caught up with the chain's tip.
"""

from __future__ import annotations

from collections.abc import Iterator

from gonka_trainer.round import bitmap, own
from gonka_trainer.round.commands import (
    Apply,
    Command,
    Fetch,
    Halt,
    Keep,
    ProvePossession,
    Publish,
    ReadEnvironment,
    SendJoin,
    Serve,
    Sync,
    Train,
)
from gonka_trainer.round.environment import environment_digest
from gonka_trainer.round.membership import NEVER
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import Attest, Commit, StateRoot
from gonka_trainer.round.state import CoreState, Final, Own, Round
from gonka_trainer.types import Address, Height


def commands(params: RoundParams, local: Local, state: CoreState) -> tuple[Command, ...]:
    """Return the whole set of what is wanted now, in a stable order."""
    return tuple(_all(params, local, state))


def _all(params: RoundParams, local: Local, state: CoreState) -> Iterator[Command]:
    yield Keep(own.kept_roots(state, state.own), own.blobs_from(state.own))
    yield from _environments(state)
    dispute = state.own.dispute
    if dispute is not None and dispute.recomputed is not None:
        yield Halt(dispute.number, dispute.recomputed, dispute.final)
        return
    if local.participant is not None:
        yield from _serve(state)
    if not state.own.caught_up:
        return
    yield from _join(params, local, state)
    if dispute is not None:
        yield Apply(dispute.number, dispute.base_root, dispute.included, 1)
        return
    yield from _base_state(params, local, state)
    if state.current is not None and has_voice(local, state.current) and _may_speak(state.own, state.current):
        yield from _round(params, local, state, state.current)


def _may_speak(own_: Own, round_: Round) -> bool:
    return own_.speaks_from is not None and round_.number >= own_.speaks_from


def has_voice(local: Local, round_: Round) -> bool:
    """Whether this host's key speaks for its participant in the round."""
    return local.key is not None and round_.roster.keys.get(local.key) == local.participant


def _environments(state: CoreState) -> Iterator[Command]:
    if state.need is not None:
        yield ReadEnvironment(state.need.height, state.need.digest)
    current = state.current
    if current is not None and current.frozen is not None and current.frozen_environment is None:
        yield ReadEnvironment(current.frozen, None)


def _serve(state: CoreState) -> Iterator[Command]:
    for number, commitments in state.own.closed:
        yield Serve(number, commitments)
    current = state.current
    if current is not None and current.closed is not None:
        yield Serve(current.number, current.commitments(current.committers))


def _join(params: RoundParams, local: Local, state: CoreState) -> Iterator[Command]:
    """Join when nothing that this key has said counts, unless only others can change that.

    Others must act first when the participant is excluded, is not on the manifest's list, or has not delegated to the
    key (its join then waits on chain), or when another key of the participant speaks.
    """
    participant, key = local.participant, local.key
    if participant is None or key is None or not local.wants_membership or state.ended:
        return
    members = state.membership
    standing, entry = members.standing(participant), members.keys.get(key)
    if standing.excluded is not None or participant not in (params.equal_members or (participant,)):
        return
    if standing.speaker == key and members.is_member(participant):
        return
    bound = entry is not None and entry.join is not None and entry.join.participant == participant
    stands = entry is not None and entry.joined > standing.left and entry.joined.height > standing.barred
    complete_by_join = key in {participant, standing.delegate} and standing.speaker is None
    if bound and stands and standing.speaker != key and not complete_by_join:
        return
    yield SendJoin(entry.written if entry is not None else NEVER)


def _base_state(params: RoundParams, local: Local, state: CoreState) -> Iterator[Command]:
    """Get the state that the next round starts from: compute it if everything is here, else fetch it."""
    if state.final_root in state.own.states or not _needs_state(params, local, state):
        return
    final = state.final
    if final is None:
        yield Sync(state.final_root, ())
    elif _can_apply(state, final):
        yield Apply(final.number, final.base_root, final.included, 0)
    else:
        yield Sync(final.root, tuple(p for p in final.holders if p != local.participant))


def _needs_state(params: RoundParams, local: Local, state: CoreState) -> bool:
    """Whether this host has a use for the base state.

    A participant that is in the run has; anybody has for the final state of a run that is over, and must look at the
    last final state when only its number of tokens can tell that the run is over.
    """
    participant = local.participant
    if participant is not None and state.membership.is_member(participant):
        return True
    if state.final is None:
        return False
    stalled = state.round != state.final.number + 1
    return state.ended or (params.tokens > 0 and stalled)


def _can_apply(state: CoreState, final: Final) -> bool:
    former = state.own.former
    here = former.number == final.number and final.base_root in state.own.states
    return here and former.computed is None and all(p in former.held for p, _, _ in final.included)


def _round(params: RoundParams, local: Local, state: CoreState, current: Round) -> Iterator[Command]:
    if current.closed is None:
        yield from _train(params, local, state, current)
        return
    yield from _fetch(local, state, current)
    if current.frozen is None:
        yield from _attest(params, local, state, current)
    else:
        yield from _apply(params, local, state, current)


def finish_height(params: RoundParams, current: Round) -> Height:
    """Return the height from which training stops, so that the commit stands well before its window closes.

    A quarter of the commit window before T, but no more than a quarter of the training: what comes after T is left
    for encoding, hashing and a transaction or two.
    """
    lead = min(max(1, params.commit_blocks // 4), params.train_blocks // 4)
    return Height(current.deadline - lead)


def _train(params: RoundParams, local: Local, state: CoreState, current: Round) -> Iterator[Command]:
    until, participant = current.commit_limit(params), local.participant
    if participant is None or participant in current.commits or state.height >= until:
        return
    if state.own.work.commitment is not None:
        yield Publish(Commit(current.number, state.own.work.commitment), until)
    elif current.roster.decides and current.base_root in state.own.states:
        finish = state.height >= finish_height(params, current)
        yield Train(current.number, current.base_root, tuple(sorted(current.roster.voices)), current.deadline, finish)


def _fetch(local: Local, state: CoreState, current: Round) -> Iterator[Command]:
    targets = current.committers if current.frozen is None else current.included
    for participant in targets:
        if own.holds(local, current, state.own.work, participant):
            continue
        position = current.committers.index(participant)
        holders = (
            p for p, bits in current.bits.items() if position in bits and p not in {local.participant, participant}
        )
        commitment, _ = current.commits[participant]
        yield Fetch(current.number, participant, commitment, current.base_root, tuple(sorted(holders)))


def _attest(params: RoundParams, local: Local, state: CoreState, current: Round) -> Iterator[Command]:
    """Attest what is held: one attestation at a time, the next only when it is due and says something new."""
    limit, participant, work = current.attest_limit(params), local.participant, state.own.work
    if participant is None or state.height >= limit:
        return
    good = own.holds_good(local, current, work)
    said = {current.committers[i] for i in current.bits.get(participant, ())}
    if work.proof is not None and not set(work.proof.participants) <= said:
        yield Publish(_attestation(current, work.proof.participants, work.proof.possession), limit)
    elif not good <= said and _attestation_due(params, local, state, current):
        yield ProvePossession(current.number, current.close_hash, tuple(sorted(good)))


def _attestation(current: Round, participants: tuple[Address, ...], possession: bytes) -> Attest:
    positions = [i for i, p in enumerate(current.committers) if p in set(participants)]
    bits = bitmap.pack(positions, len(current.committers))
    return Attest(current.number, current.list_digest, possession, bits)


def _attestation_due(params: RoundParams, local: Local, state: CoreState, current: Round) -> bool:
    """Whether to attest now: everything is here, or the next of the window's two marks has passed.

    The marks are half and three quarters of the window, again in every extension: two attestations a window at most,
    besides the one that completes.
    """
    if all(own.holds(local, current, state.own.work, p) for p in current.committers):
        return True
    passed = state.height - (current.closed or 0)
    windows, rest = divmod(passed, max(1, params.attest_blocks))
    marks = 2 * windows + (rest >= params.attest_blocks // 2) + (rest >= params.attest_blocks * 3 // 4)
    return marks > state.own.work.attests


def _apply(params: RoundParams, local: Local, state: CoreState, current: Round) -> Iterator[Command]:
    work, participant = state.own.work, local.participant
    if work.computed is None:
        complete = all(own.holds(local, current, work, p) for p in current.included)
        if complete and current.base_root in state.own.states:
            included = tuple((p, c, current.roster.voices[p]) for p, c in current.commitments(current.included))
            yield Apply(current.number, current.base_root, included, 0)
        return
    until, environment = current.state_limit(params), current.frozen_environment
    if participant in current.posts or environment is None or state.height >= until:
        return
    record = StateRoot(current.number, work.computed, environment_digest(environment), current.roster.digest)
    yield Publish(record, until)
