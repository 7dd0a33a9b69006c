"""The protocol as one function: `step(params, local, state, event)` -> the new state and everything that is wanted.

It never raises, whatever the event and the state; the same events give the same state on every machine.
"""

from __future__ import annotations

from dataclasses import replace

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import blocks, opening, own, resuming, wanted
from gonka_trainer.round.commands import Command
from gonka_trainer.round.environment import environment_digest, is_canonical
from gonka_trainer.round.events import BlockSeen, EnvironmentRead, Event, Resumed
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.state import Anchor, CoreState, Own
from gonka_trainer.types import Height


def initial(params: RoundParams, local: Local) -> CoreState:
    """Return the state before the first block."""
    root = params.initial_root
    return CoreState(Own(Anchor(-1, root, root)), root)


def from_checkpoint(params: RoundParams, local: Local, event: Resumed) -> CoreState:
    """Return the state of a host that begins with this checkpoint; DecodeError when it is none of this run."""
    start = initial(params, local)
    why = resuming.refusal(params, start, event)
    if why:
        raise DecodeError(why)
    return step(params, local, start, event)[0]


def commands(params: RoundParams, local: Local, state: CoreState) -> tuple[Command, ...]:
    """Return everything that is wanted in this state, in a stable order."""
    return wanted.commands(params, local, state)


def step(params: RoundParams, local: Local, state: CoreState, event: Event) -> tuple[CoreState, tuple[Command, ...]]:
    """Return the state after the event, and everything that is wanted then."""
    state = replace(state, notes=())
    match event:
        case BlockSeen():
            state = _block_seen(params, local, state, event)
        case EnvironmentRead():
            state = _environment_read(params, local, state, event)
        case Resumed():
            state = _resumed(params, local, state, event)
        case _:
            state = own.take(local, state, event)
    state = _end_by_tokens(params, local, replace(state, own=own.tidy(state)))
    return state, wanted.commands(params, local, state)


def _block_seen(params: RoundParams, local: Local, state: CoreState, block: BlockSeen) -> CoreState:
    """Queue the block if it is the next one, and work in what can be worked in."""
    last = state.height + len(state.queue)
    first_ever = last == 0 and 1 <= block.height <= max(params.log_height, 1)
    if block.height != last + 1 and not first_ever:
        return blocks.noted(state, Height(last), None, f"block {block.height} comes out of order after {last}")
    return _drain(params, local, replace(state, queue=(*state.queue, block)))


def _drain(params: RoundParams, local: Local, state: CoreState) -> CoreState:
    """Work in the queued blocks until an opening needs an environment."""
    at = 0
    while state.need is None and at < len(state.queue):
        state, at = blocks.work_in(params, local, state, state.queue[at]), at + 1
    return replace(state, queue=state.queue[at:])


def _environment_read(params: RoundParams, local: Local, state: CoreState, event: EnvironmentRead) -> CoreState:
    """Give the environment to whatever waits for it; one that nothing waits for is ignored."""
    if not is_canonical(event.environment):
        return blocks.noted(state, event.height, None, "an environment that is not canonical")
    need, current = state.need, state.current
    if need is not None and need.height == event.height:
        if need.digest not in {None, environment_digest(event.environment)}:
            return blocks.noted(state, event.height, None, "an environment that is not the final one")
        return _drain(params, local, opening.supply(params, state, need, event.environment))
    if current is not None and current.frozen == event.height and current.frozen_environment is None:
        return replace(state, current=replace(current, frozen_environment=event.environment))
    return state


def _resumed(params: RoundParams, local: Local, state: CoreState, event: Resumed) -> CoreState:
    """Go on from a checkpoint, if that cannot contradict what this host has said."""
    why = resuming.refusal(params, state, event)
    if why:
        return blocks.noted(state, event.roster.last_height, None, f"a checkpoint of no use: {why}")
    return _drain(params, local, resuming.resume(params, state, event))


def _end_by_tokens(params: RoundParams, local: Local, state: CoreState) -> CoreState:
    """End the run when its last final state is known to have seen the manifest's number of tokens.

    A round that was opened before this host knew is as if it had never been.
    """
    final = state.final
    if state.ended or params.tokens == 0 or final is None:
        return state
    if state.own.states.get(final.root, 0) < params.tokens:
        return state
    waiting, number, told = state.queue, final.number + 1, final.summary
    state = replace(state, ended=True, round=number, current=None, need=None, queue=(), last=told)
    for block in waiting:
        state = blocks.work_in(params, local, state, block)
    return state
