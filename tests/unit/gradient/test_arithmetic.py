"""The proof of the floating-point mode must be able to fail: with flush-to-zero on for real, and with fused kernels."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from gonka_trainer.errors import MachineError
from gonka_trainer.gradient import arithmetic, fused, kernels_topk
from gonka_trainer.gradient.arithmetic import prove_default_mode, prove_thread
from gonka_trainer.gradient.codec import codec

MXCSR = """
#include <xmmintrin.h>
void set_mode(unsigned bits) { _mm_setcsr(bits); }
"""
FLUSH, DENORMALS_ARE_ZERO, DOWN, UP, TOWARDS_ZERO = 0x8000, 0x0040, 0x2000, 0x4000, 0x6000
DEFAULT = 0x1F80

PRELUDE = """
import ctypes, sys, threading
import numpy as np
from gonka_trainer.errors import MachineError
from gonka_trainer.gradient.arithmetic import prove_default_mode, prove_thread
library = ctypes.CDLL(sys.argv[1])
def refused(call):
    try:
        call()
    except MachineError:
        return True
    return False
def in_a_thread(call):
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.machine() not in {"x86_64", "AMD64"} or shutil.which("gcc") is None:
        pytest.skip("needs gcc on x86-64")
    folder = tmp_path_factory.mktemp("mode")
    (folder / "mode.c").write_text(MXCSR)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "mode.so", folder / "mode.c"], check=True)
    return folder / "mode.so"


def run(library: Path, script: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, str(library)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_this_machine_is_in_the_default_mode() -> None:
    prove_default_mode(threads=3)


def test_every_other_mode_is_refused(library: Path) -> None:
    modes = [FLUSH, DENORMALS_ARE_ZERO, FLUSH | DENORMALS_ARE_ZERO, DOWN, UP, TOWARDS_ZERO]
    script = f"""
prove_thread()
for mode in {modes}:
    library.set_mode({DEFAULT} | mode)
    seen = refused(prove_thread)
    library.set_mode({DEFAULT})
    print(mode, seen, refused(prove_thread))
"""
    assert run(library, script).splitlines() == [f"{mode} True False" for mode in modes]


def test_the_mode_of_one_thread_is_seen_there_alone(library: Path) -> None:
    script = f"""
def flushed():
    library.set_mode({DEFAULT | FLUSH})
    return refused(prove_thread)
print(in_a_thread(flushed), refused(prove_default_mode), in_a_thread(lambda: refused(prove_thread)))
library.set_mode({DEFAULT | FLUSH})
print(refused(prove_default_mode), in_a_thread(lambda: refused(prove_thread)))
"""
    assert run(library, script).split() == ["True", "False", "False", "True", "True"]


def test_a_task_that_changes_its_threads_mode_is_not_believed(library: Path) -> None:
    script = f"""
from gonka_trainer.gradient.parallel import in_order
def sometimes(index):
    if index == 7:
        library.set_mode({DEFAULT | FLUSH})
    return index
for threads in (1, 2):
    print(refused(lambda: list(in_order(sometimes, 30, threads))))
    library.set_mode({DEFAULT})
    print(refused(lambda: list(in_order(lambda index: index, 30, threads))))
"""
    assert run(library, script).split() == ["True", "False"] * 2


def test_a_step_in_flush_mode_is_refused_and_would_differ(library: Path) -> None:
    script = f"""
from gonka_trainer.gradient.codec import codec
from gonka_trainer.gradient.layout import Entry, Layout
from gonka_trainer.gradient.outer import OuterSettings, outer_step
layout = Layout((Entry("w", (600,), "zeros"),), 256)
tiny = np.full(600, 2.0**-140, np.float32)
each = codec("f32", 1)
settings = OuterSettings(np.float32(0.5), np.float32(0.5))
def step():
    outer_step(tiny, tiny, tiny.copy(), tiny.copy(), [], [], settings, layout, each)
def momentum():
    out = tiny.copy(), tiny.copy()
    half = np.float32(0.5)
    each.step([np.zeros(2400, np.uint8)], np.ones(1, np.float32), out, out, half, half)
    return out[1].tobytes()
print(refused(step))
kept = momentum()
library.set_mode({DEFAULT | FLUSH})
flushed = momentum()
print(refused(step), kept == flushed)
"""
    assert run(library, script).split() == ["False", "True", "False"]


def has_fma() -> bool:
    return "fma" in Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else False


@pytest.mark.skipif(not has_fma(), reason="the processor has no fused multiply-add")
@pytest.mark.parametrize("name", list(arithmetic._STEPS))
@pytest.mark.parametrize("place", list(arithmetic._PROBES))
def test_a_contracted_kernel_is_refused(name: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loops, compiled with leave to contract: every single probe must notice."""
    add = numba.njit(fastmath={"contract"})(getattr(fused, f"_add_{name}"))
    kernel = numba.njit(fused._SIGNATURE, fastmath={"contract"})(fused._step_with(add))
    monkeypatch.setattr(arithmetic, "_PROBES", {place: arithmetic._PROBES[place]})
    with pytest.raises(MachineError, match="fuses multiply and add"):
        arithmetic._prove_step(name, kernel, arithmetic._STEPS[name][1])


@pytest.mark.skipif(not has_fma(), reason="the processor has no fused multiply-add")
def test_a_contracted_sparse_sum_is_refused() -> None:
    kernel = numba.njit(fastmath={"contract"})(kernels_topk._add)
    with pytest.raises(MachineError, match="topk step fuses multiply and add"):
        arithmetic._prove_sparse(kernel)


def test_the_probes_cover_every_codec() -> None:
    with pytest.raises(KeyError) as caught:
        codec("none", 1)
    for name in arithmetic.ALL_CODECS:
        assert f"('{name}', 1)" in str(caught.value)
        arithmetic.prove_kernels((name,))
    assert str(caught.value).count(", 1)") == len(arithmetic.ALL_CODECS)
    with pytest.raises(KeyError):
        arithmetic.prove_kernels(("none",))


def test_the_probes_pass_on_the_kernels_in_use() -> None:
    prove_thread()
    arithmetic.prove_kernels()
