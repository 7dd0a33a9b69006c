"""The corpus: one text file, pinned by its digest, read at places that are a pure function of what is asked for.

Nothing is shuffled, iterated or remembered: sample `index` of step `step` has its offset from a hash, so that resuming,
repeating and checking a round read the same bytes whatever happened before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gonka_trainer.errors import ConfigError
from gonka_trainer.jobs import ASSIGNMENT_TAG
from gonka_trainer.manifest import DataSpec, InnerSpec
from gonka_trainer.types import Digest, lp, sha256, u32, u64

Tokens = npt.NDArray[np.int64]

EVALUATION_SEQUENCES: Final = 48
_SAMPLE: Final = b"gonka-trainer/sample/1"
_READ_BYTES: Final = 1 << 20
_REMEDY: Final = "set worker.data to the file that the manifest pins"


@dataclass(frozen=True)
class Corpus:
    """The memory-mapped file: the first `training_bytes` are trained on, the rest is held out."""

    content: npt.NDArray[np.uint8]
    training_bytes: int

    def window(self, offset: int, tokens: int) -> npt.NDArray[np.uint8]:
        """Return `tokens + 1` bytes from `offset`: inputs, and the same shifted by one as targets."""
        return self.content[offset : offset + tokens + 1]


@dataclass(frozen=True)
class Samples:
    """The samples of one participant in one round; `participant` is the account's bytes."""

    seed: int
    participant: bytes
    round: int

    def offset(self, step: int, index: int, places: int) -> int:
        """Return where sample `index` of the round's step `step` starts, in 0..places-1.

        SHA-256(tag || seed u64 || participant, length first || round u32 || step u32 || index u32), its first 8 bytes,
        modulo `places`: the bias is below places / 2**64.
        """
        place = (u64(self.seed), lp(self.participant), u32(self.round), u32(step), u32(index))
        return int.from_bytes(sha256(_SAMPLE, *place)[:8], "big") % places


class Assignment:
    """The digest over every sample that a round read, in order: each offset and the SHA-256 of its bytes."""

    def __init__(self) -> None:
        self._state = hashlib.sha256(ASSIGNMENT_TAG)

    def add(self, offset: int, window: npt.NDArray[np.uint8]) -> None:
        """Take one sample in."""
        self._state.update(u64(offset) + sha256(window.tobytes()))

    @property
    def root(self) -> Digest:
        """The digest over all samples so far."""
        return Digest(self._state.digest())


def open_corpus(path: Path, spec: DataSpec) -> Corpus:
    """Map the file after checking its size and digest (about 1 s a gigabyte); ConfigError when it is not the one."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes != spec.size_bytes:
            raise ConfigError(f"{path}: {size_bytes} bytes, the manifest pins {spec.size_bytes}", _REMEDY)
        digest = _digest(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", _REMEDY) from error
    if digest != spec.sha256:
        raise ConfigError(f"{path}: its SHA-256 is {digest}, the manifest pins {spec.sha256}", _REMEDY)
    return Corpus(np.memmap(path, dtype=np.uint8, mode="r"), size_bytes - spec.validation_bytes)


def _digest(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            state.update(block)
    return state.hexdigest()


def batch(corpus: Corpus, samples: Samples, inner: InnerSpec, step: int, assignment: Assignment) -> Tokens:
    """Return the step's byte tokens, shape (batch_sequences, sequence_tokens + 1), and note them in `assignment`."""
    places = corpus.training_bytes - inner.sequence_tokens
    rows = []
    for index in range(inner.batch_sequences):
        offset = samples.offset(step, index, places)
        rows.append(corpus.window(offset, inner.sequence_tokens))
        assignment.add(offset, rows[-1])
    return np.stack(rows).astype(np.int64)


def held_out(corpus: Corpus, tokens: int) -> Tokens:
    """Return evenly spread sequences of the held-out part, shape (up to EVALUATION_SEQUENCES, tokens + 1)."""
    start, last = corpus.training_bytes, len(corpus.content) - tokens - 1
    count = min(EVALUATION_SEQUENCES, (last - start) // tokens + 1)
    offsets = [start + (last - start) * i // max(1, count - 1) for i in range(count)]
    return np.stack([corpus.window(offset, tokens) for offset in offsets]).astype(np.int64)
