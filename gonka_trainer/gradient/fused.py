"""One pass over memory: decode every host's chunk, mean, Nesterov. The loop that the outer step spends its time in.

A chunk is worked off in tiles that stay in the first-level cache. The number of hosts varies, so a kernel gets the
addresses of their payloads; it reads nothing outside of `encoded_bytes(elements)` behind each. Old values go through
scratch memory: the state may then be updated in place and the compiler still vectorises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numba
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from gonka_trainer.gradient.arrays import F32, U8
from gonka_trainer.gradient.kernels import BLOCK, compiled
from gonka_trainer.gradient.kernels_int4 import BLOCK4

_TILE: Final = 8 * BLOCK

_F32: Final = types.Array(types.float32, 1, "C")
_F32_IN: Final = types.Array(types.float32, 1, "C", readonly=True)
_SIGNATURE: Final = types.void(
    types.Array(types.uint64, 1, "C"), *[_F32_IN] * 3, _F32, _F32, types.float32, types.float32, *[_F32] * 3
)


def run(
    kernel: Any,
    payloads: Sequence[U8],
    coefficients: F32,
    former: tuple[F32, F32],
    new: tuple[F32, F32],
    rate: np.float32,
    mu: np.float32,
) -> None:
    """Step one chunk: `former` and `new` are (parameters, momentum) and may be the same arrays.

    Each payload has exactly the codec's size for the chunk, and has been checked; coefficients are in the same order.
    """
    kept = [payload if payload.ctypes.data % 4 == 0 else payload.copy() for payload in payloads]  # alive to the end
    addresses = np.array([payload.ctypes.data for payload in kept], np.uint64)
    kernel(addresses, coefficients, *former, *new, rate, mu, *np.empty((3, _TILE), np.float32))


@cache
def step_int8() -> Any:
    """Return the kernel for int8 chunks."""
    return compiled(_SIGNATURE, _step_with(numba.njit(_add_int8)))


@cache
def step_f32() -> Any:
    """Return the kernel for f32 chunks."""
    return compiled(_SIGNATURE, _step_with(numba.njit(_add_f32)))


@cache
def step_bf16() -> Any:
    """Return the kernel for bf16 chunks."""
    return compiled(_SIGNATURE, _step_with(numba.njit(_add_bf16)))


@cache
def step_int4() -> Any:
    """Return the kernel for int4 chunks."""
    return compiled(_SIGNATURE, _step_with(numba.njit(_add_int4)))


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.uint64), generate


def _add_int8(mean: Any, address: Any, elements: Any, start: Any, coefficient: Any) -> None:
    first = start // BLOCK
    blocks = (mean.size + BLOCK - 1) // BLOCK
    scales = carray(_pointer(address + np.uint64(4 * first)), blocks, np.float32)
    behind = np.uint64(4 * ((elements + BLOCK - 1) // BLOCK) + start)
    quants = carray(_pointer(address + behind), mean.size, np.int8)
    for block in range(blocks):
        scale = scales[block]
        out = mean[block * BLOCK : block * BLOCK + BLOCK]
        values = quants[block * BLOCK : block * BLOCK + BLOCK]
        for j in range(out.size):
            out[j] = out[j] + coefficient * (np.float32(values[j]) * scale)


def _add_f32(mean: Any, address: Any, elements: Any, start: Any, coefficient: Any) -> None:
    values = carray(_pointer(address + np.uint64(4 * start)), mean.size, np.float32)
    for j in range(mean.size):
        mean[j] = mean[j] + coefficient * values[j]


def _add_bf16(mean: Any, address: Any, elements: Any, start: Any, coefficient: Any) -> None:
    halves = carray(_pointer(address + np.uint64(2 * start)), mean.size, np.uint16)
    for j in range(mean.size):
        mean[j] = mean[j] + coefficient * np.uint32(np.uint32(halves[j]) << np.uint32(16)).view(np.float32)


def _add_int4(mean: Any, address: Any, elements: Any, start: Any, coefficient: Any) -> None:
    first = start // BLOCK4
    blocks = (mean.size + BLOCK4 - 1) // BLOCK4
    halves = carray(_pointer(address + np.uint64(2 * first)), blocks, np.uint16)
    behind = np.uint64(2 * ((elements + BLOCK4 - 1) // BLOCK4) + start // 2)
    pairs = carray(_pointer(address + behind), (mean.size + 1) // 2, np.uint8)
    for block in range(blocks):
        scale = np.uint32(np.uint32(halves[block]) << np.uint32(16)).view(np.float32)
        out = mean[block * BLOCK4 : block * BLOCK4 + BLOCK4]
        packed = pairs[block * (BLOCK4 // 2) : block * (BLOCK4 // 2) + BLOCK4 // 2]
        for j in range(out.size // 2):
            pair = np.int32(packed[j])
            low, high = ((pair & 15) ^ 8) - 8, ((pair >> 4) ^ 8) - 8
            out[2 * j] = out[2 * j] + coefficient * (np.float32(low) * scale)
            out[2 * j + 1] = out[2 * j + 1] + coefficient * (np.float32(high) * scale)
        if out.size & 1:
            low = ((np.int32(packed[out.size // 2]) & 15) ^ 8) - 8
            out[out.size - 1] = out[out.size - 1] + coefficient * (np.float32(low) * scale)


def _step_with(add: Any) -> Any:
    def step(
        addresses: Any,
        coefficients: Any,
        old_parameters: Any,
        old_momentum: Any,
        parameters: Any,
        momentum: Any,
        rate: Any,
        mu: Any,
        mean_tile: Any,
        parameters_tile: Any,
        momentum_tile: Any,
    ) -> None:
        elements = parameters.size
        for start in range(0, elements, _TILE):
            stop = min(start + _TILE, elements)
            mean = mean_tile[: stop - start]
            for j in range(mean.size):
                mean[j] = np.float32(0.0)
            for host in range(coefficients.size):
                add(mean, addresses[host], elements, start, coefficients[host])
            theta, velocity = parameters_tile[: stop - start], momentum_tile[: stop - start]
            old_theta, old_velocity = old_parameters[start:stop], old_momentum[start:stop]
            for j in range(mean.size):
                theta[j] = old_theta[j]
            for j in range(mean.size):
                velocity[j] = old_velocity[j]
            new_theta, new_velocity = parameters[start:stop], momentum[start:stop]
            for j in range(mean.size):
                moved = mu * velocity[j] + mean[j]
                new_velocity[j] = moved
                new_theta[j] = theta[j] - rate * (mean[j] + mu * moved)

    return step
