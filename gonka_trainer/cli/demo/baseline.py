"""One host alone: the same model, data and worker, as many inner steps as each host makes, and nothing averaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from gonka_trainer import jobs
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.cli.demo import recipe
from gonka_trainer.cli.spec_builder import make_manifest
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.manifest import Manifest, load_manifest, render_manifest
from gonka_trainer.ports import NodeInfo
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer
from gonka_trainer.types import Address, Height

_ALONE: Final = Address(bytes(19) + b"\x01")


async def run_baseline(out: Path) -> dict[str, Any]:
    """Train and evaluate; the result has the form of a report's curve."""
    folder = out / "baseline"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    manifest = _manifest(out)
    (folder / "manifest.json").write_bytes(render_manifest(manifest))
    initial_parameters(manifest.layout, bytes.fromhex(manifest.init_seed)).tofile(folder / "0.f32")
    settings = WorkerSettings(folder / "manifest.json", out / "corpus.txt", folder)
    async with open_trainer(settings) as trainer:
        losses = await _train(trainer, manifest, folder)
    return {"hosts": {"alone": ""}, "inner_steps": manifest.inner.steps, "validation_loss": losses}


def _manifest(out: Path) -> Manifest:
    """Return the demo's own manifest, so that both start alike; one like it where no demo was run."""
    if (out / "manifest.json").exists():
        return load_manifest(out / "manifest.json")
    node = NodeInfo("baseline", Height(1), Height(1), 0, syncing=False, version="", training_module=False)
    return make_manifest(recipe.request(node, out / "corpus.txt", (encode_address(_ALONE, "gonka"),), recipe.ROUNDS))


def _member(manifest: Manifest) -> str:
    """Return whose samples the one host reads, hex: those of the first on the list."""
    return parse_address(manifest.membership.participants[0], "gonka", "manifest").hex()


async def _train(trainer: Trainer, manifest: Manifest, folder: Path) -> dict[str, float]:
    losses = {"initial": (await trainer.evaluate("initial", str(folder / "0.f32"))).loss}
    for number in range(manifest.end.rounds):
        base, output = folder / f"{number}.f32", folder / f"{number + 1}.f32"
        steps = manifest.inner.steps
        job = jobs.Train(
            number, _member(manifest), str(base), str(output), steps, number * steps, str(folder / "inner"), ""
        )
        await trainer.train(job, lambda _: None)
        losses[str(number)] = (await trainer.evaluate(str(number), str(output))).loss
    return losses
