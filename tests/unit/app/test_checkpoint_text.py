"""A checkpoint as a line: read as written, and nothing else read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.checkpoint_store import checkpoint_for, keep_checkpoint, known_task
from gonka_trainer.app.checkpoint_text import CheckpointText, parse_checkpoint, peer_of, render_checkpoint
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, RunsConfig, WorkerConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.round.naming import run_id
from gonka_trainer.round.resuming import Checkpoint
from gonka_trainer.types import Digest, Height, sha256
from tests.support.tiny_run import make_run

DIGEST = st.binary(min_size=32, max_size=32).map(Digest)
NUMBER = st.integers(0, 10**18)
HOST = st.text("abcxyz0189.-:", min_size=1, max_size=64)
PEERS = st.lists(st.builds(peer_of, HOST, st.integers(1, 65535), DIGEST), min_size=1, max_size=8).map(tuple)
TEXTS = st.builds(CheckpointText, DIGEST, st.builds(Checkpoint, NUMBER, NUMBER, DIGEST, DIGEST, DIGEST), NUMBER, PEERS)
GOOD = CheckpointText(
    sha256(b"run"),
    Checkpoint(Height(41), 3, sha256(b"root"), sha256(b"environment"), sha256(b"roster")),
    7,
    (peer_of("one.example", 7000, sha256(b"key")), peer_of("::1", 7001, sha256(b"other"))),
)
LINE = render_checkpoint(GOOD)


@given(TEXTS)
def test_a_line_is_read_as_it_was_written(said: CheckpointText) -> None:
    line = render_checkpoint(said)
    assert parse_checkpoint(line, "here") == said
    assert parse_checkpoint(f" {line}\n", "here") == said
    assert " " not in line


@given(st.text(max_size=80))
def test_any_text_is_a_checkpoint_or_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ConfigError, match="here"):
        parse_checkpoint(text, "here")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("checkpoint/1", "checkpoint/2"),
        ("/41/", "/041/"),
        ("/41/", "/-1/"),
        ("/41/", "/9999999999999999999999/"),
        (sha256(b"root").hex(), sha256(b"root").hex().upper()),
        (sha256(b"root").hex(), sha256(b"root").hex()[:-1]),
        ("@", ""),
        ("#", ""),
        (":7000", ":0"),
        (":7000", ":70000"),
        ("one.example", "one example"),
        ("one.example", "one/example"),
        ("one.example", ""),
        (LINE.split("@")[1], ""),
        (LINE.split("@")[1], ",".join([LINE.split("@")[1].split(",")[0]] * 9)),
    ],
)
def test_a_line_that_is_not_whole_is_refused(old: str, new: str) -> None:
    assert old in LINE
    with pytest.raises(ConfigError, match="there"):
        parse_checkpoint(LINE.replace(old, new), "there")


def _run(folder: Path) -> Accepted:
    return accept(make_run(folder).manifest_path.read_bytes(), "test")


def _config(data: Path, *checkpoints: str) -> Config:
    return Config(
        str(data),
        ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", ""),
        KeyConfig("key"),
        ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        WorkerConfig("data"),
        RunsConfig(checkpoints=checkpoints),
    )


def _line(run: Digest, height: int) -> str:
    checkpoint = Checkpoint(Height(height), 3, *(sha256(bytes([n])) for n in range(3)))
    return render_checkpoint(CheckpointText(run, checkpoint, 0, GOOD.peers))


def test_the_latest_checkpoint_of_the_run_counts_wherever_it_was_given(tmp_path: Path) -> None:
    run = _run(tmp_path)
    name = run_id(run.manifest.chain_id, run.hash)
    assert checkpoint_for(_config(tmp_path), run) is None
    assert checkpoint_for(_config(tmp_path, LINE), run) is None
    keep_checkpoint(tmp_path, run, _line(name, 50))
    for given_lines, height in (((), 50), ((LINE, _line(name, 60)), 60), ((_line(name, 40),), 50)):
        found = checkpoint_for(_config(tmp_path, *given_lines), run)
        assert found is not None
        assert found.checkpoint.height == height
    with pytest.raises(ConfigError, match=r"runs\.checkpoints"):
        checkpoint_for(_config(tmp_path, "checkpoint"), run)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this very run"):
        keep_checkpoint(tmp_path, _run(tmp_path), LINE)
    assert checkpoint_for(_config(tmp_path), _run(tmp_path)) is None


@pytest.mark.parametrize(("content", "task"), [(b"7", 7), (b"", 0), (b"x", 0), ("\u0663".encode(), 0), (b"\xff", 0)])
def test_the_task_is_what_its_file_says(tmp_path: Path, content: bytes, task: int) -> None:
    assert known_task(tmp_path) == 0
    (tmp_path / "task").write_bytes(content)
    assert known_task(tmp_path) == task
