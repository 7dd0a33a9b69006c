"""The header of a blob, its commitment, and the rules a header must keep (docs/protocol.md 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gonka_trainer.types import (
    ADDRESS_BYTES,
    DIGEST_BYTES,
    GOOD,
    Address,
    Digest,
    Fault,
    Verdict,
    lp,
    sha256,
    u16,
    u32,
    u64,
)
from gonka_trainer.wire import Reader

MAX_CHAIN_ID_BYTES: Final = 64
MAX_NODE_BYTES: Final = 64
MAX_CODEC_BYTES: Final = 16
MAX_HARDWARE_BYTES: Final = 128
SALT_BYTES: Final = 32
MAX_HEADER_BYTES: Final = 1024

_TAG: Final = b"gonka-trainer/commitment/1"
_BOUND: Final = ("chain_id", "run_id", "round", "participant", "base_root", "manifest_hash", "layout_root")
_BOUND_CODEC: Final = ("codec", "codec_version")


@dataclass(frozen=True, slots=True)
class Header:
    """What a commitment commits to, in the order of its preimage. Texts are printable ASCII, `salt` has 32 bytes."""

    chain_id: str
    run_id: Digest
    round: int
    participant: Address
    node: str
    base_root: Digest
    manifest_hash: Digest
    assignment_root: Digest
    layout_root: Digest
    codec: str
    codec_version: int
    payload_root: Digest
    leaf_count: int
    payload_bytes: int
    trace_root: Digest
    tokens: int
    inner_steps: int
    feedback_root: Digest
    hardware: str
    salt: bytes


@dataclass(frozen=True, slots=True)
class Expected:
    """What this host knows a header of the round must say."""

    chain_id: str
    run_id: Digest
    round: int
    participant: Address
    base_root: Digest
    manifest_hash: Digest
    layout_root: Digest
    codec: str
    codec_version: int
    max_inner_steps: int
    tokens_per_step: int


def encode_header(header: Header) -> bytes:
    """Return the fields in order: round u32, codec version u16, leaf count u32, payload bytes u64, tokens u64, inner
    steps u32, big-endian; digests, address and salt raw; texts behind a u32 length.

    Raises ValueError for a header that could not be read back (a text too long, a digest of another size).
    """
    data = b"".join(_parts(header))
    if decode_header(data) != header:
        raise ValueError("a field of the header is not in canonical form")
    return data


def decode_header(data: bytes) -> Header:
    """Read a header strictly: exact length, texts bounded and printable. Raises DecodeError for anything else."""
    reader = Reader(data)
    header = Header(
        chain_id=reader.text(MAX_CHAIN_ID_BYTES),
        run_id=_digest(reader),
        round=reader.integer(4),
        participant=Address(reader.raw(ADDRESS_BYTES)),
        node=reader.text(MAX_NODE_BYTES),
        base_root=_digest(reader),
        manifest_hash=_digest(reader),
        assignment_root=_digest(reader),
        layout_root=_digest(reader),
        codec=reader.text(MAX_CODEC_BYTES),
        codec_version=reader.integer(2),
        payload_root=_digest(reader),
        leaf_count=reader.integer(4),
        payload_bytes=reader.integer(8),
        trace_root=_digest(reader),
        tokens=reader.integer(8),
        inner_steps=reader.integer(4),
        feedback_root=_digest(reader),
        hardware=reader.text(MAX_HARDWARE_BYTES),
        salt=reader.raw(SALT_BYTES),
    )
    reader.end()
    return header


def commitment(header: Header) -> Digest:
    """Return C, the digest that goes on chain."""
    return commitment_of(encode_header(header))


def commitment_of(preamble: bytes) -> Digest:
    """Return C of an encoded header."""
    return sha256(_TAG, preamble)


def check_header(header: Header, expected: Expected) -> Verdict:
    """Return GOOD, or HEADER with the first rule that the header breaks."""
    for name in _BOUND + _BOUND_CODEC:
        got, wanted = getattr(header, name), getattr(expected, name)
        if got != wanted:
            return Verdict(Fault.HEADER, f"{name} is {_shown(got)}, not {_shown(wanted)}")
    if header.inner_steps > expected.max_inner_steps:
        return Verdict(Fault.HEADER, f"{header.inner_steps} inner steps, at most {expected.max_inner_steps} allowed")
    most = header.inner_steps * expected.tokens_per_step
    if header.tokens > most:
        return Verdict(Fault.HEADER, f"{header.tokens} tokens, at most {most} in {header.inner_steps} inner steps")
    return GOOD


def _parts(header: Header) -> tuple[bytes, ...]:
    return (
        lp(header.chain_id.encode()),
        header.run_id,
        u32(header.round),
        header.participant,
        lp(header.node.encode()),
        header.base_root,
        header.manifest_hash,
        header.assignment_root,
        header.layout_root,
        lp(header.codec.encode()),
        u16(header.codec_version),
        header.payload_root,
        u32(header.leaf_count),
        u64(header.payload_bytes),
        header.trace_root,
        u64(header.tokens),
        u32(header.inner_steps),
        header.feedback_root,
        lp(header.hardware.encode()),
        header.salt,
    )


def _digest(reader: Reader) -> Digest:
    return Digest(reader.raw(DIGEST_BYTES))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)
