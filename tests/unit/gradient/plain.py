"""The gradient's rules once more, in plain Python: integers, floats, struct and hashlib; nothing of the project.

Float32 by rounding a float64 result once: exact for +, -, * and / of float32 operands (53 >= 2 * 24 + 2 bits).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from decimal import Decimal, getcontext
from typing import Any

Floats = list[float]


def h(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def u32(value: int) -> bytes:
    return struct.pack(">I", value)


def u64(value: int) -> bytes:
    return struct.pack(">Q", value)


def text(value: str) -> bytes:
    return u32(len(value)) + value.encode()


def r(value: float) -> float:
    """Round to float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def floats(data: bytes) -> Floats:
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def packed(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def nearest_even(value: float) -> int:
    return round(value)


def encode(codec: str, values: Floats) -> tuple[bytes, float]:
    if codec == "f32":
        return packed([value + 0.0 for value in values]), sum_by_blocks(values)
    if codec == "bf16":
        halves = [nearest_bf16(value) + 0.0 for value in values]
        return b"".join(map(upper_half, halves)), sum_by_blocks(halves)
    if codec == "int4":
        return encode_int4(values)
    if codec == "topk":
        return encode_topk(values)
    scales, quants, total = [], [], 0.0
    for start in range(0, len(values), 128):
        block = values[start : start + 128]
        scale = r(max(abs(value) for value in block) / 127)
        row = [max(-127, min(127, nearest_even(r(value / scale)))) if scale else 0 for value in block]
        total += float(sum(q * q for q in row)) * (scale * scale)
        scales.append(scale)
        quants += row
    return packed(scales) + struct.pack(f"{len(quants)}b", *quants), total


def encode_int4(values: Floats) -> tuple[bytes, float]:
    scales, nibbles, total = b"", [], 0.0
    for start in range(0, len(values), 64):
        block = values[start : start + 64]
        scale = nearest_bf16(r(max(abs(value) for value in block) / 7))
        row = [max(-7, min(7, nearest_even(r(value / scale)))) if scale else 0 for value in block]
        total += float(sum(q * q for q in row)) * (scale * scale)
        scales += upper_half(scale)
        nibbles += [q & 15 for q in row]
    nibbles += [0] * (len(nibbles) % 2)
    return scales + bytes(low | high << 4 for low, high in zip(nibbles[0::2], nibbles[1::2], strict=True)), total


def encode_topk(values: Floats) -> tuple[bytes, float]:
    kept, low_bits = topk_sizes(len(values))
    chosen = sorted(sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:kept])
    low, high = 0, 0
    for place, index in enumerate(chosen):
        low |= index % 2**low_bits << place * low_bits
        high |= 1 << (index // 2**low_bits + place)
    data, total = encode_int4([values[i] for i in chosen])
    low_bytes, high_bytes = topk_bytes(len(values))
    return data + low.to_bytes(low_bytes, "little") + high.to_bytes(high_bytes, "little"), total


def decode_topk(data: bytes, elements: int) -> Floats:
    kept, low_bits = topk_sizes(elements)
    low_bytes, high_bytes = topk_bytes(elements)
    values = decode_int4(data[: len(data) - low_bytes - high_bytes], kept)
    low = int.from_bytes(data[len(data) - low_bytes - high_bytes : len(data) - high_bytes], "little")
    high = int.from_bytes(data[len(data) - high_bytes :], "little")
    places = [place for place in range(8 * high_bytes) if high >> place & 1]
    dense = [0.0] * elements
    for i, (place, value) in enumerate(zip(places, values, strict=True)):
        dense[(place - i) * 2**low_bits + (low >> i * low_bits) % 2**low_bits] = value
    return dense


def topk_sizes(elements: int) -> tuple[int, int]:
    """Entries, and low bits of an index: the largest l with 2**l * entries <= elements."""
    kept = (elements + 31) // 32
    low_bits = 0
    while kept and 2 ** (low_bits + 1) * kept <= elements:
        low_bits += 1
    return kept, low_bits


def topk_bytes(elements: int) -> tuple[int, int]:
    kept, low_bits = topk_sizes(elements)
    if not elements:
        return 0, 0
    return math.ceil(kept * low_bits / 8), math.ceil((kept + (elements - 1) // 2**low_bits) / 8)


def with_feedback(codec: str, base: Floats, local: Floats, residual: Floats, size: int) -> tuple[list[bytes], Floats]:
    """Return the chunks sent and the new residual."""
    values = [r(r(a - b) + c) for a, b, c in zip(base, local, residual, strict=True)]
    chunks = [values[start : start + size] for start in range(0, len(values), size)]
    sent = [encode(codec, chunk)[0] for chunk in chunks]
    decoded = [value for chunk, data in zip(chunks, sent, strict=True) for value in decode(codec, data, len(chunk))]
    return sent, [r(a - b) for a, b in zip(values, decoded, strict=True)]


def feedback_root(residual: Floats, size: int) -> bytes:
    if not any(residual):
        return bytes(32)
    return merkle(state_leaves({"chunk_elements": size}, packed(residual)))


def nearest_bf16(value: float) -> float:
    """Round to a multiple of the last of 8 bits, or of the smallest subnormal's 2**-133."""
    if value == 0:
        return value
    unit = 2.0 ** max(math.frexp(value)[1] - 8, -133)
    return math.copysign(round(value / unit) * unit, value)


def upper_half(value: float) -> bytes:
    data = struct.pack("<f", value)
    assert data[:2] == b"\0\0"
    return data[2:]


def sum_by_blocks(values: Floats) -> float:
    total = 0.0
    for start in range(0, len(values), 128):
        block = 0.0
        for value in values[start : start + 128]:
            block += value * value
        total += block
    return total


def decode(codec: str, data: bytes, elements: int) -> Floats:
    if codec == "f32":
        return floats(data)
    if codec == "bf16":
        return from_upper_halves(data)
    if codec == "int4":
        return decode_int4(data, elements)
    if codec == "topk":
        return decode_topk(data, elements)
    blocks = (elements + 127) // 128
    scales = floats(data[: 4 * blocks])
    quants = struct.unpack(f"{elements}b", data[4 * blocks :])
    return [r(q * scales[i // 128]) for i, q in enumerate(quants)]


def from_upper_halves(data: bytes) -> Floats:
    return [floats(b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]


def decode_int4(data: bytes, elements: int) -> Floats:
    blocks = (elements + 63) // 64
    scales, pairs = from_upper_halves(data[: 2 * blocks]), data[2 * blocks :]
    nibbles = [pairs[i // 2] >> 4 * (i % 2) & 15 for i in range(elements)]
    return [r((q - 16 if q > 7 else q) * scales[i // 64]) for i, q in enumerate(nibbles)]


def chunk_leaf(index: int, elements: int, total: float, data: bytes) -> bytes:
    return h(b"\x00", u32(index), u32(elements), struct.pack(">d", total), data)


def state_leaf(index: int, elements: int, data: bytes) -> bytes:
    return h(b"\x00", u32(index), u32(elements), data)


def merkle(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return h()
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return h(b"\x01", merkle(leaves[:half]), merkle(leaves[half:]))


def payload_root(leaf_list: bytes) -> bytes:
    return merkle([h(b"\x02", leaf_list[i : i + 44]) for i in range(0, len(leaf_list), 44)])


def layout_form(layout: dict[str, Any]) -> bytes:
    form = u32(layout["chunk_elements"]) + u32(len(layout["entries"]))
    for entry in layout["entries"]:
        form += text(entry["name"]) + u32(len(entry["shape"])) + b"".join(map(u64, entry["shape"]))
        form += text(entry["init"])
    return form


def layout_root(layout: dict[str, Any]) -> bytes:
    return h(b"gonka-trainer/layout/1", layout_form(layout))


def initial(layout: dict[str, Any], seed: bytes) -> Floats:
    key = int.from_bytes(h(b"gonka-trainer/initial/1", u32(len(seed)), seed)[:8], "big")
    values: Floats = []
    for entry in layout["entries"]:
        for _ in range(math.prod(entry["shape"])):
            values.append(_draw(entry["init"], key, len(values)))
    return values


def _draw(init: str, key: int, position: int) -> float:
    if init in {"zeros", "ones"}:
        return float(init == "ones")
    mask = 2**64 - 1
    z = (key + (position + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    getcontext().prec = 60
    step = r(float(Decimal(init.removeprefix("uniform:")) * Decimal(3).sqrt() / 2**24))
    return r((2 * (z >> 40) + 1 - 2**24) * step)


def state_preamble(layout: dict[str, Any], vectors: Sequence[bytes], tokens: int, steps: int) -> bytes:
    roots = [merkle(state_leaves(layout, vector)) for vector in vectors]
    return layout_root(layout) + b"".join(roots) + u64(tokens) + u32(steps)


def state_leaves(layout: dict[str, Any], vector: bytes) -> list[bytes]:
    size = 4 * layout["chunk_elements"]
    chunks = [vector[i : i + size] for i in range(0, len(vector), size)]
    return [state_leaf(i, len(chunk) // 4, chunk) for i, chunk in enumerate(chunks)]


def preamble(fields: dict[str, Any]) -> bytes:
    widths = {"round": 4, "codec_version": 2, "leaf_count": 4, "payload_bytes": 8, "tokens": 8, "inner_steps": 4}
    texts = {"chain_id", "node", "codec", "hardware"}
    data = b""
    for name, value in fields.items():
        if name in widths:
            data += value.to_bytes(widths[name], "big")
        else:
            data += text(value) if name in texts else bytes.fromhex(value)
    return data


def coefficients(hosts: Sequence[dict[str, Any]]) -> Floats:
    """Each host: good, tokens, weight, norm."""
    averaged = [host for host in hosts if host["good"] and host["tokens"]]
    total = sum(host["tokens"] for host in averaged)
    norms = sorted(host["norm"] for host in averaged)
    whole = sum(host["weight"] for host in averaged)
    median = next(n for n in norms if 2 * sum(x["weight"] for x in averaged if x["norm"] <= n) >= whole)
    clips = [median / host["norm"] if host["norm"] > median else 1.0 for host in hosts]
    return [
        r(float(host["tokens"]) * clip / float(total)) if host in averaged else 0.0
        for host, clip in zip(hosts, clips, strict=True)
    ]


def outer_step(
    parameters: Floats, momentum: Floats, gradients: Sequence[tuple[float, Floats]], rate: float, mu: float
) -> tuple[Floats, Floats]:
    """`gradients`: (coefficient, values), in order of addresses."""
    new_parameters, new_momentum = [], []
    for i, (theta, b) in enumerate(zip(parameters, momentum, strict=True)):
        mean = 0.0
        for coefficient, values in gradients:
            mean = r(mean + r(coefficient * values[i]))
        b = r(r(mu * b) + mean)
        new_momentum.append(b)
        new_parameters.append(r(theta - r(rate * r(mean + r(mu * b)))))
    return new_parameters, new_momentum
