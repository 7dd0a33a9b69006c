"""A manifest has one form and one hash; everything else is refused with its key named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gonka_trainer.errors import ConfigError
from gonka_trainer.manifest import Manifest, load_manifest, manifest_hash, parse_manifest, render_manifest
from tests.support.tiny_run import make_run


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return make_run(tmp_path).manifest


def changed(manifest: Manifest, path: str, value: Any) -> bytes:
    document = json.loads(render_manifest(manifest))
    *sections, name = path.split(".")
    place = document
    for section in sections:
        place = place[section]
    if value is None:
        del place[name]
    else:
        place[name] = value
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def test_a_rendered_manifest_is_read_back_as_it_was(manifest: Manifest) -> None:
    assert parse_manifest(render_manifest(manifest)) == manifest


@pytest.mark.parametrize("name", ["f32", "bf16", "int8", "int4"])
def test_every_codec_that_a_run_can_use_is_accepted(manifest: Manifest, name: str) -> None:
    assert parse_manifest(changed(manifest, "codec", name)).codec == name


@pytest.mark.parametrize(("key", "value"), [("codec", "topk"), ("codec", "int2"), ("codec", ""), ("codec_version", 2)])
def test_other_codecs_are_refused(manifest: Manifest, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"codec .* is unknown"):
        parse_manifest(changed(manifest, key, value))


def test_the_hash_changes_with_any_byte(manifest: Manifest) -> None:
    other = replace(manifest, name=manifest.name + ".")
    assert manifest_hash(render_manifest(manifest)) != manifest_hash(render_manifest(other))


@pytest.mark.parametrize("form", [lambda d: d + b"\n", lambda d: b" " + d, lambda d: d.replace(b",", b", ", 1)])
def test_another_spelling_of_the_same_document_is_refused(manifest: Manifest, form: Any) -> None:
    with pytest.raises(ConfigError, match="canonical"):
        parse_manifest(form(render_manifest(manifest)))


def test_a_key_given_twice_is_refused(manifest: Manifest) -> None:
    document = render_manifest(manifest)
    twice = document.replace(b'{"carrier"', b'{"carrier":"kv","carrier"', 1)
    assert twice != document
    with pytest.raises(ConfigError, match="canonical"):
        parse_manifest(twice)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("name", None, "name is missing"),
        ("extra", 1, "extra is unknown"),
        ("inner.beta3", 0.5, "beta3 is unknown"),
        ("inner.steps", "30", "steps: '30' is not a whole number"),
        ("inner.steps", True, "steps: True is not a whole number"),
        ("inner.learning_rate", 1, "canonical"),
        ("inner.learning_rate", "1", "learning_rate: '1' is not a number"),
        ("carrier", "pigeon", "neither memo nor kv"),
        ("log_height", 0, "log_height"),
        ("windows.state_blocks", 1, "state_blocks must not be below attest_blocks"),
        ("windows.absent_rounds", 1, "absent_rounds must be at least 2"),
        ("membership.min_weight", 0, "min_weight must be at least 1"),
        ("membership.weights", "equal", "belongs to weights equal"),
        ("state_root", "AB" * 32, "state_root"),
        ("chunk_elements", 1 << 30, "chunk_elements"),
        ("chain_id", "c" * 65, "chain_id"),
        ("windows.train_blocks", 10**30, "none may be above"),
        ("end.rounds", 1 << 32, "too large"),
        ("parameters", [["a", [2], "uniform:x"]], "uniform:x"),
        ("parameters", [["a", [-2], "zeros"]], "-2"),
        ("parameters", [["a", [2], "zeros"], ["a", [2], "zeros"]], "a"),
        ("parameters", [["a", [0], "zeros"]], "no parameters"),
        ("name", "\ud800", "surrogates"),
        ("end", {"rounds": 0, "tokens": 0}, "rounds or tokens"),
    ],
)
def test_what_is_wrong_is_named(manifest: Manifest, path: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_manifest(changed(manifest, path, value), "run.json")


def test_a_state_window_may_equal_the_attest_window(manifest: Manifest) -> None:
    document = changed(manifest, "windows.state_blocks", manifest.windows.attest_blocks)
    assert parse_manifest(document).windows.state_blocks == manifest.windows.attest_blocks


@pytest.mark.parametrize("document", [b"", b"[]", b"null", b"\xff", b"{" * 100_000, b'{"a":NaN}'])
def test_bytes_that_are_no_manifest_are_refused(document: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_manifest(document)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json"):
        load_manifest(tmp_path / "none.json")
