"""The records' canonical bytes: golden vectors of every kind, and the codec's properties (docs/protocol.md 2)."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from round_strategies import RECORDS

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import records
from gonka_trainer.round.records import MAX_RECORD_BYTES, Record, decode_record, encode_record, from_text, to_text
from gonka_trainer.types import Role

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "records" / "records.json").read_text())
KINDS = {
    "Announce",
    "Delegate",
    "Revoke",
    "Join",
    "Leave",
    "Commit",
    "Attest",
    "StateRoot",
    "Missing",
    "Challenge",
    "VerdictRecord",
    "Secret",
    "Heartbeat",
}


def _record(vector: dict[str, Any]) -> Record:
    values = {k: bytes.fromhex(v) if isinstance(v, str) else v for k, v in vector["fields"].items()}
    if "role" in values:
        values["role"] = Role(values["role"])
    made: Record = getattr(records, vector["kind"])(**values)
    return made


@pytest.mark.parametrize("vector", VECTORS["accept"], ids=lambda v: v["name"])
def test_accepted(vector: dict[str, Any]) -> None:
    record = _record(vector)
    assert encode_record(record).hex() == vector["hex"]
    assert to_text(record) == vector["text"]
    assert decode_record(bytes.fromhex(vector["hex"])) == record
    assert from_text(vector["text"].encode()) == record


@pytest.mark.parametrize("vector", VECTORS["reject"], ids=lambda v: v["name"])
def test_rejected(vector: dict[str, str]) -> None:
    with pytest.raises(DecodeError):
        from_text(bytes.fromhex(vector["text"]))


def test_every_kind_has_a_vector() -> None:
    assert {v["kind"] for v in VECTORS["accept"]} == KINDS


@given(RECORDS)
def test_a_record_survives_the_way_there_and_back(record: Record) -> None:
    data = encode_record(record)
    assert len(data) <= MAX_RECORD_BYTES
    assert len(to_text(record)) <= 256
    back = decode_record(data)
    assert back == record
    assert type(back) is type(record)
    assert from_text(to_text(record).encode()) == record


@given(st.binary(max_size=260))
@example(b"")
def test_arbitrary_bytes_raise_only_their_own_error(data: bytes) -> None:
    for read in (decode_record, from_text):
        try:
            record = read(data)
        except DecodeError:
            continue
        assert data in {encode_record(record), to_text(record).encode()}


@given(RECORDS, st.integers(0, MAX_RECORD_BYTES * 8 - 1))
def test_a_flipped_bit_is_another_record_or_none(record: Record, bit: int) -> None:
    data = bytearray(encode_record(record))
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    try:
        other = decode_record(bytes(data))
    except DecodeError:
        return
    assert other != record
    assert encode_record(other) == bytes(data)


@given(st.integers(1, 13), st.binary(max_size=190))
def test_any_body_behind_a_known_kind_is_canonical_or_nothing(kind: int, body: bytes) -> None:
    data = bytes([1, kind]) + body
    try:
        record = decode_record(data)
    except DecodeError:
        return
    assert encode_record(record) == data


@given(RECORDS, st.sampled_from([b" ", b"\n", b"=", b"\x00", b"A", b"AAAA"]))
def test_text_around_a_record_makes_it_none(record: Record, extra: bytes) -> None:
    text = to_text(record).encode()
    for dirty in (extra + text, text + extra):
        with pytest.raises(DecodeError):
            from_text(dirty)


def test_fields_that_do_not_fit_are_refused() -> None:
    for vector in VECTORS["accept"]:
        record = _record(vector)
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            bad: Any = value + bytes(200) if isinstance(value, bytes) else 1 << 64
            with pytest.raises((ValueError, OverflowError)):
                encode_record(dataclasses.replace(record, **{field.name: bad}))


def test_the_longest_record_fits_a_memo() -> None:
    longest = max(len(bytes.fromhex(v["hex"])) for v in VECTORS["accept"])
    assert longest <= MAX_RECORD_BYTES
    assert len(base64.b64encode(bytes(MAX_RECORD_BYTES))) == 256
