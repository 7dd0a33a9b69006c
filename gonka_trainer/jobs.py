"""The job link between the daemon and its worker: what is asked and answered, a JSON object a line over a Unix socket.

The worker connects to the daemon's socket and speaks first (`Ready`). Tensors never travel over the link: parameters
are raw little-endian float32 files in the layout's order, named by path in the data directory that both can see.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.types import sha256

MAX_LINE_BYTES: Final = 1 << 20
ASSIGNMENT_TAG: Final = b"gonka-trainer/assignment/1"
NO_SAMPLES: Final = sha256(ASSIGNMENT_TAG).hex()
"""The `assignment_root` of a round in which nothing was read."""


@dataclass(frozen=True, slots=True)
class Train:
    """Train one round: read `base` (f32 file), make up to `inner_steps` steps, write the result to `output`.

    `first_step` is the global inner step of the round's first step (for the schedule). `participant` is hex.
    `resume` names the folder in which the worker keeps its inner optimizer's state between rounds, and an unfinished
    round. `base_root` (hex) is the root of the state that `base` is of: a round that was begun from it goes on.
    """

    round: int
    participant: str
    base: str
    output: str
    inner_steps: int
    first_step: int
    resume: str
    base_root: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the round after the step in hand and answer `Done` with what there is (also when no step was made)."""

    round: int


@dataclass(frozen=True, slots=True)
class Yield:
    """End the round after the step in hand, but keep it on disk so that it can go on, and answer `Done` (`yielded`)."""

    round: int


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Compute the mean loss of the parameters in this f32 file on the manifest's held-out split."""

    label: str
    parameters: str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the worker's process."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker is up: its device, a hardware class for headers, and the digest of the layout that its model has."""

    device: str
    hardware: str
    layout_root: str
    pid: int


@dataclass(frozen=True, slots=True)
class Progress:
    """One inner step was made; `loss` is the mean over its tokens in nats."""

    round: int
    inner_step: int
    loss: float
    learning_rate: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Done:
    """The round's training is over and `output` is complete on disk (fsynced).

    `assignment_root` is hex of the digest over the samples that were read. `yielded`: it is over for now, and the same
    `Train` goes on from here; with no step made there is no output then.
    """

    round: int
    inner_steps: int
    tokens: int
    mean_loss: float
    last_loss: float
    output: str
    assignment_root: str
    yielded: bool = False


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The mean held-out loss in nats a token."""

    label: str
    loss: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker cannot do what was asked; the texts are for the operator."""

    what: str
    remedy: str


ToWorker = Train | Finish | Yield | Evaluate | Shutdown
FromWorker = Ready | Progress | Done | Evaluated | Failed

_KINDS: Final[dict[str, type]] = {
    cls.__name__: cls for cls in (Train, Finish, Yield, Evaluate, Shutdown, Ready, Progress, Done, Evaluated, Failed)
}


def encode_line(message: ToWorker | FromWorker) -> bytes:
    """Return the message as one line of JSON with its newline."""
    return json.dumps({"kind": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode_line(line: bytes) -> ToWorker | FromWorker:
    """Read one line; DecodeError when it is not one of the messages with exactly its fields."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise DecodeError("job link: not JSON") from error
    cls = _KINDS.get(value.pop("kind", "")) if isinstance(value, dict) else None
    if cls is None:
        raise DecodeError("job link: unknown message")
    _check(cls, value)
    message: ToWorker | FromWorker = cls(**value)
    return message


def _check(cls: type, value: dict[str, Any]) -> None:
    wanted = {field.name: str(field.type) for field in fields(cls)}
    if value.keys() != wanted.keys():
        raise DecodeError(f"job link: {cls.__name__} has fields {sorted(value)}, wanted {sorted(wanted)}")
    for name, kind in wanted.items():
        if kind == "float" and type(value[name]) is int:
            value[name] = float(value[name])
        if type(value[name]).__name__ != kind:
            raise DecodeError(f"job link: {cls.__name__}.{name} is not {kind}")
