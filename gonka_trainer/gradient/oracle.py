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
_BLOCK4 = 64
_PERIOD = 32


def reference_decode(codec: str, payload: Buffer, elements: int) -> F32:
    """Return the values of a canonical chunk of any codec."""
    data = as_bytes(payload).tobytes()
    if codec == "f32":
        return np.frombuffer(data, "<f4").astype(np.float32)
    if codec == "bf16":
        return _widened(data)
    if codec == "int4":
        scales4, quants4 = _int4_parts(data, elements)
        return quants4.astype(np.float32) * np.repeat(scales4, _BLOCK4)[:elements]
    if codec == "topk":
        indices, values = _topk_parts(data, elements)
        dense = np.zeros(elements, np.float32)
        dense[indices] = reference_decode("int4", values, indices.size)
        return dense
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


def reference_encode_bf16(values: F32) -> bytes:
    """Return the bf16 form of finite values."""
    return _halved(_nearest_bf16(values) + np.float32(0.0))


def reference_encode_int4(values: F32) -> bytes:
    """Return the int4 form of finite values."""
    blocks = [values[start : start + _BLOCK4] for start in range(0, values.size, _BLOCK4)]
    scales = [np.float32(np.max(np.abs(block)) / np.float32(7)) for block in blocks]
    scales = list(_nearest_bf16(np.array(scales, np.float32)))
    quants = [_quantised(block, scale, 7) for block, scale in zip(blocks, scales, strict=True)]
    nibbles = np.concatenate([*quants, np.zeros(values.size % 2, np.int8)]).astype(np.int16) % 16
    return _halved(np.array(scales, np.float32)) + (nibbles[0::2] + 16 * nibbles[1::2]).astype(np.uint8).tobytes()


def reference_encode_topk(values: F32) -> bytes:
    """Return the topk form of finite values: sort by |value| and index, keep the first, write indices bit by bit."""
    order = np.lexsort((np.arange(values.size), -np.abs(values)))
    indices = np.sort(order[: -(-values.size // _PERIOD)])
    low_bits = _low_bits(values.size)
    low = (indices[:, None] >> np.arange(low_bits)) & 1
    high = np.zeros(indices.size + (max(values.size - 1, 0) >> low_bits), np.uint8)
    high[(indices >> low_bits) + np.arange(indices.size)] = 1
    return reference_encode_int4(values[indices]) + _bits(low.reshape(-1)) + _bits(high)


def reference_sum_squares_topk(payload: Buffer, elements: int) -> float:
    """Return the exact sum of squares of a topk chunk: of its values as an int4 chunk."""
    indices, values = _topk_parts(as_bytes(payload).tobytes(), elements)
    return reference_sum_squares_int4(values, indices.size)


def reference_feedback(
    base: F32, local: F32, residual: F32, layout: Layout, codec: str, payloads: Sequence[Buffer]
) -> F32:
    """Return the residual that is left after these chunks of `base - local` and the residual were sent."""
    values = (base - local) + residual
    sizes = [layout.chunk_elements_of(index) for index in range(layout.chunk_count)]
    decoded = [reference_decode(codec, data, size) for data, size in zip(payloads, sizes, strict=True)]
    residual_out: F32 = values - np.concatenate([np.empty(0, np.float32), *decoded])
    return residual_out


def reference_sum_squares_int4(payload: Buffer, elements: int) -> float:
    """Return the exact sum of squares of an int4 chunk, with Python's integers and floats."""
    scales, quants = (part.tolist() for part in _int4_parts(as_bytes(payload).tobytes(), elements))
    total = 0.0
    for block, scale in enumerate(scales):
        squares = sum(q * q for q in quants[block * _BLOCK4 : (block + 1) * _BLOCK4])
        total += float(squares) * (scale * scale)
    return total


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


def _quantised(block: F32, scale: np.float32, most: int = 127) -> npt.NDArray[np.int8]:
    if scale == 0:
        return np.zeros(block.size, np.int8)
    quants: npt.NDArray[np.int8] = np.clip(np.rint(block / scale), -most, most).astype(np.int8)
    return quants


def _nearest_bf16(values: F32) -> F32:
    """Round to 8 significant bits, fewer below 2**-126: scale by a power of two, round to an integer, scale back."""
    exponents = np.maximum(np.frexp(values)[1], -125) - 8  # frexp's mantissas are in 0.5..1
    exact = values.astype(np.float64)
    nearest: F32 = np.ldexp(np.rint(np.ldexp(exact, -exponents)), exponents).astype(np.float32)
    return nearest


def _halved(values: F32) -> bytes:
    """Return the upper two bytes of each float32, which must hold all of it."""
    return values.astype("<f4").view("<u2")[1::2].tobytes()


def _widened(data: bytes) -> F32:
    lower_and_upper = np.zeros(len(data), "<u2")
    lower_and_upper[1::2] = np.frombuffer(data, "<u2")
    return lower_and_upper.view("<f4").astype(np.float32)


def _int4_parts(data: bytes, elements: int) -> tuple[F32, npt.NDArray[np.int8]]:
    scale_bytes = 2 * -(-elements // _BLOCK4)
    pairs = np.frombuffer(data, np.uint8, offset=scale_bytes)
    quants = np.stack([pairs % 16, pairs // 16], axis=1).reshape(-1)[:elements].astype(np.int8)
    quants[quants > 7] -= 16
    return _widened(data[:scale_bytes]), quants


def _low_bits(elements: int) -> int:
    return int(np.log2(elements // -(-elements // _PERIOD))) if elements else 0


def _bits(values: npt.NDArray[np.integer]) -> bytes:
    return np.packbits(values.astype(np.uint8), bitorder="little").tobytes()


def _topk_parts(data: bytes, elements: int) -> tuple[npt.NDArray[np.int64], bytes]:
    """Return the indices and the values' bytes."""
    kept, low_bits = -(-elements // _PERIOD), _low_bits(elements)
    values_bytes = 2 * -(-kept // _BLOCK4) + (kept + 1) // 2
    low_bytes = (kept * low_bits + 7) // 8
    rest = np.frombuffer(data, np.uint8, offset=values_bytes)
    low = np.unpackbits(rest[:low_bytes], bitorder="little")[: kept * low_bits].reshape(kept, low_bits)
    places = np.flatnonzero(np.unpackbits(rest[low_bytes:], bitorder="little"))
    upper = places - np.arange(kept)
    return (upper << low_bits) + (low.astype(np.int64) << np.arange(low_bits)).sum(axis=1), data[:values_bytes]
