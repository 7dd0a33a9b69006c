"""How a round opens: which environment its roster is drawn from, and when it must wait for one (docs/protocol.md 3)."""

from __future__ import annotations

from dataclasses import replace

from gonka_trainer.round import roster, schedule
from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.roster import Roster
from gonka_trainer.round.roster_bytes import Settled
from gonka_trainer.round.state import CoreState, Need, Round
from gonka_trainer.types import Height


def after_block(params: RoundParams, state: CoreState) -> CoreState:
    """Open the next round in the block after the last one, if it is due and its environment is here.

    From the final environment, if the roster that it gives can decide; else from the one of the last block.
    """
    if state.round == 0 and not _may_begin(params, state):
        return state
    final = state.final
    if final is None:
        return replace(state, need=Need(state.height, None))
    if final.environment is None:
        return replace(state, need=Need(final.frozen, final.environment_digest))
    drawn = _draw(params, state, final.environment)
    if not drawn.decides:
        return replace(state, need=Need(state.height, None))
    return open_round(params, state, drawn, final.environment)


def supply(params: RoundParams, state: CoreState, need: Need, environment: Environment) -> CoreState:
    """Go on with an opening that waited for this environment."""
    state = replace(state, need=None)
    if need.digest is not None and state.final is not None:
        return after_block(params, replace(state, final=replace(state.final, environment=environment)))
    enough = roster.joined_weight(params, state.membership, environment) >= params.min_weight
    if state.round == 0 and not enough:
        return state
    return open_round(params, state, _draw(params, state, environment), environment)


def _may_begin(params: RoundParams, state: CoreState) -> bool:
    """Whether round 0 may open, as far as that is known without the environment of the last block."""
    if state.height < params.start_height:
        return False
    if params.equal_members is None:
        return params.min_weight <= 0 or bool(state.membership.members())
    return roster.joined_weight(params, state.membership, _UNREAD) >= params.min_weight


def _draw(params: RoundParams, state: CoreState, environment: Environment) -> Roster:
    final = state.final
    settled = None if final is None else Settled(final.number, final.root, final.environment_digest)
    return roster.draw(params, state.membership, environment, state.round, state.height, settled)


def open_round(params: RoundParams, state: CoreState, drawn: Roster, environment: Environment) -> CoreState:
    """Return the state with the next round open: its roster is drawn, and from this environment."""
    opened = Height(state.height + 1)
    deadline = schedule.deadline(environment.schedule, params.margin_blocks, opened, params.train_blocks)
    members = state.membership
    if drawn.decides:
        members = replace(members, ever=members.ever.union(seat.participant for seat in drawn.seats))
    current = Round(state.round, opened, deadline, state.final_root, drawn)
    return replace(state, membership=members, current=current)


_UNREAD = Environment(NO_EPOCHS, ())
