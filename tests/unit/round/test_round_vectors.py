"""Golden vectors: list, environment and roster digests, bitmaps, and whole rounds from events to summaries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from round_trace import FILE, document, event_from_json, plain, rules, story

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import machine
from gonka_trainer.round.bitmap import pack, unpack
from gonka_trainer.round.environment import (
    NO_EPOCHS,
    Environment,
    EpochSchedule,
    decode_environment,
    encode_environment,
    environment_digest,
)
from gonka_trainer.round.inclusion import list_digest
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Segment, Standing
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Join
from gonka_trainer.round.roster import draw
from gonka_trainer.round.roster_bytes import RosterState, Settled, decode_roster, encode_roster
from gonka_trainer.types import Address, Digest, Height, Role, sha256

DIGESTS = json.loads((Path(__file__).parents[2] / "vectors" / "round" / "digests.json").read_text())
TRACE = json.loads(FILE.read_text())


def _name(vector: dict[str, Any]) -> str:
    return str(vector.get("name", vector.get("hex")))


@pytest.mark.parametrize("vector", DIGESTS["list_digests"], ids=_name)
def test_list_digest(vector: dict[str, Any]) -> None:
    committers = [Address(bytes.fromhex(a)) for a in vector["committers"]]
    found = list_digest(Digest(bytes.fromhex(vector["close_hash"])), committers)
    assert found.hex() == vector["list_digest"]
    assert list_digest(Digest(bytes.fromhex(vector["close_hash"])), committers[::-1]) == found


@pytest.mark.parametrize("vector", DIGESTS["environments"], ids=_name)
def test_environment(vector: dict[str, Any]) -> None:
    index, start, *rest = vector["schedule"]
    weights = tuple((Address(bytes.fromhex(a)), w) for a, w in vector["weights"])
    environment = Environment(EpochSchedule(index, Height(start), *rest), weights)
    assert encode_environment(environment).hex() == vector["preimage"]
    assert environment_digest(environment).hex() == vector["digest"]
    assert decode_environment(bytes.fromhex(vector["preimage"])) == environment


@pytest.mark.parametrize("vector", DIGESTS["environments_rejected"], ids=_name)
def test_environment_rejected(vector: dict[str, str]) -> None:
    with pytest.raises(DecodeError):
        decode_environment(bytes.fromhex(vector["preimage"]))


def _person(n: int) -> Address:
    return Address(bytes([n]) * 20)


def _join(participant: int, role: Role, host: bytes, written: int) -> Join:
    return Join(_person(participant), role, sha256(b"spki"), host, 9000, b"vector 1", Height(written))


def test_roster_digest() -> None:
    about, first, second, hot = Segment(_person(2), 4, 6), _person(1), _person(2), _person(9)
    members = Membership(
        keys={
            hot: KeyEntry(Height(31), _join(2, Role.VALIDATOR, b"", 30), Place(Height(32), 5, 0)),
            first: KeyEntry(Height(11), _join(1, Role.MEMBER, b"one.example", 11), Place(Height(12), 3, 1)),
            second: KeyEntry(Height(21)),
        },
        participants={
            _person(3): Standing(None, _person(8), Height(40), Place(Height(41), 0, 0)),
            first: Standing(first, absence=1),
            second: Standing(
                speaker=hot,
                delegate=hot,
                written=Height(29),
                delegated=Place(Height(30), 1, 0),
                revoked=Place(Height(27), 0, 0),
                left=Place(Height(22), 0, 7),
                barred=Height(800),
                absence=3,
                excluded=6,
            ),
        },
        ever=frozenset([second, first]),
        verdicts={(first, about): (2, sha256(b"evidence"))},
        tallied=frozenset([(about, 2)]),
        challenges={(first, about): Height(700)},
    )
    environment = Environment(NO_EPOCHS, ((first, 70), (second, 30)))
    chosen = replace(rules(), equal_members=None, min_weight=100)
    settled = Settled(3, sha256(b"root"), sha256(b"environment"))
    drawn = draw(chosen, members, environment, 5, Height(900), settled)
    vector = DIGESTS["roster"]
    assert drawn.preimage.hex() == vector["preimage"]
    assert drawn.digest.hex() == vector["digest"]
    covered = RosterState(5, Height(900), environment_digest(environment), settled, drawn.seats, members)
    assert decode_roster(drawn.preimage) == covered
    assert encode_roster(covered) == drawn.preimage


@pytest.mark.parametrize("vector", DIGESTS["rosters_rejected"], ids=_name)
def test_roster_rejected(vector: dict[str, str]) -> None:
    with pytest.raises(DecodeError):
        decode_roster(bytes.fromhex(vector["preimage"]))


@pytest.mark.parametrize("vector", DIGESTS["bitmaps"], ids=_name)
def test_bitmap(vector: dict[str, Any]) -> None:
    packed = pack(vector["positions"], vector["count"])
    assert packed.hex() == vector["hex"]
    assert unpack(packed, vector["count"]) == set(vector["positions"])


@pytest.mark.parametrize("vector", DIGESTS["bitmaps_rejected"], ids=lambda v: f"{v['hex']} of {v['count']}")
def test_bitmap_rejected(vector: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        unpack(bytes.fromhex(vector["hex"]), vector["count"])
    with pytest.raises(ValueError, match="position"):
        pack([vector["count"]], vector["count"])


def test_the_trace_gives_its_summaries() -> None:
    assert plain(rules()) == TRACE["params"]
    local = Local(None, None)
    state, told, notes = machine.initial(rules(), local), [], []
    for value in TRACE["events"]:
        before = state.last
        state, _ = machine.step(rules(), local, state, event_from_json(value))
        notes += [note.text for note in state.notes]
        if state.last is not None and state.last != before:
            told.append(plain(state.last))
    assert told == TRACE["summaries"]
    assert notes == TRACE["notes"]


def test_the_trace_is_the_story_that_it_tells() -> None:
    reader = story()
    assert document(reader, reader.summaries) == TRACE


def test_the_traces_figures_are_those_that_the_rules_give() -> None:
    """The golden file against figures worked out by hand."""
    zero, one, two, three, four = TRACE["summaries"]
    name = {bytes([n]).hex() * 20: n for n in range(1, 10)}
    assert (zero["opened"], zero["deadline"]) == (4, 16)  # 5, 6 | 7 .. 12 are PoC and its margin | 13, 14, 15, 16
    assert (zero["closed"], zero["frozen"], zero["ended"]) == (5, 13, 15)
    assert [name[p] for p in zero["included"]] == [1, 2, 3]
    assert [(name[s["participant"]], s["weight"], s["voice"]) for s in zero["roster"]] == [
        (1, 40, True),
        (2, 30, True),
        (3, 20, True),
        (4, 10, True),
    ]
    assert (one["outcome"], one["closed"], one["ended"]) == ("void", one["deadline"] + 4, one["deadline"] + 4)
    assert one["base_root"] == two["base_root"] == zero["root"]
    assert [s["outcome"] for s in (two, three, four)] == ["final"] * 3
    assert [(name[s["participant"]], s["weight"], s["voice"]) for s in four["roster"]] == [
        (1, 40, False),
        (2, 30, True),
        (3, 20, True),
    ]
    assert four["closed"] == four["opened"]
    assert [name[p] for p in four["included"]] == [2, 3]
