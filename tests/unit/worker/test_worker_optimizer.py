from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.tiny_run import INNER
from torch import nn

from gonka_trainer.types import ZERO_DIGEST, Digest
from gonka_trainer.worker.data import held_out
from gonka_trainer.worker.loop import inner_step
from gonka_trainer.worker.optimizer import OptimizerStore, learning_rate, make_optimizer
from gonka_trainer.worker.session import Session


def small(seed: int = 0) -> tuple[nn.Module, torch.optim.AdamW]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    return model, make_optimizer(model, INNER)


def step(model: nn.Module, optimizer: torch.optim.AdamW, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(5, 3)).astype(np.float32)
    optimizer.zero_grad()
    model(torch.from_numpy(values)).square().sum().backward()
    optimizer.step()


def states(optimizer: torch.optim.AdamW) -> list[bytes]:
    return [t.numpy().tobytes() for state in optimizer.state.values() for t in state.values()]


@pytest.fixture
def store(tmp_path: Path) -> OptimizerStore:
    return OptimizerStore(tmp_path / "resume", ZERO_DIGEST)


def trained(store: OptimizerStore, *rounds: int) -> tuple[nn.Module, torch.optim.AdamW]:
    model, optimizer = small()
    for number in rounds:
        step(model, optimizer, number)
        store.save(optimizer, model, number)
    return model, optimizer


def test_the_state_comes_back_bit_for_bit_and_goes_on_alike(store: OptimizerStore) -> None:
    model, optimizer = trained(store, 0, 1)
    copy, fresh = small()
    copy.load_state_dict(model.state_dict())
    assert store.restore(fresh, copy, 2) == 1
    assert states(fresh) == states(optimizer)
    step(model, optimizer, 9)
    step(copy, fresh, 9)
    assert states(fresh) == states(optimizer)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), copy.parameters(), strict=True))


@pytest.mark.parametrize(("wanted", "found"), [(0, None), (3, None), (4, 3), (5, 4), (9, 8)])
def test_a_round_starts_from_the_newest_earlier_one(store: OptimizerStore, wanted: int, found: int | None) -> None:
    trained(store, 3, 4) if wanted < 9 else trained(store, 3, 8)
    model, optimizer = small()
    assert store.restore(optimizer, model, wanted) == found
    assert bool(optimizer.state) == (found is not None)


def test_two_states_are_kept_and_a_round_done_again_replaces_its_own(store: OptimizerStore) -> None:
    trained(store, 0, 1, 2, 3)
    assert sorted(path.name for path in store.folder.iterdir()) == [f"round-{n:08d}.safetensors" for n in (2, 3)]
    model, optimizer = small()
    assert store.restore(optimizer, model, 3) == 2
    store.save(optimizer, model, 3)
    again = make_optimizer(model, INNER)
    assert store.restore(again, model, 4) == 3
    assert states(again) == states(optimizer)


def test_nothing_is_written_when_no_step_was_made(store: OptimizerStore) -> None:
    model, optimizer = small()
    store.save(optimizer, model, 0)
    assert not store.folder.exists()


def damage_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "one bit": damage_byte,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\xff" * 1000),
    "of another round": lambda path: path.write_bytes(path.with_name("round-00000000.safetensors").read_bytes()),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_state_is_told_and_the_start_is_fresh(
    store: OptimizerStore, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    trained(store, 0, 1)
    DAMAGE[kind](store.folder / "round-00000001.safetensors")
    model, optimizer = small()
    assert store.restore(optimizer, model, 2) is None
    assert not optimizer.state
    assert "starts fresh" in caplog.text
    assert "round-00000001" in caplog.text
    step(model, optimizer, 2)
    store.save(optimizer, model, 2)
    again = make_optimizer(model, INNER)
    assert store.restore(again, model, 3) == 2


def test_a_state_of_another_model_or_layout_is_refused(store: OptimizerStore, caplog: pytest.LogCaptureFixture) -> None:
    trained(store, 0)
    other = nn.Sequential(nn.Linear(3, 4))
    assert store.restore(make_optimizer(other, INNER), other, 1) is None
    assert "not this model's tensors" in caplog.text
    model, optimizer = small()
    assert replace(store, layout_root=Digest(b"\x01" * 32)).restore(optimizer, model, 1) is None


def test_other_files_in_the_folder_are_left_alone(store: OptimizerStore) -> None:
    store.folder.mkdir()
    for name in ("round-x.safetensors", "notes", "round-٣.safetensors"):
        (store.folder / name).touch()
    trained(store, 0, 1, 2)
    assert len(list(store.folder.iterdir())) == 5


def test_the_schedule_at_its_corners() -> None:
    inner = replace(INNER, learning_rate=1.0, warmup_steps=4, total_steps=24, final_ratio=0.2)
    rates = [learning_rate(inner, n) for n in (0, 3, 4, 14, 24, 1000)]
    assert rates == pytest.approx([0.25, 1.0, 1.0, 0.6, 0.2, 0.2])
    flat = replace(inner, warmup_steps=0, total_steps=0)
    assert learning_rate(flat, 0) == pytest.approx(1.0)


def test_only_matrices_decay() -> None:
    _, optimizer = small()
    decays = {p.dim(): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert decays == {2: INNER.weight_decay, 1: 0.0}


def test_a_step_sets_the_rate_of_every_group(session: Session) -> None:
    optimizer = make_optimizer(session.model, INNER)
    inner_step(session.model, optimizer, held_out(session.corpus, 32)[:2], 0.00125, 1.0)
    assert {group["lr"] for group in optimizer.param_groups} == {0.00125}
    assert len(optimizer.param_groups) == 2
