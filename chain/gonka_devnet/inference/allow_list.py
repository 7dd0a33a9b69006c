"""Who may train (versions 0.2.4 to 0.2.11): two lists that only governance fills.

Read in the chain's source, not recorded: the check comes before anything else of a handler, an empty list lets nobody
through, and the list is answered in the order of the addresses' bytes. The devnet has no governance; the genesis
document's `allow_training` fills both lists. Unsure: whether the chain answers an unknown role with an error (here, as
it was read, with an empty list).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference.addresses import address_bytes
from gonka_devnet.inference.errors import training_not_allowed
from gonka_devnet.module import Context, Message, Store

EXEC = 0
START = 1
ROLES = (EXEC, START)


def fill(store: Store, addresses: Iterable[bytes]) -> None:
    """Write both lists; every address must be bech32."""
    for address in addresses:
        for role in ROLES:
            store.set(_key(role, address), address)


def guard(entry: tuple[str, Message], role: int) -> tuple[str, Message]:
    """Return the message's entry with a handler that refuses (1139) signers who are not on the role's list."""
    url, message = entry
    return url, replace(message, handle=_guarded(message, role))


def answer(context: Context, request: pb.QueryTrainingAllowListRequest) -> pb.QueryTrainingAllowListResponse:
    """Answer a role's addresses."""
    return pb.QueryTrainingAllowListResponse(
        addresses=[address for _, address in context.store.iterate(_prefix(request.role))]
    )


def _guarded(message: Message, role: int) -> Callable[[Context, bytes], bytes]:
    def handle(context: Context, value: bytes) -> bytes:
        signer = message.signer(value).encode("utf-8", "surrogateescape")
        if context.store.get(_key(role, signer)) is None:
            raise training_not_allowed()
        return message.handle(context, value)

    return handle


def _prefix(role: int) -> bytes:
    return f"TrainingAllowList/{role}/".encode()


def _key(role: int, address: bytes) -> bytes:
    return _prefix(role) + (address_bytes(address) or b"")
