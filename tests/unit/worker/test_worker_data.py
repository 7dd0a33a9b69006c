from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.tiny_run import INNER, PARTICIPANT, VALIDATION_BYTES, make_run, text

from gonka_trainer.errors import ConfigError
from gonka_trainer.types import sha256, u64
from gonka_trainer.worker.data import Assignment, Corpus, Samples, batch, held_out, open_corpus

SAMPLES = Samples(7, bytes.fromhex(PARTICIPANT), 3)
OFFSETS = [13450, 31265, 31987, 13855]


def corpus(size_bytes: int = 40_000) -> Corpus:
    return Corpus(np.frombuffer(text(size_bytes), np.uint8), size_bytes - VALIDATION_BYTES)


def test_offsets_are_the_committed_ones() -> None:
    assert [SAMPLES.offset(step, index, 35_872) for step in (0, 1) for index in (0, 1)] == OFFSETS


@pytest.mark.parametrize("other", [{"seed": 8}, {"participant": b"\x22" * 20}, {"round": 4}])
def test_offsets_depend_on_everything(other: dict[str, object]) -> None:
    changed = replace(SAMPLES, **other)  # type: ignore[arg-type]
    assert [changed.offset(0, i, 1 << 60) for i in range(9)] != [SAMPLES.offset(0, i, 1 << 60) for i in range(9)]
    assert SAMPLES.offset(0, 1, 1 << 60) != SAMPLES.offset(1, 0, 1 << 60)


def test_offsets_cover_the_whole_range_evenly() -> None:
    drawn = Counter(SAMPLES.offset(step, index, 8) for step in range(250) for index in range(4))
    assert set(drawn) == set(range(8))
    assert all(80 < count < 170 for count in drawn.values())  # 125 expected, 10.5 the standard deviation


def test_a_batch_is_the_text_at_its_offsets_and_never_touches_the_held_out_part() -> None:
    content = np.concatenate([np.zeros(100, np.uint8), np.ones(50, np.uint8)])
    small = Corpus(content, 100)
    inner = replace(INNER, sequence_tokens=99)  # one place only: the whole training part
    assert not batch(small, SAMPLES, inner, 0, Assignment()).any()
    rows = batch(corpus(), SAMPLES, INNER, 5, Assignment())
    places = corpus().training_bytes - INNER.sequence_tokens
    assert rows.shape == (4, 33)
    for index, row in enumerate(rows):
        start = SAMPLES.offset(5, index, places)
        assert row.tolist() == list(text(40_000)[start : start + 33])


def test_the_assignment_root_is_over_offsets_and_bytes_in_order() -> None:
    one, two = np.array([1, 2], np.uint8), np.array([3, 4], np.uint8)
    roots = set()
    for samples in ([(0, one), (9, two)], [(9, two), (0, one)], [(0, one), (8, two)], [(0, one)], []):
        assignment = Assignment()
        for offset, window in samples:
            assignment.add(offset, window)
        roots.add(assignment.root)
    assert len(roots) == 5
    first = sha256(b"\x01\x02")
    assignment = Assignment()
    assignment.add(5, one)
    assert assignment.root == sha256(b"gonka-trainer/assignment/1", u64(5), first)


def test_the_held_out_sequences_are_fixed_and_held_out() -> None:
    rows = held_out(corpus(), 32)
    tail = text(40_000)[-VALIDATION_BYTES:]
    assert rows.shape == (48, 33)
    assert bytes(rows[0].astype(np.uint8)) == tail[:33]
    assert bytes(rows[-1].astype(np.uint8)) == tail[-33:]
    assert all(bytes(row.astype(np.uint8)) in tail for row in rows)


@pytest.mark.parametrize(("held", "count"), [(33, 1), (64, 1), (65, 2), (97, 3), (4096, 48)])
def test_a_short_held_out_part_has_fewer_sequences(held: int, count: int) -> None:
    rows = held_out(Corpus(np.frombuffer(text(8192), np.uint8), 8192 - held), 32)
    assert rows.shape == (count, 33)


def test_a_corpus_that_is_not_the_one_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    spec, good = run.manifest.data, run.data.read_bytes()
    assert open_corpus(run.data, spec).training_bytes == len(good) - VALIDATION_BYTES
    run.data.write_bytes(good[:-1] + b"#")
    with pytest.raises(ConfigError, match="SHA-256"):
        open_corpus(run.data, spec)
    run.data.write_bytes(good + b"#")
    with pytest.raises(ConfigError, match="40001 bytes, the manifest pins 40000"):
        open_corpus(run.data, spec)
    with pytest.raises(ConfigError, match="cannot be read"):
        open_corpus(tmp_path / "absent", spec)
