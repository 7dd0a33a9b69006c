"""Codecs: a chunk of float32 values as bytes, and back, strictly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient.arrays import F32, U8, Buffer, check_vector, first_not_finite, size_bytes

VALUE_BOUND: Final = float(2**40)
"""Largest |decoded value|. Far below overflow: a mean stays within it, momentum within bound * rounds, and
parameters would need some 2**80 rounds to leave float32."""


class BoundError(DecodeError):
    """The form is right, but a decoded value is not finite or beyond VALUE_BOUND."""


class Codec(Protocol):
    """One encoding of chunks. All methods are pure; those that read bytes of peers raise only DecodeError."""

    @property
    def name(self) -> str:
        """The name by which manifests and headers call it."""

    @property
    def version(self) -> int:
        """Version of the byte form."""

    def encoded_bytes(self, elements: int) -> int:
        """Return the exact size of a chunk of that many elements, known before anything is read."""

    def encode(self, values: F32) -> tuple[bytes, float]:
        """Return the bytes of a chunk (a float32 vector) and the exact sum of squares of what they decode to.

        Raises ValueError naming the first element that is not finite or beyond VALUE_BOUND.
        """

    def sum_squares(self, payload: Buffer, elements: int) -> float:
        """Return the exact sum of squares of the decoded values, after the same checks as `decode`."""

    def decode(self, payload: Buffer, elements: int) -> F32:
        """Return the values. Raises DecodeError (its kind BoundError for values) for all but canonical bytes."""

    def step(
        self,
        payloads: Sequence[U8],
        coefficients: F32,
        former: tuple[F32, F32],
        new: tuple[F32, F32],
        rate: np.float32,
        mu: np.float32,
    ) -> None:
        """Do the outer step on a chunk of every host, in the order given (`outer`), from `former` to `new`.

        Both are (parameters, momentum) of the chunk's elements, and may be the same arrays. The payloads have been
        checked before by `sum_squares`; ValueError when one is not of the chunk's exact size.
        """


class Sized(Protocol):
    """What has a name and chunks of sizes that are known before."""

    @property
    def name(self) -> str:
        """The codec's name."""

    def encoded_bytes(self, elements: int) -> int:
        """Return the exact size of a chunk of that many elements."""


def check_size(codec: Sized, payload: Buffer, elements: int) -> None:
    """Raise DecodeError unless the payload is exactly as long as that many elements are."""
    expected, got = codec.encoded_bytes(elements), size_bytes(payload)
    if got != expected:
        raise DecodeError(f"a {codec.name} chunk of {elements} elements has {got} bytes, not {expected}")


def encodable(values: F32) -> F32:
    """Return the vector with its elements side by side in memory (a strided one is copied).

    Raises ValueError for another type, and naming the first value that is not finite or is beyond VALUE_BOUND.
    """
    check_vector("a chunk", values, values.size)
    bad = first_not_finite(values)
    if bad >= 0:
        raise ValueError(f"element {bad} is {values[bad]}: only finite values can be encoded")
    over = np.abs(values) > VALUE_BOUND
    if over.any():
        raise ValueError(f"element {np.argmax(over)} is {values[np.argmax(over)]}, beyond {VALUE_BOUND:.0f}")
    return np.ascontiguousarray(values)


def codec(name: str, version: int) -> Codec:
    """Return the codec of that name and version; KeyError when there is none."""
    from gonka_trainer.gradient.codec_bf16 import CodecBf16
    from gonka_trainer.gradient.codec_f32 import CodecF32
    from gonka_trainer.gradient.codec_int4 import CodecInt4
    from gonka_trainer.gradient.codec_int8 import CodecInt8
    from gonka_trainer.gradient.codec_topk import CodecTopk

    known: tuple[Codec, ...] = (CodecF32(), CodecBf16(), CodecInt8(), CodecInt4(), CodecTopk())
    for candidate in known:
        if (candidate.name, candidate.version) == (name, version):
            return candidate
    raise KeyError(f"no codec {name!r} of version {version}; known: {[(each.name, each.version) for each in known]}")
