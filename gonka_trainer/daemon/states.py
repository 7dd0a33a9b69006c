"""States on disk: reading their vectors, making the initial one, applying a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gonka_trainer.daemon.kit import Run
from gonka_trainer.errors import MachineError, StorageError
from gonka_trainer.gradient.aggregate import Contribution, coefficients
from gonka_trainer.gradient.arrays import F32, Buffer
from gonka_trainer.gradient.blob import BlobIndex, open_blob
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.outer import outer_step
from gonka_trainer.gradient.parallel import in_order
from gonka_trainer.gradient.state import StateIndex, decode_state_header, index_state, open_state
from gonka_trainer.ports import ObjectDraft, Objects, StoredObject
from gonka_trainer.round.commands import Apply
from gonka_trainer.types import Address, Digest, Fault, Verdict

_START_AFRESH: Final = (
    "check disk and memory, then move the run's folder away: the daemon reads the run again and fetches the state"
)


def parameters_of(stored: StoredObject, layout: Layout) -> F32:
    """Return the parameters of a stored state, float32[total_elements], memory-mapped."""
    return np.memmap(stored.payload, np.float32, "r", shape=(layout.total_elements,))


def momentum_of(stored: StoredObject, layout: Layout) -> F32:
    """Return the outer momentum of a stored state, float32[total_elements], memory-mapped."""
    offset = 4 * layout.total_elements
    return np.memmap(stored.payload, np.float32, "r", offset=offset, shape=(layout.total_elements,))


def make_initial(run: Run, store: Objects) -> Digest:
    """Write the state before round 0 and return its root; MachineError when it is not the manifest's."""
    layout = run.layout
    with store.draft(8 * layout.total_elements) as draft:
        parameters, momentum = _vectors(draft, layout)
        parameters[:] = initial_parameters(layout, bytes.fromhex(run.manifest.init_seed))
        momentum[:] = 0
        index = index_state(layout, parameters, momentum, tokens=0, outer_steps=0)
        if index.root != run.params.initial_root:
            raise MachineError(
                f"the initial state has root {index.root.hex()}, the manifest says {run.manifest.state_root}",
                "this machine or version computes other numbers than the run's author: do not join with it",
            )
        _publish_state(draft, index, parameters, momentum)
    return index.root


@dataclass(frozen=True, slots=True)
class Applied:
    """The new state's index, and for each update that is longer than the median the factor that clips it to it."""

    index: StateIndex
    clips: Mapping[Address, float]


def apply_round(run: Run, store: Objects, command: Apply, good: Mapping[Address, bool]) -> Applied:
    """Compute the state after the round from the included blobs, store it, and return its index and what was clipped.

    `good` says of each included blob whether its form was found good when it came: one that was not has weight 0 and
    is left out; what it does not name is looked at.
    StorageError when the former state is not here, or its bytes are no longer those of its root: from a damaged one
    this host would post a root of its own.
    """
    layout = run.layout
    base = _stored_state(store, command.base_root)
    _check_state(command.base_root, base, layout)
    former = decode_state_header(base.preamble)
    used = [each for each in command.included if good.get(each[0]) is not False]
    parts = [_contribution(run, store, command, *each, good) for each in used]
    weights = coefficients(parts)
    total = sum(part.tokens for part in parts)
    with store.draft(8 * layout.total_elements) as draft:
        parameters, momentum = _vectors(draft, layout)
        outer_step(
            parameters_of(base, layout),
            momentum_of(base, layout),
            parameters,
            momentum,
            parts,
            weights,
            run.outer,
            layout,
            run.codec,
        )
        steps = former.outer_steps + (1 if total else 0)
        index = index_state(layout, parameters, momentum, former.tokens + total, steps)
        _publish_state(draft, index, parameters, momentum)
    return Applied(index, _clips(parts, weights, total))


def _clips(parts: Sequence[Contribution], weights: Sequence[np.float32], total: int) -> dict[Address, float]:
    shares = (
        (part, float(weight) * total / part.tokens) for part, weight in zip(parts, weights, strict=True) if part.tokens
    )
    return {part.participant: share for part, share in shares if share < 1}


def _vectors(draft: ObjectDraft, layout: Layout) -> tuple[np.memmap[Any, Any], np.memmap[Any, Any]]:
    count = layout.total_elements
    first = np.memmap(draft.payload, np.float32, "r+", shape=(count,))
    return first, np.memmap(draft.payload, np.float32, "r+", offset=4 * count, shape=(count,))


def _publish_state(draft: ObjectDraft, index: StateIndex, *vectors: np.memmap[Any, Any]) -> None:
    for vector in vectors:
        vector.flush()
    draft.publish("state", index.root, 0, index)


def blob_index(
    run: Run, store: Objects, round_number: int, participant: Address, commitment: Digest, base_root: Digest
) -> tuple[BlobIndex, StoredObject]:
    """Return a stored blob with its index; StorageError when it is not there or damaged."""
    stored = store.blob(round_number, commitment) if store.complete("blob", commitment, round_number) else None
    expected = run.expected(round_number, participant, base_root)
    index = None if stored is None else open_blob(commitment, stored.preamble, stored.leaf_list, expected, run.layout)
    if stored is None or index is None or isinstance(index, Verdict):
        raise StorageError(
            f"the blob {commitment.hex()} of round {round_number} is not on disk or damaged", _START_AFRESH
        )
    return index, stored


def _contribution(
    run: Run,
    store: Objects,
    command: Apply,
    participant: Address,
    commitment: Digest,
    weight: int,
    good: Mapping[Address, bool],
) -> Contribution:
    index, stored = blob_index(run, store, command.round, participant, commitment, command.base_root)
    payload = np.memmap(stored.payload, np.uint8, "r") if index.total_bytes else np.empty(0, np.uint8)
    form = good.get(participant)
    kept = index.header_verdict.good and (form if form is not None else _whole_form(index, payload))
    return Contribution(participant, weight, index, payload, kept)


def _whole_form(index: BlobIndex, payload: npt.NDArray[np.uint8]) -> bool:
    """Look at every chunk again; StorageError when the bytes are no longer those that were fetched."""
    form = True
    for i in range(index.count):
        verdict = check_bytes(index, i, payload[index.offset(i) : index.offset(i) + index.chunk_bytes(i)])
        form = form and verdict.good
    return form


def check_bytes(index: BlobIndex, chunk: int, data: Buffer) -> Verdict:
    """Return what `index.check` says of bytes from disk; StorageError when they are not those that were fetched."""
    verdict = index.check(chunk, data)
    if verdict.fault is Fault.DIGEST:
        raise StorageError(f"the blob {index.commitment.hex()} changed on disk: {verdict.detail}", _START_AFRESH)
    return verdict


def _check_state(root: Digest, stored: StoredObject, layout: Layout) -> None:
    index = open_state(root, stored.preamble, stored.leaf_list, layout)
    if isinstance(index, Verdict):
        raise _damaged(root, index.detail)
    payload = np.memmap(stored.payload, np.uint8, "r")

    def check(i: int) -> Verdict:
        return index.check(i, payload[index.offset(i) : index.offset(i) + index.chunk_bytes(i)])

    for verdict in in_order(check, index.count):
        if not verdict.good:
            raise _damaged(root, verdict.detail)


def _damaged(root: Digest, detail: str) -> StorageError:
    return StorageError(f"the state {root.hex()} changed on disk: {detail}", _START_AFRESH)


def _stored_state(store: Objects, root: Digest) -> StoredObject:
    stored = store.state(root)
    if stored is None:
        raise StorageError(f"the state {root.hex()} is not on disk", _START_AFRESH)
    return stored
