"""The roster digest, from the model's own view of membership: the bytes that the core's `encode_roster` documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gonka_trainer.round.environment import Environment, environment_digest
from gonka_trainer.types import Address, Digest, sha256, u32, u64

if TYPE_CHECKING:
    from .model import Model
    from .model_members import Members, Place

NOWHERE = (0, 0, 0)


def roster_digest(
    model: Model,
    m: Members,
    seats: tuple[tuple[Address, int, bool], ...],
    environment: Environment,
    number: int,
    last_height: int,
) -> Digest:
    """Of membership at the end of block O - 1 and the seats drawn from it."""
    end = (last_height + 1, 0, 0)
    parts = (
        u32(number),
        u64(last_height),
        environment_digest(environment),
        last_final(model),
        many(who + u64(weight) + bytes([voice]) for who, weight, voice in seats),
        many(key + key_bytes(m, key) for key in sorted(authors(m))),
        many(who + standing(m, who, number) for who in sorted(m.touched)),
        many(sorted(model.ever())),
        many(verdicts(model, last_height)),
        many(sorted(about(*w[:3]) + bytes([w[3]]) for w in tallied(model))),
        many(challenges(model, end)),
    )
    return sha256(b"gonka-trainer/roster/1", *parts)


def last_final(model: Model) -> bytes:
    """The last final round's number, its root and the digest of the environment at its freeze."""
    out = b"\x00"
    for r in model.rounds:
        if r.final:
            assert r.root is not None
            assert r.frozen is not None
            out = b"\x01" + u32(r.number) + r.root + environment_digest(model.environment(r.frozen))
    return out


def many(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return u32(len(found)) + b"".join(found)


def authors(m: Members) -> set[Address]:
    return {owner for kind, owner in m.written_above if kind == "join"}


def place(at: Place) -> bytes:
    return u64(at[0]) + u32(at[1]) + u32(at[2])


def optional(who: Address | None) -> bytes:
    return b"\x00" if who is None else b"\x01" + who


def about(subject: Address, number: int, segment: int) -> bytes:
    return subject + u32(number) + u32(segment)


def key_bytes(m: Members, key: Address) -> bytes:
    written = u64(m.written_above["join", key])
    if key not in m.joins:
        return written + b"\x00" + place(NOWHERE)
    at, join = m.joins[key]
    record = b"\x01\x04" + join.participant + bytes([join.role]) + join.spki + short(join.host)
    record += join.port.to_bytes(2, "big") + short(join.software) + u64(join.written)
    return written + short(record) + place(at)


def short(value: bytes) -> bytes:
    return bytes([len(value)]) + value


def standing(m: Members, who: Address, number: int) -> bytes:
    last, ended = m.shut.get(who, (0, 0))
    excluded = b"\x01" + u32(last) if who in m.shut and ended is None else b"\x00"
    return b"".join(
        (
            optional(m.speaking.get(who)),
            optional(m.delegates.get(who)),
            u64(m.written_above.get(("delegate", who), 0)),
            place(m.delegated.get(who, NOWHERE)),
            place(m.revoked.get(who, NOWHERE)),
            place(m.left.get(who, NOWHERE)),
            u64(max(m.dropped.get(who, 0), m.served.get(who, 0))),
            u32(m.absences.get(who, 0)),
            excluded,
        )
    )


def verdicts(model: Model, upto: int) -> list[bytes]:
    first: dict[tuple[Address, Address, int, int], bytes] = {}
    for at, who, v in model.verdicts(upto):
        if v.outcome != 1 or model.answer_was_due(v, at):
            first.setdefault((who, v.subject, v.round, v.segment), bytes([v.outcome]) + v.evidence)
    return [key[0] + about(*key[1:]) + value for key, value in sorted(first.items())]


def tallied(model: Model) -> set[tuple[Address, int, int, int]]:
    out: set[tuple[Address, int, int, int]] = set()
    for r in model.rounds:
        if r.decides and r.ended is not None:
            out |= model.tally(r)
    return out


def challenges(model: Model, before: Place) -> list[bytes]:
    latest = {(who, *what): at[0] for at, who, what in model.challenges(before)}
    return [key[0] + about(*key[1:]) + u64(height) for key, height in sorted(latest.items())]
