"""Participants and the hardware that they register."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import urlsplit

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import codec
from gonka_devnet.inference.addresses import address_bytes
from gonka_devnet.inference.errors import invalid_key, invalid_model, invalid_request, not_found
from gonka_devnet.module import Context, Store

PARTICIPANTS = b"Participant/value/"
HARDWARE = b"HardwareNodes/value/"
MODELS = b"Model/value/"
ACTIVE = 1
NO_WEIGHT = -1
ED25519_KEY_BYTES = 32
NANOSECONDS_PER_MILLISECOND = 1_000_000


def submit_new(context: Context, message: pb.MsgSubmitNewParticipant) -> pb.MsgSubmitNewParticipantResponse:
    """Register the sender, over whatever it registered before; its weight stays -1 until an epoch gives it one."""
    save(
        context.store,
        pb.Participant(
            index=message.creator,
            address=message.creator,
            weight=NO_WEIGHT,
            join_time=context.time_ns // NANOSECONDS_PER_MILLISECOND,
            join_height=context.height,
            inference_url=message.url,
            status=ACTIVE,
            validator_key=message.validator_key,
            worker_public_key=message.worker_key,
            current_epoch_stats=pb.CurrentEpochStats(),
        ),
    )
    return pb.MsgSubmitNewParticipantResponse()


def submit_hardware(context: Context, message: pb.MsgSubmitHardwareDiff) -> pb.MsgSubmitHardwareDiffResponse:
    """Remove, add and replace nodes of the sender by their local id; the sender need not be a participant."""
    if any(not is_model(context.store, model) for node in message.newOrModified for model in node.models):
        raise invalid_model()
    stored = codec.load(context.store, _hardware_key(message.creator), pb.HardwareNodes) or pb.HardwareNodes()
    nodes = {node.local_id: node for node in stored.hardware_nodes}
    for removed in message.removed:
        nodes.pop(removed.local_id, None)
    nodes.update({node.local_id: node for node in message.newOrModified})
    save_hardware(context.store, message.creator, list(nodes.values()))
    return pb.MsgSubmitHardwareDiffResponse()


def check_new(message: pb.MsgSubmitNewParticipant) -> None:
    """Refuse a URL that is neither http nor https, and keys that are not 32 bytes of base64; all may be empty."""
    if message.url.strip():
        _check_url(message.url.decode("utf-8", "replace"))
    if message.validator_key and not message.validator_key.strip():
        raise invalid_key("invalid validator key: empty or whitespace")
    if message.validator_key.strip():
        _check_key(message.validator_key, "validator")
    if message.worker_key.strip():
        _check_key(message.worker_key, "worker")


def one(context: Context, request: pb.QueryGetParticipantRequest) -> pb.QueryGetParticipantResponse:
    """Answer one participant."""
    found = load(context.store, request.index)
    if found is None:
        raise not_found("not found")
    return pb.QueryGetParticipantResponse(participant=found)


def every(context: Context, _request: pb.QueryAllParticipantRequest) -> pb.QueryAllParticipantResponse:
    """Answer all participants in one page, whatever page was asked for: a devnet has few."""
    found = load_all(context.store)
    return pb.QueryAllParticipantResponse(
        participant=found, pagination=pb.PageResponse(total=len(found)), block_height=context.height
    )


def hardware(context: Context, request: pb.QueryHardwareNodesRequest) -> pb.QueryHardwareNodesResponse:
    """Answer a participant's nodes, by local id; an empty list for who has none."""
    nodes = codec.load(context.store, _hardware_key(request.participant), pb.HardwareNodes)
    return pb.QueryHardwareNodesResponse(nodes=nodes or pb.HardwareNodes())


def hardware_all(context: Context, _request: pb.QueryHardwareNodesAllRequest) -> pb.QueryHardwareNodesAllResponse:
    """Answer everybody's nodes, in the order of the addresses' text."""
    return pb.QueryHardwareNodesAllResponse(nodes=codec.load_all(context.store, HARDWARE, pb.HardwareNodes))


def load(store: Store, address: bytes) -> pb.Participant | None:
    """Return the participant with this address, or None."""
    account = address_bytes(address)
    return None if account is None else codec.load(store, PARTICIPANTS + account, pb.Participant)


def load_all(store: Store) -> list[pb.Participant]:
    """Return all participants in the order of their addresses' bytes."""
    return codec.load_all(store, PARTICIPANTS, pb.Participant)


def save(store: Store, participant: pb.Participant) -> None:
    """Write a participant under its address, which must be bech32."""
    codec.save(store, PARTICIPANTS + (address_bytes(participant.address) or b""), participant)


def save_hardware(store: Store, address: bytes, nodes: list[pb.HardwareNode]) -> None:
    """Write all nodes of an address, sorted by local id."""
    in_order = sorted(nodes, key=lambda node: node.local_id)
    codec.save(store, _hardware_key(address), pb.HardwareNodes(participant=address, hardware_nodes=in_order))


def add_model(store: Store, model: bytes) -> None:
    """Let hardware be registered with this model, as governance does on the chain."""
    store.set(MODELS + model, model)


def is_model(store: Store, model: bytes) -> bool:
    """Return whether governance has listed this model."""
    return store.get(MODELS + model) is not None


def _hardware_key(address: bytes) -> bytes:
    return HARDWARE + address + b"/"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise invalid_request(f"invalid url: {error}") from error
    if parts.scheme not in {"http", "https"}:
        raise invalid_request("url must have scheme http or https")
    if not parts.netloc:
        raise invalid_request(f"url must include a host for {url}")


def _check_key(key: bytes, name: str) -> None:
    try:
        size = len(base64.b64decode(key, validate=True))
    except binascii.Error as error:
        raise invalid_key(f"invalid {name} key: failed to decode validator key: {error}: invalid pubkey") from error
    if size != ED25519_KEY_BYTES:
        wrong = f"ED25519 validator key must be exactly 32 bytes, got {size} bytes for "
        raise invalid_key(f"invalid {name} key: {wrong}: invalid pubkey")
