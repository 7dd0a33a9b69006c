"""The same arithmetic in plain numpy, one operation at a time: slow, obvious, and what the kernels are held to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gonka_trainer.gradient.aggregate import Contribution, coefficients
from gonka_trainer.gradient.arrays import F32, Buffer, as_bytes
from gonka_trainer.gradient.layout import Layout
from gonka_trainer.gradient.outer import OuterSettings

_BLOCK = 128


def reference_decode(codec: str, payload: Buffer, elements: int) -> F32:
    """Return the values of a canonical chunk of the codec `f32` or `int8`."""
    data = as_bytes(payload).tobytes()
    if codec == "f32":
        return np.frombuffer(data, "<f4").astype(np.float32)
    blocks = -(-elements // _BLOCK)
    scales = np.frombuffer(data, "<f4", count=blocks).astype(np.float32)
    quants = np.frombuffer(data, np.int8, offset=4 * blocks).astype(np.float32)
    return quants * np.repeat(scales, _BLOCK)[:elements]


def reference_encode_int8(values: F32) -> bytes:
    """Return the int8 form of finite values."""
    blocks = [values[start : start + _BLOCK] for start in range(0, values.size, _BLOCK)]
    scales = [np.float32(np.max(np.abs(block)) / np.float32(127)) for block in blocks]
    quants = [_quantised(block, scale) for block, scale in zip(blocks, scales, strict=True)]
    return np.array(scales, "<f4").tobytes() + b"".join(each.tobytes() for each in quants)


def reference_sum_squares_int8(payload: Buffer, elements: int) -> float:
    """Return the exact sum of squares of an int8 chunk, with Python's integers and floats."""
    data, blocks = as_bytes(payload).tobytes(), -(-elements // _BLOCK)
    scales = np.frombuffer(data, "<f4", count=blocks).tolist()
    quants = np.frombuffer(data, np.int8, offset=4 * blocks).tolist()
    total = 0.0
    for block, scale in enumerate(scales):
        squares = sum(q * q for q in quants[block * _BLOCK : (block + 1) * _BLOCK])
        total += float(squares) * (scale * scale)
    return total


def reference_sum_squares_f32(values: F32) -> float:
    """Return the exact sum of squares of values in the f32 codec's order, with Python's floats."""
    floats: list[float] = values.tolist()
    total = 0.0
    for start in range(0, len(floats), _BLOCK):
        squares = 0.0
        for value in floats[start : start + _BLOCK]:
            squares += value * value
        total += squares
    return total


def reference_gradient(contribution: Contribution, layout: Layout, codec: str) -> F32:
    """Return a blob's whole decoded vector."""
    data, index = as_bytes(contribution.payload), contribution.index
    chunks = [data[index.offset(i) : index.offset(i) + index.chunk_bytes(i)] for i in range(index.count)]
    decoded = [reference_decode(codec, chunk, layout.chunk_elements_of(i)) for i, chunk in enumerate(chunks)]
    return np.concatenate([np.empty(0, np.float32), *decoded])


def reference_step(
    parameters: F32, momentum: F32, gradients: Sequence[tuple[np.float32, F32]], settings: OuterSettings
) -> tuple[F32, F32]:
    """Return parameters and momentum after a step over (coefficient, values), already in order of addresses."""
    if all(coefficient == 0 for coefficient, _ in gradients):
        return parameters.copy(), momentum.copy()
    mean: npt.NDArray[np.float32] = np.zeros(parameters.size, np.float32)
    for coefficient, values in gradients:
        mean = mean + coefficient * values
    velocity = settings.momentum * momentum + mean
    update = settings.learning_rate * (mean + settings.momentum * velocity)
    return parameters - update, velocity


def reference_round(
    parameters: F32,
    momentum: F32,
    contributions: Sequence[Contribution],
    settings: OuterSettings,
    layout: Layout,
    codec: str,
) -> tuple[F32, F32]:
    """Return parameters and momentum after a round: coefficients, decoding, mean and outer step."""
    ordered = sorted(contributions, key=lambda each: each.participant)
    good = [(a, each) for a, each in zip(coefficients(ordered), ordered, strict=True) if each.tokens > 0]
    gradients = [(a, reference_gradient(each, layout, codec)) for a, each in good]
    return reference_step(parameters, momentum, gradients, settings)


def _quantised(block: F32, scale: np.float32) -> npt.NDArray[np.int8]:
    if scale == 0:
        return np.zeros(block.size, np.int8)
    quants: npt.NDArray[np.int8] = np.clip(np.rint(block / scale), -127, 127).astype(np.int8)
    return quants
