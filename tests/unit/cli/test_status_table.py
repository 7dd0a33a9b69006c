"""`gonka-trainer status` as a person sees it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from gonka_trainer.cli.commands import app

CONFIG = """
data_dir = "data"
[chain]
grpc = "127.0.0.1:9090"
rpc = "http://127.0.0.1:26657"
chain_id = "gonka-mainnet"
[keys]
account_file = "account.key"
[exchange]
bind = "0.0.0.0:7070"
advertise = "host.example:7070"
[worker]
data = "corpus.txt"
"""


def shown(folder: Path, **values: object) -> str:
    (folder / "host.toml").write_text(CONFIG)
    run = folder / "data" / "runs" / "run"
    run.mkdir(parents=True)
    (run / "status.json").write_text(json.dumps({"run": "ab" * 32, **values}))
    done = CliRunner().invoke(app, ["status", "--config", str(folder / "host.toml")], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_what_is_not_known_is_a_dash(tmp_path: Path) -> None:
    text = shown(tmp_path, gpu_holds={}, gpu_freed_seconds=None, loss=0.25)
    assert "None" not in text
    assert "{}" not in text
    assert "0.2500" in text


def test_who_holds_the_gpus_is_shown_in_his_own_words(tmp_path: Path) -> None:
    assert "operator: new [/fan] in" in shown(tmp_path, gpu_holds={"operator": "new [/fan] in"})
