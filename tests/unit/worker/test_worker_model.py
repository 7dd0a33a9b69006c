from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.tiny_run import CONFIG, TinyRun, make_run
from torch import nn

from gonka_trainer.errors import ConfigError, StorageError, WorkerError
from gonka_trainer.gradient.layout import Entry, Layout
from gonka_trainer.worker.flat import read_flat, write_flat
from gonka_trainer.worker.model import (
    REFUSED_KEYS,
    _check,
    build_model,
    check_layout,
    describe,
    flat_parts,
    load_parameters,
    parameters_once,
)
from gonka_trainer.worker.session import Session

GPT2 = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 256, "n_positions": 32}


def test_the_description_is_the_model(session: Session) -> None:
    entries = describe(CONFIG)
    assert [(n, s) for n, s, _ in entries] == [(n, tuple(p.shape)) for n, p in parameters_once(session.model)]
    assert entries[0] == ("model.embed_tokens.weight", (256, 32), "uniform:0.02")
    assert {init for name, _, init in entries if "norm" in name} == {"ones"}
    assert "lm_head.weight" not in {name for name, _, _ in entries}


def test_untied_weights_and_biases_have_entries_of_their_own() -> None:
    entries = {
        name: init for name, _, init in describe({**CONFIG, "tie_word_embeddings": False, "attention_bias": True})
    }
    assert entries["lm_head.weight"] == "uniform:0.02"
    assert entries["model.layers.0.self_attn.q_proj.bias"] == "zeros"
    assert {init for name, _, init in describe(GPT2) if ".ln_" in name and name.endswith("weight")} == {"ones"}


def test_describe_is_a_command(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    command = [sys.executable, "-m", "gonka_trainer.worker", "describe", "--config", str(config)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    assert [(line["name"], tuple(line["shape"]), line["init"]) for line in lines] == describe(CONFIG)


@pytest.mark.parametrize("key", sorted(REFUSED_KEYS))
def test_keys_that_could_fetch_code_are_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} is not allowed"):
        build_model({**CONFIG, key: "x/y"})


@pytest.mark.parametrize(
    "change", [{"model_type": "no-such"}, {"model_type": ""}, {"hidden_act": "no-such"}, {"num_attention_heads": 5}]
)
def test_a_configuration_that_transformers_refuses(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="transformers refuses it"):
        build_model({**CONFIG, **change})


def test_buffers_that_are_kept_and_frozen_parameters_are_refused() -> None:
    with pytest.raises(WorkerError, match="running_mean"):
        _check(nn.BatchNorm1d(3))
    frozen = nn.Linear(2, 2)
    frozen.bias.requires_grad_(False)
    with pytest.raises(WorkerError, match="frozen parameters: bias"):
        _check(frozen)


def test_tied_weights_count_once_by_storage() -> None:
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    model[1].weight = model[0].weight
    model[2].weight = nn.Parameter(model[0].weight.data)  # another object over the same storage
    assert [name for name, _ in parameters_once(model)] == ["0.weight"]


def test_parameters_go_in_and_out_bit_for_bit(run: TinyRun, session: Session, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=session.layout.total_elements).astype(np.float32)
    load_parameters(session.model, values, session.layout)
    write_flat(tmp_path / "out", flat_parts(session.model))
    assert (tmp_path / "out").read_bytes() == values.tobytes()
    assert torch.equal(session.model.lm_head.weight, session.model.model.embed_tokens.weight)
    load_parameters(session.model, read_flat(run.base, session.layout), session.layout)
    assert np.concatenate([p.ravel() for p in flat_parts(session.model)]).tobytes() == run.base.read_bytes()


def test_a_layout_of_another_model_is_refused(session: Session) -> None:
    entries = session.layout.entries
    swapped = Layout((entries[1], entries[0], *entries[2:]), 4096)
    reshaped = Layout((Entry(entries[0].name, (32, 256), "zeros"), *entries[1:]), 4096)
    for layout, said in ((swapped, "tensor 0"), (reshaped, "tensor 0"), (Layout(entries[:-1], 4096), "nothing")):
        with pytest.raises(ConfigError, match=said):
            check_layout(session.model, layout)


def test_a_transposed_tensor_is_written_in_rows(tmp_path: Path) -> None:
    part = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_flat(tmp_path / "f", [part.T])
    assert (tmp_path / "f").read_bytes() == np.array([0, 3, 1, 4, 2, 5], "<f4").tobytes()


def test_a_write_that_fails_leaves_the_former_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_flat(path, [np.ones(3, np.float32)])

    def parts() -> Any:
        yield np.zeros(3, np.float32)
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left"):
        write_flat(path, parts())
    assert path.read_bytes() == np.ones(3, "<f4").tobytes()
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_flat_file_must_have_the_layouts_size(tmp_path: Path) -> None:
    layout = make_run(tmp_path).manifest.layout
    (tmp_path / "short").write_bytes(b"\0" * 8)
    with pytest.raises(StorageError, match="8 bytes, the layout has 4096"):
        read_flat(tmp_path / "short", layout)
    with pytest.raises(StorageError, match="cannot be read"):
        read_flat(tmp_path / "absent", layout)
