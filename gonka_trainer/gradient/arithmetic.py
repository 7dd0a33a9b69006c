"""Proof that this machine computes as the protocol says: float32, to nearest even, subnormals kept, nothing fused.

A library built with -ffast-math sets flush-to-zero for the thread that loads it and for those started later
Then the momentum of an untouched weight ends at another value and this host disagrees with all others. The
mode belongs to a thread and can change at any time, so each task proves it around its own work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Final

import numpy as np

from gonka_trainer.errors import MachineError
from gonka_trainer.gradient import fused, halves, kernels, kernels_topk
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.kernels_int4 import BLOCK4

ALL_CODECS: Final = ("f32", "bf16", "int8", "int4", "topk")
"""Names of the codecs that have a step."""

_DENSE: Final = {"topk": "f32"}  # whose kernel ends a step of topk
_REMEDY: Final = (
    "a library built with -ffast-math may be loaded in this process: unload it (look at LD_PRELOAD and extensions)"
)
_TINY: Final = 2.0**-126  # the smallest normal number
_STEP: Final = 2.0**-23  # the distance from 1 to the next number

# Kept as bits, so that no conversion stands between what is computed and what is expected.
_LEFT: Final = np.array([_TINY, _TINY / 4, -_TINY, 2.0**-140, 1.5], np.float32)
_RIGHT: Final = np.array([0.25, 4.0, 2.0**-23, 2.0**60, 1.5], np.float32)
_PRODUCT_BITS: Final = np.array([0x00200000, 0x00800000, 0x80000001, 0x17800000, 0x40100000], np.uint32)
_AUGEND: Final = np.array([1.0, 1.0, -1.0, -1.0, 2.0**-149], np.float32)
_ADDEND: Final = np.array([_STEP / 2, _STEP * 0.75, -_STEP / 2, -_STEP * 0.75, 2.0**-149], np.float32)
_SUM_BITS: Final = np.array([0x3F800000, 0x3F800001, 0xBF800000, 0xBF800001, 0x00000002], np.uint32)


# _A * _A rounds to _SQUARE; where an addition of -_SQUARE is fused with the product, 2**-24 is left instead of 0.
_A: Final = np.float32(1 + 2.0**-12)
_SQUARE: Final = np.float32(1 + 2.0**-11)
_ZERO: Final = np.float32(0)
_ONE: Final = np.float32(1)
# A value that every codec has, and a coefficient with which its product is not exact: 2**-30 is lost.
_VALUE: Final = np.float32(1 + 2.0**-7)
_FACTOR: Final = np.float32(1 + 2.0**-23)
_PROBED: Final = 17 * kernels.BLOCK + 3  # more than two tiles: vector body and scalar rest


@dataclass(frozen=True, slots=True)
class _Probe:
    """Inputs of a step of which nothing is left in parameters (0) or momentum (1), unless something is fused."""

    value: np.float32
    coefficients: tuple[np.float32, ...]
    parameters: np.float32
    momentum: np.float32
    rate: np.float32
    mu: np.float32
    left_in: int


_MEAN: Final = "mean + a * g"
_PROBES: Final = {
    _MEAN: _Probe(_VALUE, (-_FACTOR, _FACTOR), _ZERO, _ZERO, _ZERO, _ZERO, 1),
    "mu * b + mean": _Probe(_ONE, (-_SQUARE,), _ZERO, _A, _ZERO, _A, 1),
    # b becomes _A: _A * (2 + 2**-12) rounds to _A + _SQUARE.
    "mean + mu * b": _Probe(_ONE, (-_SQUARE,), _ZERO, np.float32(2 + 2.0**-12), np.float32(-1), _A, 0),
    "theta - lr * step": _Probe(_ONE, (_A,), _SQUARE, _ZERO, _A, _ZERO, 0),
}


def prove_thread() -> None:
    """Raise MachineError unless numpy and compiled code keep subnormals and round to nearest even in this thread."""
    product, total = np.empty(5, np.float32), np.empty(5, np.float32)
    kernels.products()(_LEFT, _RIGHT, product)
    kernels.sums()(_AUGEND, _ADDEND, total)
    _expect("compiled product", product, _PRODUCT_BITS)
    _expect("compiled sum", total, _SUM_BITS)
    _expect("numpy product", np.multiply(_LEFT, _RIGHT), _PRODUCT_BITS)
    _expect("numpy sum", np.add(_AUGEND, _ADDEND), _SUM_BITS)


def prove_kernels(codecs: Collection[str] = ALL_CODECS) -> None:
    """Raise MachineError when a kernel of these codecs contracts a multiply and an add to one rounding.

    Each is compiled for it, which takes about a second, once in a process. KeyError for a codec that there is not.
    """
    if sys.byteorder != "little":
        raise MachineError("this machine is big-endian; blobs and states are little-endian", "use another machine")
    for name in codecs:
        kernel, chunk = _STEPS[_DENSE.get(name, name)]
        _prove_step(name, kernel(), chunk)
    if "topk" in codecs:
        _prove_sparse(kernels_topk.add())


def prove_default_mode(threads: int | None = None, codecs: Collection[str] = ALL_CODECS) -> None:
    """Prove the codecs' kernels, and the mode in this thread and in `threads` new ones at once.

    MachineError if it differs.
    """
    prove_thread()
    prove_kernels(codecs)
    count = threads or 1
    barrier = Barrier(count)  # holds each thread until all run, so that each is really one of its own

    def prove(_: int) -> None:
        barrier.wait()
        prove_thread()

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(prove, range(count)))


def _chunk_f32(value: np.float32) -> bytes:
    """Return a chunk of `_PROBED` elements of that value, in the codec's form; so do the others."""
    return np.full(_PROBED, value, np.float32).tobytes()


def _chunk_bf16(value: np.float32) -> bytes:
    return halves.rounded_halves(np.full(_PROBED, value, np.float32)).tobytes()


def _chunk_int8(value: np.float32) -> bytes:
    return np.full(-(-_PROBED // kernels.BLOCK), value, np.float32).tobytes() + bytes([1]) * _PROBED


def _chunk_int4(value: np.float32) -> bytes:
    scales = halves.rounded_halves(np.full(-(-_PROBED // BLOCK4), value, np.float32))
    return scales.tobytes() + bytes([0x11]) * (_PROBED // 2) + bytes([0x01]) * (_PROBED % 2)


_STEPS: Final[dict[str, tuple[Callable[[], Any], Callable[[np.float32], bytes]]]] = {
    "f32": (fused.step_f32, _chunk_f32),
    "bf16": (fused.step_bf16, _chunk_bf16),
    "int8": (fused.step_int8, _chunk_int8),
    "int4": (fused.step_int4, _chunk_int4),
}


def _prove_step(name: str, kernel: Any, chunk: Callable[[np.float32], bytes]) -> None:
    """Try each multiply-add of a step on a chunk of equal values."""
    for place, probe in _PROBES.items():
        data = np.frombuffer(chunk(probe.value), np.uint8)
        state = np.full(_PROBED, probe.parameters, np.float32), np.full(_PROBED, probe.momentum, np.float32)
        coefficients = np.array(probe.coefficients, np.float32)
        fused.run(kernel, [data] * coefficients.size, coefficients, state, state, probe.rate, probe.mu)
        if state[probe.left_in].any():
            _refuse(name, place)


def _prove_sparse(kernel: Any) -> None:
    """Try the one multiply-add that the topk codec has of its own; its step is otherwise the f32 codec's."""
    mean, indices = np.zeros(_PROBED, np.float32), np.arange(_PROBED, dtype=np.uint32)
    for coefficient in _PROBES[_MEAN].coefficients:
        kernel(mean, indices, np.full(_PROBED, _VALUE, np.float32), coefficient)
    if mean.any():
        _refuse("topk", _MEAN)


def _refuse(name: str, place: str) -> None:
    raise MachineError(
        f"the compiled {name} step fuses multiply and add in {place}: other hosts do not",
        "report the processor and the numba version; NUMBA_CPU_NAME=generic may help",
    )


def _expect(what: str, got: F32, bits: np.typing.NDArray[np.uint32]) -> None:
    if not np.array_equal(got.view(np.uint32), bits):
        raise MachineError(f"floating point is not in its default mode: {what} is {got.tolist()}", _REMEDY)
