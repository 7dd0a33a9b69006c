"""Going on from a checkpoint instead of from the blocks before it (docs/protocol.md 3).

Who trusts a checkpoint trusts its roster digest alone: the bytes under it name the state root and both environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import opening, roster
from gonka_trainer.round.environment import decode_environment, environment_digest, is_canonical
from gonka_trainer.round.events import Resumed
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.roster_bytes import RosterState, decode_roster, encode_roster, roster_digest
from gonka_trainer.round.state import CoreState, Final, Work
from gonka_trainer.types import Digest, Height


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a host may start: the end of block `height` = O - 1, after which `round` opens from the state `root`.

    `environment` is the digest of the final one, before the first final round of the one that R is drawn from;
    `roster` is the round's roster digest.
    """

    height: Height
    round: int
    root: Digest
    environment: Digest
    roster: Digest


def checkpoint_of(params: RoundParams, state: RosterState) -> Checkpoint:
    """Return the checkpoint that these bytes' owner can give to others."""
    settled, digest = state.settled, roster_digest(encode_roster(state))
    if settled is None:
        return Checkpoint(state.last_height, state.round, params.initial_root, state.environment, digest)
    return Checkpoint(state.last_height, state.round, settled.root, settled.environment, digest)


def needed(state: RosterState) -> tuple[Digest, ...]:
    """Return the digests of the environments without which nobody can go on from there, each once."""
    final = () if state.settled is None else (state.settled.environment,)
    return tuple(dict.fromkeys((state.environment, *final)))


def resumed(
    params: RoundParams, checkpoint: Checkpoint, preimage: bytes, environments: Mapping[Digest, bytes]
) -> Resumed:
    """Return the event of a checkpoint from the bytes under its digests; DecodeError when they are others."""
    if roster_digest(preimage) != checkpoint.roster:
        raise DecodeError("not the roster of the checkpoint's digest")
    state = decode_roster(preimage)
    if checkpoint_of(params, state) != checkpoint:
        raise DecodeError("a checkpoint whose height, round, root or environment is not what its roster digest covers")
    found = {digest: decode_environment(environments.get(digest, b"")) for digest in needed(state)}
    for digest, environment in found.items():
        if environment_digest(environment) != digest:
            raise DecodeError("not the environment of the checkpoint's digest")
    return Resumed(state, found[state.environment], None if state.settled is None else found[state.settled.environment])


def refusal(params: RoundParams, state: CoreState, event: Resumed) -> str:
    """Return why a host in this state cannot go on from the checkpoint; "" when it can."""
    if state.ended:
        return "the run is over here"
    if event.roster.last_height < state.height + (state.need is None):
        return f"it is of block {event.roster.last_height}, and this host has read to block {state.height} already"
    if event.roster.round < state.round + (state.current is not None):
        return f"it is of round {event.roster.round}, in which this host may have spoken already"
    return _contradiction(params, event)


def _contradiction(params: RoundParams, event: Resumed) -> str:
    """Return what is wrong with the checkpoint itself: then its owner follows other rules or was cheated."""
    covered, final = event.roster, event.final
    if not is_canonical(event.environment) or not (final is None or is_canonical(final)):
        return "an environment that is not canonical"
    if (None if covered.settled is None else covered.settled.environment) != (
        None if final is None else environment_digest(final)
    ):
        return "an environment that is not the final one"
    if _redrawn(params, event).preimage != encode_roster(covered):
        return "its roster is not what this run's rules draw from its membership and environment"
    return ""


def _redrawn(params: RoundParams, event: Resumed) -> roster.Roster:
    r = event.roster
    return roster.draw(params, r.members, event.environment, r.round, r.last_height, r.settled)


def resume(params: RoundParams, state: CoreState, event: Resumed) -> CoreState:
    """Return the state at the checkpoint, for an event that is not refused; blocks behind it stay queued.

    What this host holds stays; it has said nothing in the round that opens, nor in any later one.
    """
    covered, final = event.roster, _final(state, event)
    known = final is not None and final.summary is not None
    former = state.own.former if known else Work(-1)
    own = replace(state.own, caught_up=False, speaks_from=None, work=Work(covered.round), former=former)
    state = replace(
        state,
        own=own,
        final_root=params.initial_root if covered.settled is None else covered.settled.root,
        height=covered.last_height,
        round=covered.round,
        membership=covered.members,
        current=None,
        need=None,
        queue=tuple(block for block in state.queue if block.height > covered.last_height),
        final=final,
        last=None,
    )
    return opening.open_round(params, state, _redrawn(params, event), event.environment)


def _final(state: CoreState, event: Resumed) -> Final | None:
    """Return the last final round: as this host saw it end, or else as much as the checkpoint says of it.

    Its base is not known then: the last state that this host knew of is kept in its place, and may well be it.
    """
    settled, seen = event.roster.settled, state.final
    if settled is None:
        return None
    if seen is not None and (seen.number, seen.root) == (settled.number, settled.root):
        return replace(seen, environment_digest=settled.environment, environment=event.final)
    return Final(
        number=settled.number,
        base_root=state.final_root,
        root=settled.root,
        environment_digest=settled.environment,
        environment=event.final,
        frozen=event.roster.last_height,
        included=(),
        holders=tuple(seat.participant for seat in event.roster.seats),
        summary=None,
    )
