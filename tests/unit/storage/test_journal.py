from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gonka_trainer.errors import DecodeError, StorageError
from gonka_trainer.round.environment import Environment, EpochSchedule
from gonka_trainer.round.events import (
    BlobHeld,
    BlockSeen,
    CaughtUp,
    EnvironmentRead,
    Event,
    PossessionProved,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.records import Attest, Commit, Join, PlacedRecord
from gonka_trainer.storage.event_codec import decode_event, encode_event
from gonka_trainer.storage.journal import Journal, read_events
from gonka_trainer.types import Address, Digest, Height, Role, sha256

RUN = sha256(b"run")

_u32 = st.integers(0, 2**32 - 1)
_u64 = st.integers(0, 2**64 - 1)
_digests = st.binary(min_size=32, max_size=32).map(Digest)
_addresses = st.binary(min_size=20, max_size=20).map(Address)
_heights = st.integers(1, 2**40).map(Height)
_records = st.one_of(
    st.builds(Commit, _u32, _digests),
    st.builds(
        Join,
        _addresses,
        st.sampled_from(Role),
        _digests,
        st.binary(max_size=64),
        st.integers(0, 2**16 - 1),
        st.binary(max_size=24),
        _u64,
    ),
    st.builds(Attest, _u32, *[st.binary(min_size=16, max_size=16)] * 2, st.binary(max_size=128)),
)
_placed = st.builds(PlacedRecord, _u32, _u32, _addresses, _records)
_environments = st.builds(
    lambda numbers, weights: Environment(EpochSchedule(*numbers), tuple(sorted(weights.items()))),
    st.tuples(*[st.integers(0, 2**40)] * 6),
    st.dictionaries(_addresses, st.integers(1, 2**63), max_size=4),
)
events = st.one_of(
    st.builds(BlockSeen, _heights, _digests, st.lists(_placed, max_size=3).map(tuple)),
    st.builds(CaughtUp, _heights),
    st.builds(EnvironmentRead, _heights, _environments),
    st.builds(UpdateReady, _u32, _digests),
    st.builds(BlobHeld, _u32, _addresses, st.booleans()),
    st.builds(PossessionProved, _u32, st.lists(_addresses, max_size=4).map(tuple), st.binary(min_size=16, max_size=16)),
    st.builds(StateComputed, _u32, _digests, st.integers(0, 3), _u64),
    st.builds(StateSynced, _digests, _u64),
)
batches = st.lists(st.lists(events, min_size=1, max_size=3), max_size=5)
_quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _write(path: Path, given_batches: list[list[Event]]) -> bytes:
    path.unlink(missing_ok=True)
    with Journal(path, RUN) as journal:
        for batch in given_batches:
            journal.append_many(batch)
    return path.read_bytes()


def _replayed(path: Path) -> list[Event]:
    with Journal(path, RUN) as journal:
        return list(journal.replay())


@given(events)
def test_events_round_trip(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


@given(st.binary(max_size=200))
def test_foreign_bytes_are_an_event_or_a_decode_error(data: bytes) -> None:
    try:
        event = decode_event(data)
    except DecodeError:
        return
    assert encode_event(event) == data  # canonical: no second encoding of the same event


@given(events, st.data())
def test_changed_bytes_are_never_a_second_encoding(event: Event, data: st.DataObject) -> None:
    good = encode_event(event)
    at = data.draw(st.integers(0, len(good)))
    changed = good[:at] + data.draw(st.binary(max_size=3)) + good[at + data.draw(st.integers(0, 3)) :]
    try:
        decoded = decode_event(changed)
    except DecodeError:
        return
    assert encode_event(decoded) == changed


@_quick
@given(batches)
def test_what_was_appended_is_replayed(tmp_path: Path, given_batches: list[list[Event]]) -> None:
    path = tmp_path / "journal"
    _write(path, given_batches)
    wanted = [event for batch in given_batches for event in batch]
    with Journal(path, RUN) as journal:
        assert journal.warning is None
        assert list(journal.replay()) == wanted
        journal.append(CaughtUp(Height(9)))
        assert list(journal.replay()) == [*wanted, CaughtUp(Height(9))]


@_quick
@given(batches, st.data())
def test_any_prefix_of_the_file_replays_to_a_prefix(
    tmp_path: Path, given_batches: list[list[Event]], data: st.DataObject
) -> None:
    path = tmp_path / "journal"
    whole = _write(path, given_batches)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    with Journal(path, RUN) as journal:
        got = list(journal.replay())
        journal.append(CaughtUp(Height(1)))
    sums = [sum(map(len, given_batches[:n])) for n in range(len(given_batches) + 1)]
    wanted = [event for batch in given_batches for event in batch]
    assert len(got) in sums  # a batch is there whole or not at all
    assert got == wanted[: len(got)]
    assert (len(got) == len(wanted)) or cut < len(whole)
    assert _replayed(path) == [*got, CaughtUp(Height(1))]


@_quick
@given(batches.filter(bool), st.data())
def test_a_changed_byte_is_found(tmp_path: Path, given_batches: list[list[Event]], data: st.DataObject) -> None:
    """It is refused, unless it is in the last append, where nothing tells it from a torn one: that one is cut off."""
    path = tmp_path / "journal"
    whole = _write(path, given_batches)
    last = len(_write(path, given_batches[:-1]))
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    if at < last:
        with pytest.raises(StorageError, match="journal"):
            _replayed(path)
        assert path.read_bytes() == changed  # and nothing is cut off
    else:
        assert _replayed(path) == [event for batch in given_batches[:-1] for event in batch]


def _blocks(count: int) -> list[Event]:
    return [BlockSeen(Height(h), sha256(h.to_bytes(8, "big")), ()) for h in range(1, count + 1)]


def test_damage_in_the_middle_names_file_offset_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = bytearray(_write(path, [[event] for event in _blocks(5)]))
    frame = (len(whole) - 56) // 5
    whole[56 + frame + 20] ^= 1
    path.write_bytes(whole)
    with pytest.raises(StorageError) as caught, Journal(path, RUN):
        pass
    assert str(path) in str(caught.value)
    assert f"byte {56 + frame}" in str(caught.value)
    assert "restore" in caught.value.remedy
    with pytest.raises(StorageError, match="damaged"):
        list(read_events(path))


def test_a_tail_of_zeros_is_a_crash_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = _write(path, [_blocks(3)])
    path.write_bytes(whole + bytes(4096))
    with Journal(path, RUN) as journal:
        assert "torn by a crash; 4096 bytes" in (journal.warning or "")
        assert list(journal.replay()) == _blocks(3)
    assert path.read_bytes() == whole


def test_a_frame_in_another_place_is_no_frame(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = _write(path, [[event] for event in _blocks(3)])
    frame = (len(whole) - 56) // 3
    path.write_bytes(whole + whole[56 : 56 + frame])
    assert _replayed(path) == _blocks(3)
    path.write_bytes(whole[:56] + whole[56 + frame : 56 + 2 * frame] + whole[56 + frame :])
    with pytest.raises(StorageError, match="damaged at byte 56"):
        _replayed(path)


def test_empty_blocks_are_cheap(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    assert len(_write(path, [[event] for event in _blocks(100)])) < 100 * 70


def test_two_daemons_cannot_use_one_directory(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal", RUN):
        with pytest.raises(StorageError, match=f"in use by another daemon .process {os.getpid()}"):
            Journal(tmp_path / "journal", RUN).__enter__()
        code = "import sys, pathlib\nfrom gonka_trainer.storage.journal import Journal\n"
        code += "with Journal(pathlib.Path(sys.argv[1]), bytes.fromhex(sys.argv[2])): pass"
        command = [sys.executable, "-c", code, str(tmp_path / "journal"), RUN.hex()]
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "in use by another daemon" in other.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_another_runs_journal_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "journal", [_blocks(1)])
    with pytest.raises(StorageError, match="another run"):
        Journal(tmp_path / "journal", sha256(b"other")).__enter__()
    (tmp_path / "journal").write_bytes(b"something else altogether, and long enough to have a header")
    with pytest.raises(StorageError, match="not a journal"):
        Journal(tmp_path / "journal", RUN).__enter__()
    (tmp_path / "journal").write_bytes(b"short")
    with pytest.raises(StorageError, match="not a journal"):
        Journal(tmp_path / "journal", RUN).__enter__()


@contextmanager
def _file_limit(size_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_takes_nothing_and_the_journal_goes_on_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, RUN) as journal:
        journal.append_many(_blocks(3))
        size = path.stat().st_size
        with _file_limit(size + 30), pytest.raises(StorageError, match=r"disk is full: \d+ bytes are needed"):
            journal.append_many(_blocks(3))
        assert path.stat().st_size == size
        journal.append(CaughtUp(Height(4)))
    assert _replayed(path) == [*_blocks(3), CaughtUp(Height(4))]


def test_nothing_is_appended_before_entering_or_after_leaving(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", RUN)
    with pytest.raises(StorageError, match="not open"):
        journal.append(CaughtUp(Height(1)))
    with journal:
        journal.append(CaughtUp(Height(1)))
    with pytest.raises(StorageError, match="not open"):
        journal.append(CaughtUp(Height(2)))


def test_an_append_that_returned_survives_kill_9(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, os, signal\nfrom gonka_trainer.storage.journal import Journal\n"
        "from gonka_trainer.round.events import CaughtUp\n"
        "with Journal(pathlib.Path(sys.argv[1]), bytes.fromhex(sys.argv[2])) as journal:\n"
        "    journal.append(CaughtUp(7))\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "journal"), RUN.hex()]
    assert subprocess.run(command, check=False).returncode == -9
    assert _replayed(tmp_path / "journal") == [CaughtUp(Height(7))]
