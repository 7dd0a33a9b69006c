"""The module's part of a genesis document, checked key by key.

    {"epoch_params": {"epoch_length": 50, ...}, "models": ["Qwen/QwQ-32B"],
     "participants": [{"address": "gonka1...", "weight": 100, "url": "https://...",
                       "nodes": [{"local_id": "node-1", "models": [...], "hardware": [{"type": "...", "count": 8}]}]}],
     "allow_training": ["gonka1..."]}

All keys are optional; what is left out is as on the recorded test net.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import allow_list, epochs, participants
from gonka_devnet.inference.addresses import address_bytes
from gonka_devnet.module import Context

DEFAULT_MODELS = ("Qwen/QwQ-32B", "Qwen/Qwen2.5-7B-Instruct")
NODE_STATUS_INFERENCE = 1
KEYS = ("epoch_params", "models", "participants", "allow_training")
PARTICIPANT_KEYS = ("address", "weight", "url", "nodes")
NODE_KEYS = ("local_id", "models", "hardware")
HARDWARE_KEYS = ("type", "count")
LARGEST_WEIGHT = 2**31 - 1


class GenesisError(ValueError):
    """A genesis document that the module cannot start from; the text names the key."""


def write(context: Context, document: Mapping[str, Any]) -> None:
    """Write the first state; raise GenesisError, naming the key, where the document is wrong."""
    _known(document, KEYS, "inference")
    for model in _texts(document.get("models", DEFAULT_MODELS), "inference.models"):
        participants.add_model(context.store, model)
    powers: dict[bytes, int] = {}
    for i, entry in enumerate(_list(document.get("participants", ()), "inference.participants")):
        powers.update(_write_participant(context, entry, f"inference.participants[{i}]"))
    epochs.genesis(context, _epoch_params(document.get("epoch_params", {})), powers)
    allowed = _texts(document.get("allow_training", ()), "inference.allow_training")
    allow_list.fill(context.store, [_address(each, context, "inference.allow_training") for each in allowed])


def _write_participant(context: Context, entry: Any, where: str) -> dict[bytes, int]:
    """Write a participant and its nodes; return its address and weight if it has any."""
    _known(entry, PARTICIPANT_KEYS, where)
    address = _address(_text(_required(entry, "address", where), f"{where}.address"), context, f"{where}.address")
    weight = _whole(entry.get("weight", 0), f"{where}.weight")
    if weight > LARGEST_WEIGHT:
        raise GenesisError(f"{where}.weight is {weight}; the largest is {LARGEST_WEIGHT}")
    message = pb.MsgSubmitNewParticipant(creator=address, url=_text(entry.get("url", ""), f"{where}.url"))
    participants.submit_new(context, message)
    nodes = _list(entry.get("nodes", ()), f"{where}.nodes")
    if nodes:
        read = [_node(context, node, f"{where}.nodes[{i}]") for i, node in enumerate(nodes)]
        participants.save_hardware(context.store, address, read)
    return {address: weight} if weight else {}


def _node(context: Context, entry: Any, where: str) -> pb.HardwareNode:
    _known(entry, NODE_KEYS, where)
    models = _texts(entry.get("models", ()), f"{where}.models")
    for model in models:
        if not participants.is_model(context.store, model):
            raise GenesisError(f"{where}.models: {model.decode()} is not in inference.models")
    return pb.HardwareNode(
        local_id=_text(_required(entry, "local_id", where), f"{where}.local_id"),
        status=NODE_STATUS_INFERENCE,
        models=models,
        hardware=[_hardware(each, f"{where}.hardware") for each in _list(entry.get("hardware", ()), where)],
    )


def _hardware(entry: Any, where: str) -> pb.Hardware:
    _known(entry, HARDWARE_KEYS, where)
    return pb.Hardware(
        type=_text(_required(entry, "type", where), f"{where}.type"),
        count=_whole(entry.get("count", 1), f"{where}.count"),
    )


def _epoch_params(entry: Any) -> pb.EpochParams:
    where = "inference.epoch_params"
    _known(entry, tuple(field.name for field in pb.EpochParams.DESCRIPTOR.fields), where)
    params = pb.EpochParams()
    params.CopyFrom(epochs.DEFAULT_EPOCH_PARAMS)
    for name, value in entry.items():
        setattr(params, name, _whole(value, f"{where}.{name}"))
    if params.epoch_length <= epochs.set_new_validators(pb.Epoch(), params):
        raise GenesisError(
            f"{where}.epoch_length is {params.epoch_length}: the epoch ends before its validators are set"
        )
    if params.epoch_shift >= params.epoch_length:
        raise GenesisError(f"{where}.epoch_shift is {params.epoch_shift}: epoch 1 would start before the chain")
    return params


def _known(entry: Any, keys: tuple[str, ...], where: str) -> None:
    if not isinstance(entry, Mapping):
        raise GenesisError(f"{where} must be an object")
    for key in entry:
        if key not in keys:
            raise GenesisError(f"{where} has no key {key!r}; it knows {', '.join(keys)}")


def _required(entry: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in entry:
        raise GenesisError(f"{where}.{key} is missing")
    return entry[key]


def _list(value: Any, where: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise GenesisError(f"{where} must be a list")
    return list(value)


def _texts(value: Any, where: str) -> list[bytes]:
    return [_text(each, where) for each in _list(value, where)]


def _text(value: Any, where: str) -> bytes:
    if not isinstance(value, str):
        raise GenesisError(f"{where} must be text, not {value!r}")
    return value.encode()


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise GenesisError(f"{where} must be a whole number of at least 0, not {value!r}")
    return value


def _address(value: bytes, context: Context, where: str) -> bytes:
    if address_bytes(value) is None or not value.startswith(context.prefix.encode() + b"1"):
        raise GenesisError(f"{where}: {value.decode()} is no address with prefix {context.prefix}")
    return value
