"""Posts of another root than the final one are named, in time or late; everything else is not."""

from __future__ import annotations

from dataclasses import replace

from gonka_trainer.daemon.roots import late_roots, other_roots
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Standing
from gonka_trainer.round.records import Commit, Join, PlacedRecord, Record, StateRoot
from gonka_trainer.round.summary import Outcome, Posted, RoundSummary, Seat
from gonka_trainer.types import ZERO_DIGEST, Address, Height, Role, sha256

HONEST, LIAR, SILENT = (Address(bytes([n]) * 20) for n in (1, 2, 3))
RIGHT, JUNK = sha256(b"right"), sha256(b"junk")
LAST = RoundSummary(
    round=4,
    opened=Height(1),
    deadline=Height(10),
    base_root=ZERO_DIGEST,
    roster=(Seat(HONEST, 1, voice=True), Seat(LIAR, 1, voice=True)),
    commitments=(),
    closed=Height(10),
    attestations=(),
    frozen=Height(12),
    included=(),
    posts=(
        Posted(HONEST, RIGHT, ZERO_DIGEST, ZERO_DIGEST, Height(13)),
        Posted(LIAR, JUNK, ZERO_DIGEST, ZERO_DIGEST, Height(14)),
    ),
    ended=Height(14),
    outcome=Outcome.FINAL,
    root=RIGHT,
    reason="",
)
VOID = replace(LAST, outcome=Outcome.VOID, root=None)
SAID = f"round 4: posted root {JUNK.hex()}, final is {RIGHT.hex()}"


def members(*participants: Address) -> Membership:
    """Each speaks with a key whose bytes are its own plus 100."""
    keys = {}
    for who in participants:
        join = Join(who, Role.MEMBER, ZERO_DIGEST, b"h", 1, b"", Height(1))
        keys[key(who)] = KeyEntry(Height(1), join, Place(Height(1), 0, 0))
    return Membership(keys, {who: Standing(speaker=key(who)) for who in participants})


def key(participant: Address) -> Address:
    return Address(bytes(byte + 100 for byte in participant))


def late(who: Address, record: Record, last: RoundSummary | None = LAST) -> list[tuple[int, Address | None, str, bool]]:
    placed = PlacedRecord(0, 0, key(who), record)
    known = members(HONEST, LIAR, SILENT) if who != Address(bytes(20)) else members()
    return [(n.height, n.author, n.text, n.contradicts) for n in late_roots(last, known, Height(15), [placed])]


def post(number: int = 4) -> StateRoot:
    return StateRoot(number, JUNK, ZERO_DIGEST, ZERO_DIGEST)


def test_posts_that_counted() -> None:
    assert [(n.height, n.author, n.text, n.contradicts) for n in other_roots(LAST)] == [(14, LIAR, SAID, True)]
    assert list(other_roots(VOID)) == []


def test_late_posts() -> None:
    assert late(LIAR, post()) == [(15, LIAR, SAID, True)]
    assert late(LIAR, StateRoot(4, RIGHT, ZERO_DIGEST, ZERO_DIGEST)) == []
    assert late(LIAR, post(number=3)) == late(LIAR, post(number=5)) == []
    assert late(LIAR, Commit(4, JUNK)) == []
    assert late(SILENT, post()) == [], "it was not in the roster"
    assert late(Address(bytes(20)), post()) == [], "nobody knows this key"
    assert late(LIAR, post(), None) == late(LIAR, post(), VOID) == []
