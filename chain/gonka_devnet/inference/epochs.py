"""Epochs: they advance with the height, and give the participants their weights.

Boundaries (heights; S = the latest epoch's PoC start): the next epoch is made at the end of block S + epoch_length; the
members' weights become the current epoch group's at the end of the block in which new validators are set. Epoch 0 has
no PoC; epoch 1 starts at epoch_length - epoch_shift.
"""

from __future__ import annotations

import base64

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import codec, confirmation, participants
from gonka_devnet.inference.addresses import address_bytes, with_prefix
from gonka_devnet.module import Context, Store

PARAMS = b"Params/value/"
LATEST = b"Epoch/latest/"
GROUP = b"EpochGroupData/current/"
POWERS = b"Devnet/power/"
POWER_BYTES = 8
REPUTATION = 1

# The single validator of the recorded test net.
RECORDED_VALIDATOR = b"gonka1td7qf467fvcxf5w9e4plf7rru44dem26uncvjf"
RECORDED_WEIGHT = 1_000_000

DEFAULT_EPOCH_PARAMS = pb.EpochParams(
    epoch_length=50,
    epoch_multiplier=1,
    epoch_shift=0,
    default_unit_of_compute_price=100,
    poc_stage_duration=4,
    poc_exchange_duration=1,
    poc_validation_delay=1,
    poc_validation_duration=4,
    set_new_validators_delay=1,
    inference_validation_cutoff=0,
    inference_pruning_epoch_threshold=2,
)

# All other parameters of the recorded test net (fields 2 to 8 of its Params), of no use to training; they are served so
# that clients meet the fields which they do not know.
OTHER_PARAMS = base64.b64decode(
    b"EmEKDQgFEP7//////////wEQChoNCGMQ/v//////////ASINCAEQ/v//////////ASoCCAEwCjhkQGRKDQgFEP7//////////wFQ"
    b"CloNCAEQ/v//////////AWICCAFoPHAeGgcIBRDIARgBIj4KDQgFEP7//////////wESDQgCEP///////////wEaDQgJEP//////"
    b"/////wEiDQgBEP///////////wEoCipDCg0IAhD///////////8BEg0IARD///////////8BGg0IBRD+//////////8BILQBKg0I"
    b"AhD///////////8BMgIIATJRCAEQgKCL3svmQBoWCKX8/////////wEQ+v//////////ASABKg0IBRD///////////8BMg0IDBD/"
    b"//////////8BOg0IARD///////////8BOjUKDQgEEP///////////wESDQgGEP///////////wEaDQgFEP7//////////wEgPCgB"
    b"MGQ4WkIiCIDQAhINCBcQ/P//////////ARoNCEAQ/v//////////AQ=="
)


def genesis(context: Context, epoch_params: pb.EpochParams, powers: dict[bytes, int]) -> None:
    """Write the parameters, epoch 0 and its group: the powers (address to weight), or else the recorded validator."""
    params = pb.Params.FromString(OTHER_PARAMS)
    params.epoch_params.CopyFrom(epoch_params)
    codec.save(context.store, PARAMS, params)
    codec.save(context.store, LATEST, pb.Epoch())
    members = powers or {with_prefix(RECORDED_VALIDATOR, context.prefix): RECORDED_WEIGHT}
    for address, weight in members.items():
        context.store.set(POWERS + (address_bytes(address) or b""), weight.to_bytes(POWER_BYTES, "big") + address)
    _set_group(context.store, pb.Epoch())


def end_block(context: Context) -> None:
    """Set new validators and open the next epoch when the block is theirs."""
    epoch = _latest(context.store)
    params = _params(context.store).epoch_params
    confirmation.advance(context, params)
    if epoch.index and context.height == set_new_validators(epoch, params):
        _set_group(context.store, epoch)
    if context.height == next_poc_start(epoch, params):
        codec.save(context.store, LATEST, pb.Epoch(index=epoch.index + 1, poc_start_block_height=context.height))


def trigger_confirmation(context: Context, grace_blocks: int) -> None:
    """Begin a confirmation of proof of compute in this block."""
    confirmation.trigger(context, _latest(context.store).index, grace_blocks)


def next_poc_start(epoch: pb.Epoch, params: pb.EpochParams) -> int:
    """Return the height at which the epoch after this one starts its proof of compute."""
    if epoch.index == 0:
        return params.epoch_length - params.epoch_shift
    return epoch.poc_start_block_height + params.epoch_length


def set_new_validators(epoch: pb.Epoch, params: pb.EpochParams) -> int:
    """Return the height at which the weights of this epoch (not epoch 0) take effect."""
    generation = epoch.poc_start_block_height + params.poc_stage_duration
    validation = generation + params.poc_validation_delay + params.poc_validation_duration
    return validation + params.set_new_validators_delay


def info(context: Context, _request: pb.QueryEpochInfoRequest) -> pb.QueryEpochInfoResponse:
    """Answer height, parameters, the latest epoch, which may still be in its proof of compute, and a confirmation."""
    answer = pb.QueryEpochInfoResponse(
        block_height=context.height, params=_params(context.store), latest_epoch=_latest(context.store)
    )
    event = confirmation.active(context.store)
    if event is not None:
        answer.is_confirmation_poc_active = True
        answer.active_confirmation_poc_event.CopyFrom(event)
    return answer


def params(context: Context, _request: pb.QueryParamsRequest) -> pb.QueryParamsResponse:
    """Answer the module's parameters."""
    return pb.QueryParamsResponse(params=_params(context.store))


def group_data(
    context: Context, _request: pb.QueryCurrentEpochGroupDataRequest
) -> pb.QueryCurrentEpochGroupDataResponse:
    """Answer the members and weights in effect."""
    group = codec.load(context.store, GROUP, pb.EpochGroupData)
    return pb.QueryCurrentEpochGroupDataResponse(epoch_group_data=group)


def _params(store: Store) -> pb.Params:
    return codec.load(store, PARAMS, pb.Params) or pb.Params()


def _latest(store: Store) -> pb.Epoch:
    return codec.load(store, LATEST, pb.Epoch) or pb.Epoch()


def _set_group(store: Store, epoch: pb.Epoch) -> None:
    """Put the epoch's members in effect.

    The devnet runs no proof of compute: each epoch finds the weights that genesis gave. They are kept apart from the
    participants, since a participant that registers anew is back at -1 until the next epoch.
    """
    powers = [(value[POWER_BYTES:], int.from_bytes(value[:POWER_BYTES], "big")) for _, value in store.iterate(POWERS)]
    for address, weight in powers:
        participant = participants.load(store, address)
        if participant is not None:
            participant.weight = weight
            participants.save(store, participant)
    members = [pb.ValidationWeight(member_address=who, weight=weight, reputation=REPUTATION) for who, weight in powers]
    group = pb.EpochGroupData(
        poc_start_block_height=epoch.poc_start_block_height,
        epoch_group_id=epoch.index + 1,
        validation_weights=members,
        total_weight=sum(weight for _, weight in powers),
        epoch_index=epoch.index,
    )
    codec.save(store, GROUP, group)
