"""Between the operator's plain values and the messages of gonka_trainer.v1.Control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gonka_trainer._pb.gonka_trainer.v1 import control_pb2 as pb
from gonka_trainer.controls import HostEvent, TaskLine
from gonka_trainer.errors import ConfigError
from gonka_trainer.types import DIGEST_BYTES, Digest

_PLAIN: Final = tuple(
    name for name in pb.StatusReply.DESCRIPTOR.fields_by_name if name not in {"holds", "participant", "manifest_hash"}
)


def status_reply(status: Mapping[str, Any], holds: Mapping[str, str]) -> pb.StatusReply:
    """Return the status as a message; what the message does not know is left out."""
    known = {name: status[name] for name in _PLAIN if status.get(name) is not None}
    return pb.StatusReply(
        **known,
        participant=status.get("host", ""),
        manifest_hash=status.get("manifest_hash", ""),
        holds=[pb.Hold(who=who, why=why) for who, why in holds.items()],
    )


def task(line: TaskLine) -> pb.Task:
    """Return a task as a message."""
    return pb.Task(
        manifest_hash=line.manifest_hash.hex(),
        task_id=line.task_id,
        author=line.author,
        height=line.height,
        url=line.url,
        standing=line.standing,
        why=line.why,
    )


def event(happened: HostEvent) -> pb.Event:
    """Return an event as a message."""
    message = pb.Event(sequence=happened.sequence, time_seconds=happened.time_seconds, kind=happened.kind)
    message.details.update(happened.details)
    return message


def digest(text: str) -> Digest:
    """Read 64 hex digits; ConfigError when it is not that."""
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != DIGEST_BYTES:
        raise ConfigError(f"{text!r:.80} is not 64 hex digits", "`spec hash FILE` prints a manifest's hash")
    return Digest(value)
