"""Runs that the operator agreed to, and runs that were taken from a requester, on disk."""

from __future__ import annotations

from pathlib import Path

from gonka_trainer.app.accepted import AcceptedRuns, accept
from gonka_trainer.ports import FoundRun
from gonka_trainer.types import Address, Digest, Height
from tests.support.tiny_run import make_run

A, B = Address(b"\x01" * 20), Address(b"\x02" * 20)


def test_taken_and_agreed(tmp_path: Path) -> None:
    run = accept(make_run(tmp_path).manifest_path.read_bytes(), "manifest")
    runs = AcceptedRuns(tmp_path / "data")
    assert (runs.hashes(), runs.taken(), runs.all()) == (frozenset(), (), ())
    found = FoundRun(run.hash, "https://example.org/é", A, Height(7), 3, frozenset({A, B}))
    runs.take(run, found)
    assert (runs.hashes(), runs.taken()) == (frozenset(), (found,))
    assert AcceptedRuns(tmp_path / "data").get(run.hash) == run
    runs.leave(run.hash)
    assert runs.taken() == ()
    runs.agree(run.hash)  # the operator's own word stands over the requester's
    assert (runs.hashes(), runs.taken()) == (frozenset({run.hash}), ())
    memo = FoundRun(run.hash, "", B, Height(9), 0)
    runs.take(run, memo)
    assert runs.taken() == (memo,)
    runs.add(run)
    assert (runs.hashes(), runs.taken(), runs.all()) == (frozenset({run.hash}), (), (run,))


def test_a_mark_without_its_document_is_no_run(tmp_path: Path) -> None:
    run = accept(make_run(tmp_path).manifest_path.read_bytes(), "manifest")
    runs = AcceptedRuns(tmp_path / "data")
    runs.take(run, FoundRun(run.hash, "", A, Height(1), 1, frozenset()))
    (tmp_path / "data" / "accepted" / f"{run.hash.hex()}.json").unlink()  # a crash in between
    assert (runs.hashes(), runs.all(), runs.get(run.hash)) == (frozenset(), (), None)
    assert runs.hashes() == frozenset[Digest]()
