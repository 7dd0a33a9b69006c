"""Trains the demo's tiny Llama as a few hosts would, and leaves each round's pseudo-gradients of the first host.

    python bench/pseudo_gradients.py FOLDER [--rounds 6] [--hosts 2]

Round r is `FOLDER/gradient-r.f32`, float32 little-endian in the layout's order, and `FOLDER/layout.json` says how many
elements and chunks. Rounds follow one another as in a run: each host its own inner optimizer, the mean of all hosts
applied with the demo's outer settings, uncompressed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from gonka_trainer.chain.address import encode_address
from gonka_trainer.cli.demo import recipe
from gonka_trainer.cli.demo.corpus import write_corpus
from gonka_trainer.cli.spec_builder import make_manifest
from gonka_trainer.gradient.arrays import F32
from gonka_trainer.gradient.initial import initial_parameters
from gonka_trainer.jobs import Train
from gonka_trainer.manifest import Manifest
from gonka_trainer.ports import NodeInfo
from gonka_trainer.types import Address, Height


def manifest_of(folder: Path, hosts: int, rounds: int) -> Manifest:
    """Return the demo's manifest for hosts without accounts, over the corpus in the folder."""
    node = NodeInfo("bench", Height(1), Height(1), 0, syncing=False, version="", training_module=False)
    addresses = tuple(encode_address(Address(bytes(19) + bytes([host + 1])), "gonka") for host in range(hosts))
    asked = recipe.request(node, folder / "corpus.txt", addresses, rounds)
    return make_manifest(replace(asked, init_seed=bytes(32).hex()))  # the same start each time


def train(folder: Path, hosts: int, rounds: int) -> None:
    """Train, and write the files."""
    from gonka_trainer.worker.session import open_session

    write_corpus(folder / "corpus.txt", None)
    manifest = manifest_of(folder, hosts, rounds)
    session = open_session(manifest, folder / "corpus.txt", threads=1)
    base: F32 = initial_parameters(manifest.layout, bytes.fromhex(manifest.init_seed))
    momentum = np.zeros_like(base)
    for number in range(rounds):
        made = [gradient(session, folder, base, host, number) for host in range(hosts)]
        made[0].astype("<f4").tofile(folder / f"gradient-{number}.f32")
        mean = np.mean(made, axis=0, dtype=np.float32)
        mu = np.float32(manifest.outer.momentum)
        momentum = mu * momentum + mean
        base = base - np.float32(manifest.outer.learning_rate) * (mean + mu * momentum)
    sizes = {"elements": manifest.layout.total_elements, "chunk_elements": manifest.chunk_elements, "rounds": rounds}
    (folder / "layout.json").write_text(json.dumps(sizes | {"hosts": hosts, "inner_steps": manifest.inner.steps}))


def gradient(session, folder: Path, base: F32, host: int, number: int) -> F32:  # type: ignore[no-untyped-def]
    """Return what one host's round of inner steps gives."""
    from threading import Event

    from gonka_trainer.worker.loop import train_round

    start, end, inner = folder / "base.f32", folder / "local.f32", folder / f"inner-{host}"
    inner.mkdir(exist_ok=True)
    base.astype("<f4").tofile(start)
    steps = session.manifest.inner.steps
    member = (bytes(19) + bytes([host + 1])).hex()
    job = Train(number, member, str(start), str(end), steps, number * steps, str(inner), "")
    done = train_round(session, job, Event(), Event(), lambda _: None)
    print(f"round {number}, host {host}: loss {done.mean_loss:.3f}", flush=True)
    return base - np.fromfile(end, "<f4")


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--hosts", type=int, default=2)
    asked = parser.parse_args()
    train(asked.folder, asked.hosts, asked.rounds)


if __name__ == "__main__":
    main()
