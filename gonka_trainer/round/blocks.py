"""What one whole block does: its records in order, then at most one transition (docs/protocol.md 3)."""

from __future__ import annotations

from dataclasses import replace

from gonka_trainer.round import absence, final, inclusion, membership, opening, own, verdicts
from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.membership import Membership, Place
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.records import (
    Attest,
    Challenge,
    Commit,
    Delegate,
    Join,
    Leave,
    PlacedRecord,
    Revoke,
    StateRoot,
    VerdictRecord,
)
from gonka_trainer.round.state import CoreState, Round
from gonka_trainer.round.summary import Note
from gonka_trainer.types import Address, Height


def noted(state: CoreState, height: Height, author: Address | None, text: str) -> CoreState:
    """Return the state with one more note, or the same state for an empty text."""
    if not text:
        return state
    return replace(state, notes=(*state.notes, Note(height, author, text, text.startswith(inclusion.CONTRADICTIONS))))


def work_in(params: RoundParams, local: Local, state: CoreState, block: BlockSeen) -> CoreState:
    """Work in the next block: all its records, the transition that is due after it, the opening of a next round."""
    state = replace(state, height=block.height)
    if state.ended:
        return _after_the_end(state, block)
    if block.height >= params.log_height:
        for placed in block.records:
            state = _record(params, local, state, placed)
    if state.current is None:
        return opening.after_block(params, state)
    current, end = final.after_block(params, state.current, block.height, block.block_hash)
    state = replace(state, current=current)
    return state if end is None else _end_round(params, local, state, current, end)


def _after_the_end(state: CoreState, block: BlockSeen) -> CoreState:
    """Let who is in the run change on: its hosts go on serving, also to those who come when it is over."""
    for placed in block.records:
        if isinstance(placed.record, Delegate | Revoke | Join | Leave):
            place = Place(block.height, placed.transaction, placed.message)
            members, why = membership.apply(state.membership, place, placed.author, placed.record)
            state = noted(replace(state, membership=members), block.height, placed.author, why)
    return state


def _record(params: RoundParams, local: Local, state: CoreState, placed: PlacedRecord) -> CoreState:
    height, author, record = state.height, placed.author, placed.record
    match record:
        case Delegate() | Revoke() | Join() | Leave():
            place = Place(height, placed.transaction, placed.message)
            members, why = membership.apply(state.membership, place, author, record)
        case Challenge():
            members, why = verdicts.count_challenge(state.membership, height, author, record)
        case VerdictRecord():
            members, why = _verdict(params, state, author, record)
        case Commit() | Attest() | StateRoot():
            return _round_record(params, local, state, author, record)
        case _:
            return state
    return noted(replace(state, membership=members), height, author, why)


def _verdict(params: RoundParams, state: CoreState, author: Address, record: VerdictRecord) -> tuple[Membership, str]:
    if state.current is None:
        return state.membership, "a verdict while no round is open"
    blocks = params.challenge_blocks
    return verdicts.count_verdict(state.membership, state.current.roster, state.height, author, record, blocks)


def _round_record(
    params: RoundParams, local: Local, state: CoreState, author: Address, record: Commit | Attest | StateRoot
) -> CoreState:
    if state.current is None:
        return noted(state, state.height, author, f"of round {record.round}, no round is open")
    current, why = inclusion.count(params, state.current, state.height, author, record)
    if current is not state.current:
        state = _counted(local, replace(state, current=current), current.roster.keys[author], record)
    return noted(state, state.height, author, why)


def _counted(local: Local, state: CoreState, participant: Address, record: Commit | Attest | StateRoot) -> CoreState:
    """Draw what follows at once from a record that counts: a commit ends absence, our own attestation is counted."""
    if isinstance(record, Commit):
        return replace(state, membership=state.membership.present(participant))
    if isinstance(record, Attest) and participant == local.participant:
        work = replace(state.own.work, attests=state.own.work.attests + 1)
        return replace(state, own=replace(state.own, work=work))
    return state


def _end_round(params: RoundParams, local: Local, state: CoreState, current: Round, end: final.Ended) -> CoreState:
    """Put a round away: absence and exclusions, the final state, this host's work; then open the next one."""
    told = final.summary(current, state.height, end)
    state = replace(_end_members(params, state, current, end), last=told, current=None, round=current.number + 1)
    settled = None
    if end.triple is not None:
        settled = final.settle(current, end.triple, told)
        state = replace(state, final=settled, final_root=settled.root)
    state = replace(state, own=own.end_round(local, state.own, current, settled))
    if 0 < params.rounds <= state.round:
        return replace(state, ended=True)
    return opening.after_block(params, state)


def _end_members(params: RoundParams, state: CoreState, current: Round, end: final.Ended) -> CoreState:
    members, height = state.membership, state.height
    dropped: tuple[Address, ...] = ()
    if end.triple is not None:
        members, dropped = absence.after_final(members, current.roster, current.commits, height, params.absent_rounds)
    members, excluded = verdicts.after_round(members, current.roster, current.number, height, params.exclusion_rounds)
    state = replace(state, membership=members)
    for participant in dropped:
        state = noted(state, height, participant, f"dropped: absent in {params.absent_rounds} final rounds")
    for participant in excluded:
        state = noted(state, height, participant, f"excluded for {params.exclusion_rounds} rounds by verdicts")
    return state
