"""Whole rounds as JSON: the events that a reader is told, and the summaries that follow.

`python tests/unit/round/round_trace.py` writes the golden file again. Do that only when PROTOCOL changes.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from round_world import Reader, address, digest, join, key, params

from gonka_trainer.round.environment import Environment, EpochSchedule, decode_environment, encode_environment
from gonka_trainer.round.events import BlockSeen, EnvironmentRead, Event
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.records import Commit, Delegate, Leave, PlacedRecord, decode_record, encode_record
from gonka_trainer.round.summary import RoundSummary
from gonka_trainer.types import Address, Digest, Height

FILE = Path(__file__).parents[2] / "vectors" / "round" / "trace.json"
ABOUT = (
    "Rounds 0 to 4 of a run of four participants with chain weights 40, 30, 20, 10 and min_weight 60, read by somebody "
    "who only observes. Round 0: the participant of weight 30 speaks through another key; scheduled proof of compute "
    "moves T; the commitment of weight 10 is attested by itself alone; one extension; two roots are posted, one wins. "
    "Round 1: nobody commits but the one of weight 40: void. Rounds 2 and 3: the one of weight 10 is absent, and "
    "dropped (absent_rounds 2). Round 4: the one of weight 40 has left: its seat is silent, and without it W would be "
    "below the floor."
)


def rules() -> RoundParams:
    return params(None, min_weight=60, train_blocks=6, margin_blocks=1, extensions=2, absent_rounds=2, rounds=5)


class Recorder(Reader):
    """A reader that keeps what it is told."""

    def __init__(self, chosen: RoundParams) -> None:
        super().__init__(chosen)
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)
        super().tell(event)


def story() -> Recorder:
    """Play the rounds that `ABOUT` tells of."""
    reader, hot = Recorder(rules()), key(2)
    weights = ((address(1), 40), (address(2), 30), (address(3), 20), (address(4), 10), (address(9), 1000))
    reader.environment = Environment(EpochSchedule(2, Height(8), 50, 2, 1, 2), weights)
    reader.block((address(2), Delegate(hot, Height(1))), (hot, join(address(2), 1)), (address(1), join(address(1), 1)))
    reader.block(
        (address(3), join(address(3), 2)), (address(4), join(address(4), 2)), (address(9), join(address(8), 2))
    )
    reader.skip_to(3)
    _round_zero(reader, hot)
    reader.play(1)
    _final_round(reader, hot)
    reader.block((address(1), Leave(address(1), Height(reader.now))))
    _final_round(reader, hot)
    _final_round(reader, hot, (3,))
    return reader


def _as(author: Address, said: tuple[tuple[Address, Any], ...]) -> tuple[tuple[Address, Any], ...]:
    return tuple((author, record) for _, record in said)


def _round_zero(reader: Recorder, hot: Address) -> None:
    reader.block(*reader.commits(1, 4), (address(2), Commit(0, digest("from a key that does not speak"))))
    reader.block(*reader.commits(3), *_as(hot, reader.commits(2)), (address(3), Commit(0, digest("a second one"))))
    reader.block(*reader.attests((1,), 1, 3), *reader.attests((4,), 4))
    reader.block(*_as(hot, reader.attests((1, 2), 2)))
    while reader.current.extensions == 0:
        reader.block()
    reader.block(*reader.attests((2,), 1), *reader.attests((3,), 1, 3), *_as(hot, reader.attests((3,), 2)))
    while reader.current.frozen is None:
        reader.block()
    reader.block(*reader.roots("right", 1), *reader.roots("wrong", 4))
    reader.block(*_as(hot, reader.roots("right", 2)))


def _final_round(reader: Recorder, hot: Address, own: tuple[int, ...] = (1, 3)) -> None:
    number = reader.state.round
    reader.block(*reader.commits(*own), *_as(hot, reader.commits(2)))
    while reader.current.closed is None:
        reader.block()
    everybody = (*own, 2)
    reader.block(*reader.attests(everybody, *own), *_as(hot, reader.attests(everybody, 2)))
    reader.block(*reader.roots(f"root {number}", *own), *_as(hot, reader.roots(f"root {number}", 2)))


def event_to_json(event: Event) -> dict[str, Any]:
    match event:
        case BlockSeen(height, block_hash, records):
            said = [[p.transaction, p.message, p.author.hex(), encode_record(p.record).hex()] for p in records]
            return {"block": height, "hash": block_hash.hex(), "records": said}
        case EnvironmentRead(height, environment):
            return {"environment_of": height, "preimage": encode_environment(environment).hex()}
    raise TypeError(type(event))


def event_from_json(value: dict[str, Any]) -> Event:
    if "block" not in value:
        preimage = bytes.fromhex(value["preimage"])
        return EnvironmentRead(Height(value["environment_of"]), decode_environment(preimage))
    records = tuple(
        PlacedRecord(transaction, message, Address(bytes.fromhex(author)), decode_record(bytes.fromhex(record)))
        for transaction, message, author, record in value["records"]
    )
    return BlockSeen(Height(value["block"]), Digest(bytes.fromhex(value["hash"])), records)


def plain(value: Any) -> Any:
    """Return a summary as JSON has it: bytes in hex, tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def document(reader: Recorder, summaries: list[RoundSummary]) -> dict[str, Any]:
    return {
        "about": ABOUT,
        "params": plain(rules()),
        "events": [event_to_json(event) for event in reader.events],
        "summaries": [plain(told) for told in summaries],
        "notes": reader.texts,
    }


if __name__ == "__main__":
    told = story()
    FILE.write_text(json.dumps(document(told, told.summaries), indent=1) + "\n")
