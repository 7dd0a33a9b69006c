"""A confirmation of proof of compute (from version 0.2.5 on): a second one inside an epoch, at no height known before.

Read in the chain's source, not recorded. Stages: grace from the trigger, generation (as long as the epoch's), a delay,
validation, and it is over. Here a test triggers it; on a real chain it comes at random.
"""

from __future__ import annotations

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import codec
from gonka_devnet.module import Context, Store

EVENT = b"ConfirmationPoC/event/"
COUNT = b"ConfirmationPoC/count/"
GRACE, GENERATION, VALIDATION, COMPLETED = 1, 2, 3, 4


def trigger(context: Context, epoch: int, grace_blocks: int) -> None:
    """Begin one in this block; one that goes on gives way to it. `event_sequence` counts from 0."""
    number = int(context.store.get(COUNT) or b"0")
    context.store.set(COUNT, str(number + 1).encode())
    event = pb.ConfirmationPoCEvent(
        epoch_index=epoch,
        event_sequence=number,
        trigger_height=context.height,
        generation_start_height=context.height + grace_blocks,
        phase=GRACE,
    )
    codec.save(context.store, EVENT, event)


def active(store: Store) -> pb.ConfirmationPoCEvent | None:
    """Return the one that goes on, or None."""
    return codec.load(store, EVENT, pb.ConfirmationPoCEvent)


def advance(context: Context, params: pb.EpochParams) -> None:
    """Set the phase at the end of a block; take away what is over."""
    event = active(context.store)
    if event is None:
        return
    event.phase = phase(event, params, context.height)
    if event.phase == COMPLETED:
        context.store.delete(EVENT)
    else:
        codec.save(context.store, EVENT, event)


def phase(event: pb.ConfirmationPoCEvent, params: pb.EpochParams, height: int) -> int:
    """Return the phase at a height; the delay before validation counts as generation."""
    validation = event.generation_start_height + params.poc_stage_duration + params.poc_validation_delay
    if height < event.generation_start_height:
        return GRACE
    if height < validation:
        return GENERATION
    return VALIDATION if height < validation + params.poc_validation_duration else COMPLETED
