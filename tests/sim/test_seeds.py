"""Many worlds, each from a seed, all in agreement with the model; and proof that together they reach every rule."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .play import play

SEEDS = 200
MUST_HAPPEN = (
    *(f"event {name}" for name in ("BlockSeen", "CaughtUp", "EnvironmentRead", "UpdateReady", "BlobHeld")),
    *(f"event {name}" for name in ("PossessionProved", "StateComputed", "StateSynced")),
    *(f"command {name}" for name in ("ReadEnvironment", "SendJoin", "Train", "Publish", "Fetch", "Serve")),
    *(f"command {name}" for name in ("ProvePossession", "Apply", "Sync", "Keep")),
    *(f"void: {reason}" for reason in ("floor", "commit", "attest", "state")),
    *(
        f"action {kind}"
        for kind in ("crash", "crash next", "outage", "silence", "leave", "rejoin", "rotate", "verdicts")
    ),
    *("extension", "drop", "back after a drop", "exclusion", "silent seat", "final with a silent seat"),
    *("under the floor", "environment of the block before, later than round 0", "training stretched"),
    *("early close", "close at the deadline", "freeze without all", "posts differ"),
    *("equivocation: commit", "equivocation: state", "attest: list digest", "attest: bitmap"),
    *("join: written height", "delegate: written height", "join: another participant", "join: key rotated"),
    *("delegate: key rotated", "revoke", "leave", "leave: in the name of another"),
    *("transaction lost", "transaction delayed", "transaction doubled", "record sent again"),
    *("crash between journal and step", "crash between step and act", "crash after a broadcast", "restart"),
    *("started from a checkpoint", "resumed with a journal", "event Resumed"),
    *("blob from an attester", "state synced", "bad form", "junk root posted", "copied commitment"),
)


def played(first: int, last: int) -> tuple[list[str], Counter[str]]:
    failed, counts = [], Counter[str]()
    for seed in range(first, last):
        result = play(seed)
        counts += result.counts
        if result.wrong:
            failed.append(result.text)
    return failed, counts


@pytest.mark.timeout(1800)
def test_seeds_agree_with_the_model_and_reach_every_rule() -> None:
    failed, counts = played(0, SEEDS)
    assert not failed, "\n".join(failed[:5])
    assert [what for what in MUST_HAPPEN if not counts[what]] == []


def test_same_seed_gives_the_same_world() -> None:
    assert play(3).counts == play(3).counts


@pytest.mark.slow
def test_same_seed_gives_the_same_world_whatever_the_order_of_sets() -> None:
    command = [sys.executable, "-c", f"from {play.__module__} import play; print(sorted(play(5).counts.items()))"]
    root = Path(__file__).resolve().parents[2 if play.__module__.startswith("tests.") else 1]
    out = [
        subprocess.run(
            command, cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert out[0] == out[1]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_thousand_seeds_agree_with_the_model() -> None:
    failed, _ = played(SEEDS, 1000)
    assert not failed, "\n".join(failed[:5])
