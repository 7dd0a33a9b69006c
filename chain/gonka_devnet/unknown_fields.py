"""Refuse transactions with fields that nobody knows, by the wire form and the types' descriptors (ADR-020)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

NON_CRITICAL = 1 << 10
WIRE_TYPES = {0: "varint", 1: "fixed64", 2: "bytes", 3: "start_group", 4: "end_group", 5: "fixed32"}
FIXED = {1: 8, 5: 4}
MESSAGE, STRING, BYTES = 11, 9, 12
REPEATED = 3
FIXED64, FIXED32 = {1, 6, 16}, {2, 7, 15}
ANY_NAMES = {"google.protobuf.Any", "gonka_devnet.wire.AnyValue"}
DEEPEST = 64
Resolve = Callable[[str], Any]


class WireError(ValueError):
    """Bytes that are no message, or a field that the type does not have."""


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at this place and the place after it."""
    value = shift = 0
    while True:
        if place >= len(data):
            raise WireError("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise WireError("variable length integer overflow")


def _kind(field: Any) -> int:
    if field.type in FIXED64:
        return 1
    if field.type in FIXED32:
        return 5
    return 2 if field.type in {MESSAGE, STRING, BYTES} else 0


@cache
def _fields(descriptor: Any) -> dict[int, tuple[int, bool, Any]]:
    """Number to wire type, whether a packed list is allowed too, and the message type inside."""
    return {
        field.number: (_kind(field), field.label == REPEATED and _kind(field) != 2, field.message_type)
        for field in descriptor.fields
    }


def _value(data: bytes, place: int, kind: int) -> tuple[bytes, int]:
    if kind == 0:
        _, end = varint(data, place)
        return b"", end
    if kind == 2:
        length, place = varint(data, place)
        end = place + length
    elif kind in FIXED:
        end = place + FIXED[kind]
    else:
        raise WireError("groups are not supported")
    if end > len(data):
        raise WireError("unexpected EOF")
    return data[place:end], end


def any_parts(data: bytes) -> tuple[str, bytes]:
    """Return type URL and value of an Any's bytes."""
    url, value, place = b"", b"", 0
    while place < len(data):
        tag, place = varint(data, place)
        part, place = _value(data, place, tag & 7)
        if tag >> 3 == 1:
            url = part
        elif tag >> 3 == 2:
            value = part
    return url.decode("utf-8", "surrogateescape"), value


def refuse_unknown(descriptor: Any, data: bytes, resolve: Resolve, lenient: bool = False, depth: int = 0) -> None:
    """Raise WireError at the first field that the type, or one inside it, does not have.

    `resolve` gives the descriptor of a type URL, None for one that takes any fields, or raises WireError. With
    `lenient`, unknown fields whose number has bit 11 set are let through.
    """
    if depth > DEEPEST:
        raise WireError("message nested too deeply")
    fields, place = _fields(descriptor), 0
    while place < len(data):
        tag, place = varint(data, place)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 1 << 29 or kind not in WIRE_TYPES:
            raise WireError("invalid length; proto:\u00a0invalid field number")
        part, place = _value(data, place, kind)
        _field(descriptor, fields.get(number), number, kind, lenient)
        inner = fields[number][2] if number in fields else None
        if inner is not None:
            refuse_unknown(inner, part, resolve, lenient, depth + 1)
            if inner.full_name in ANY_NAMES:
                url, value = any_parts(part)
                packed = resolve(url)
                if packed is not None:
                    refuse_unknown(packed, value, resolve, lenient, depth + 1)


def _field(descriptor: Any, field: tuple[int, bool, Any] | None, number: int, kind: int, lenient: bool) -> None:
    """Check one field's number and wire type."""
    if field is None:
        if lenient and number & NON_CRITICAL:
            return
        name = descriptor.name if descriptor.full_name.startswith("cosmos.tx") else "types." + descriptor.name
        name = "tx." + name if descriptor.full_name.startswith("cosmos.tx") else name
        raise WireError(f'errUnknownField "*{name}": {{TagNum: {number}, WireType:"{WIRE_TYPES[kind]}"}}')
    if kind != field[0] and not (field[1] and kind == 2):
        raise WireError(
            f'errMismatchedWireType "*{descriptor.name}": {{TagNum: {number}, GotWireType: "{WIRE_TYPES[kind]}"}}'
        )
