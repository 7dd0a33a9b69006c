"""The golden vectors, against plain Python and under every limit of the machine's vector units and threads."""

from __future__ import annotations

import json
import math
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from . import plain

VECTORS = Path(__file__).parents[2] / "vectors" / "gradient"


def load(name: str) -> list[dict[str, Any]]:
    return json.loads((VECTORS / name).read_text())


def raw(text: str) -> bytes:
    return bytes.fromhex(text)


@pytest.mark.parametrize("vector", load("codec.json"), ids=lambda v: f"{v['codec']} {v['label']}")
def test_chunk_encoding_in_plain_python(vector: dict[str, Any]) -> None:
    values = plain.floats(raw(vector["values"]))
    payload, total = plain.encode(vector["codec"], values)
    assert payload.hex() == vector["payload"]
    assert total == float.fromhex(vector["sum_squares"])
    assert plain.packed(plain.decode(vector["codec"], payload, len(values))).hex() == vector["decoded"]
    assert plain.chunk_leaf(vector["index"], len(values), total, payload).hex() == vector["leaf"]


@pytest.mark.parametrize("vector", load("tree.json"), ids=lambda v: len(v["chunks"]))
def test_trees_in_plain_python(vector: dict[str, Any]) -> None:
    chunks = [raw(chunk) for chunk in vector["chunks"]]
    leaves = [plain.chunk_leaf(i, i, float(i), chunk) for i, chunk in enumerate(chunks)]
    assert [leaf.hex() for leaf in leaves] == vector["chunk_leaves"]
    assert plain.payload_root(raw(vector["leaf_list"])).hex() == vector["payload_root"]
    state = plain.merkle([plain.state_leaf(i, i, chunk) for i, chunk in enumerate(chunks)])
    assert state.hex() == vector["state_root_of_chunks"]


@pytest.mark.parametrize("vector", load("layout.json"), ids=lambda v: v["label"])
def test_layout_initial_parameters_and_state_in_plain_python(vector: dict[str, Any]) -> None:
    assert plain.layout_form(vector).hex() == vector["form"]
    assert plain.layout_root(vector).hex() == vector["root"]
    parameters = plain.packed(plain.initial(vector, raw(vector["seed"])))
    assert parameters.hex() == vector["initial_parameters"]
    vectors = [parameters, bytes(len(parameters))]
    preamble = plain.state_preamble(vector, vectors, 0, 0)
    assert preamble.hex() == vector["state_preamble"]
    assert plain.h(b"gonka-trainer/state/1", preamble).hex() == vector["state_root"]
    leaves = b"".join(leaf for each in vectors for leaf in plain.state_leaves(vector, each))
    assert leaves.hex() == vector["state_leaf_list"]


@pytest.mark.parametrize("vector", load("header.json"), ids=lambda v: v["fields"]["chain_id"][:5])
def test_commitment_preimage_in_plain_python(vector: dict[str, Any]) -> None:
    preamble = plain.preamble(vector["fields"])
    assert preamble.hex() == vector["preamble"]
    assert plain.h(b"gonka-trainer/commitment/1", preamble).hex() == vector["commitment"]


@pytest.mark.parametrize("vector", load("round.json"), ids=lambda v: v["codec"])
def test_three_rounds_in_plain_python(vector: dict[str, Any]) -> None:
    layout = next(each for each in load("layout.json") if each["label"] == vector["layout"])
    rate, mu = plain.floats(raw(vector["learning_rate"]))[0], plain.floats(raw(vector["momentum"]))[0]
    parameters = plain.floats(raw(vector["initial_parameters"]))
    momentum = [0.0] * len(parameters)
    for number, each in enumerate(vector["rounds"]):
        hosts = [_host(layout, vector["codec"], parameters, host) for host in each["hosts"]]
        factors = plain.coefficients(hosts)
        assert plain.packed(factors).hex() == each["coefficients"]
        pairs = sorted(zip(factors, hosts, strict=True), key=lambda pair: pair[1]["participant"])
        gradients = [(factor, host["gradient"]) for factor, host in pairs]
        parameters, momentum = plain.outer_step(parameters, momentum, gradients, rate, mu)
        assert plain.packed(parameters).hex() == each["parameters"]
        assert plain.packed(momentum).hex() == each["momentum"]
        vectors = [plain.packed(parameters), plain.packed(momentum)]
        preamble = plain.state_preamble(layout, vectors, 1000 * (number + 1), number + 1)
        assert preamble.hex() == each["state_preamble"]
        assert plain.h(b"gonka-trainer/state/1", preamble).hex() == each["state_root"]


def _host(layout: dict[str, Any], codec: str, base: plain.Floats, host: dict[str, Any]) -> dict[str, Any]:
    """Encode as the host did, compare with what is recorded, and return what the coefficients need."""
    local = plain.floats(raw(host["local"]))
    gradient = [plain.r(a - b) for a, b in zip(base, local, strict=True)]
    size = layout["chunk_elements"]
    payload, listed, total, decoded = b"", b"", 0.0, []
    for index, start in enumerate(range(0, len(gradient), size)):
        chunk = gradient[start : start + size]
        data, squares = plain.encode(codec, chunk)
        leaf = plain.chunk_leaf(index, len(chunk), squares, data)
        listed += leaf + plain.struct.pack(">dI", squares, len(data))
        payload, total, decoded = payload + data, total + squares, decoded + plain.decode(codec, data, len(chunk))
    assert payload.hex() == host["payload"]
    assert total == float.fromhex(host["sum_squares"])
    assert plain.payload_root(listed).hex() == host["payload_root"]
    return {**host, "norm": math.sqrt(total), "gradient": decoded}


@pytest.mark.parametrize("vector", load("feedback.json"), ids=lambda v: v["codec"])
def test_error_feedback_in_plain_python(vector: dict[str, Any]) -> None:
    layout = next(each for each in load("layout.json") if each["label"] == vector["layout"])
    size, base = layout["chunk_elements"], plain.floats(raw(vector["base"]))
    residual = [0.0] * len(base)
    for each in vector["rounds"]:
        sent, residual = plain.with_feedback(vector["codec"], base, plain.floats(raw(each["local"])), residual, size)
        assert b"".join(sent).hex() == each["payload"]
        assert plain.packed(residual).hex() == each["residual"]
        assert plain.feedback_root(residual, size).hex() == each["feedback_root"]


def _numpy_dispatch() -> str:
    umath = np._core._multiarray_umath  # type: ignore[attr-defined]
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name])


LIMITS = {
    "torch at its default capability, one thread": {"ATEN_CPU_CAPABILITY": "default", "NUMBA_NUM_THREADS": "1"},
    "numpy without dispatch, two threads": {"NPY_DISABLE_CPU_FEATURES": _numpy_dispatch(), "NUMBA_NUM_THREADS": "2"},
    "numba for a generic processor": {"NUMBA_CPU_NAME": "generic"},
    "numba without optimisation": {"NUMBA_OPT": "0"},
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
def test_same_bits_on_limited_machines(limit: dict[str, str]) -> None:
    limit = {name: value for name, value in limit.items() if value}
    result = subprocess.run(
        [sys.executable, str(VECTORS / "generate.py"), "--check"],
        env={**os.environ, **limit},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == "same\n"


def check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Run the folder's `generate.py --check` in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(folder / "generate.py"), run_name="__main__")
    return ended.value.code


def test_the_code_makes_these_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(VECTORS, monkeypatch) == 0


@pytest.mark.parametrize(("name", "field"), [("codec.json", "payload"), ("header.json", "commitment")])
def test_check_notices_another_vector(name: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in VECTORS.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    vectors = load(name)
    vectors[-1][field] = vectors[-1][field][::-1]
    (tmp_path / name).write_text(json.dumps(vectors, indent=1) + "\n")
    assert check(tmp_path, monkeypatch) == 1
