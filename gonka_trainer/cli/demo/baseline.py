"""One host alone: the same model, data and worker, as many inner steps as each host makes, and nothing averaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from gonka_trainer import jobs
from gonka_trainer.chain.address import encode_address
from gonka_trainer.cli.demo import recipe
from gonka_trainer.cli.spec_builder import make_manifest
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.manifest import Manifest, render_manifest
from gonka_trainer.ports import NodeInfo
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer
from gonka_trainer.types import Address, Height

_MEMBER = Address(bytes(19) + b"\x01")


async def run_baseline(out: Path) -> dict[str, Any]:
    """Train and evaluate; the result has the form of a report's curve."""
    folder = out / "baseline"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    node = NodeInfo("baseline", Height(1), Height(1), 0, syncing=False, version="", training_module=False)
    request = recipe.request(node, out / "corpus.txt", (encode_address(_MEMBER, "gonka"),), recipe.ROUNDS)
    manifest = make_manifest(request)
    (folder / "manifest.json").write_bytes(render_manifest(manifest))
    initial_parameters(manifest.layout, bytes.fromhex(manifest.init_seed)).tofile(folder / "0.f32")
    settings = WorkerSettings(folder / "manifest.json", out / "corpus.txt", folder)
    async with open_trainer(settings) as trainer:
        losses = await _train(trainer, manifest, folder)
    return {"hosts": {"alone": ""}, "inner_steps": manifest.inner.steps, "validation_loss": losses}


async def _train(trainer: Trainer, manifest: Manifest, folder: Path) -> dict[str, float]:
    losses = {"initial": (await trainer.evaluate("initial", str(folder / "0.f32"))).loss}
    for number in range(recipe.ROUNDS):
        base, output = folder / f"{number}.f32", folder / f"{number + 1}.f32"
        steps = manifest.inner.steps
        job = jobs.Train(number, _MEMBER.hex(), str(base), str(output), steps, number * steps, str(folder / "inner"))
        await trainer.train(job, lambda _: None)
        losses[str(number)] = (await trainer.evaluate(str(number), str(output))).loss
    return losses
