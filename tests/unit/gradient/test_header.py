from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.errors import DecodeError
from gonka_trainer.gradient.header import (
    MAX_HEADER_BYTES,
    Header,
    check_header,
    commitment,
    decode_header,
    encode_header,
)
from gonka_trainer.types import Fault, sha256

from .build import address, expected_of, flat, header_of

HEADER = replace(header_of(flat(10, 4)), node="n1", hardware="cpu")

CHANGES: dict[str, Any] = {
    "chain_id": "other-chain",
    "round": 4,
    "participant": address(7),
    "node": "n2",
    "codec": "f32",
    "codec_version": 2,
    "leaf_count": 9,
    "payload_bytes": 9,
    "tokens": 101,
    "inner_steps": 11,
    "hardware": "gpu",
    "salt": bytes([1]) * 32,
}


def changed(name: str) -> Header:
    return replace(HEADER, **{name: CHANGES.get(name, sha256(name.encode()))})


def test_every_field_is_bound_by_the_commitment() -> None:
    names = [field.name for field in fields(Header)]
    digests = {commitment(changed(name)) for name in names} | {commitment(HEADER)}
    assert len(digests) == len(names) + 1


def test_texts_cannot_be_shifted_into_each_other() -> None:
    assert commitment(replace(HEADER, node="ab", hardware="c")) != commitment(replace(HEADER, node="a", hardware="bc"))


ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=16)
DIGESTS = st.binary(min_size=32, max_size=32)


@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    kinds = {"chain_id": ASCII, "node": ASCII, "codec": ASCII, "hardware": ASCII}
    kinds |= {"participant": st.binary(min_size=20, max_size=20), "codec_version": st.integers(0, 2**16 - 1)}
    kinds |= {name: st.integers(0, 2**32 - 1) for name in ("round", "leaf_count", "inner_steps")}
    kinds |= {name: st.integers(0, 2**64 - 1) for name in ("payload_bytes", "tokens")}
    header = Header(**{field.name: data.draw(kinds.get(field.name, DIGESTS)) for field in fields(Header)})
    encoded = encode_header(header)
    assert decode_header(encoded) == header
    assert len(encoded) <= MAX_HEADER_BYTES


@given(st.binary(max_size=700))
def test_arbitrary_bytes_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_header(data)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_gives_another_header_or_none(at: int, value: int) -> None:
    encoded = bytearray(encode_header(HEADER))
    at %= len(encoded)
    if encoded[at] == value:
        return
    encoded[at] = value
    try:
        header = decode_header(bytes(encoded))
    except DecodeError:
        return
    assert header != HEADER
    assert encode_header(header) == encoded


def test_truncated_and_spare_bytes_are_refused() -> None:
    encoded = encode_header(HEADER)
    for wrong in [encoded + b"\0", *(encoded[:size] for size in range(len(encoded)))]:
        with pytest.raises(DecodeError):
            decode_header(wrong)


@pytest.mark.parametrize(
    "fields_",
    [{"node": "n" * 65}, {"node": "é"}, {"hardware": "a\nb"}, {"salt": bytes(31)}, {"base_root": bytes(33)}],
    ids=str,
)
def test_a_header_that_could_not_be_read_back_is_not_written(fields_: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        encode_header(replace(HEADER, **fields_))


def test_the_expected_header_is_good() -> None:
    assert check_header(HEADER, expected_of(HEADER)).good


BOUND = [
    "chain_id",
    "run_id",
    "round",
    "participant",
    "base_root",
    "manifest_hash",
    "layout_root",
    "codec",
    "codec_version",
]


@pytest.mark.parametrize("name", BOUND)
def test_a_replayed_or_copied_header_is_a_breach(name: str) -> None:
    verdict = check_header(changed(name), expected_of(HEADER))
    assert verdict.fault is Fault.HEADER
    assert verdict.detail.startswith(name + " ")


@pytest.mark.parametrize(
    ("steps", "tokens", "good"),
    [
        (20, 20_000, True),
        (21, 0, False),
        (20, 20_001, False),
        (0, 0, True),
        (0, 1, False),
        (2**32 - 1, 2**64 - 1, False),
    ],
)
def test_steps_and_tokens_are_bounded(steps: int, tokens: int, good: bool) -> None:
    header = replace(HEADER, inner_steps=steps, tokens=tokens)
    assert check_header(header, expected_of(HEADER)).good is good
