"""`gonka-trainer spec`: run manifests."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.opening import open_client
from gonka_trainer.app.rules import round_params
from gonka_trainer.cli import options
from gonka_trainer.cli.options import ChainId, Grpc, Prefix, Rpc, chain_config, read_manifest, run_async
from gonka_trainer.cli.spec_builder import Request, make_manifest
from gonka_trainer.config import ChainConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.manifest import render_manifest
from gonka_trainer.ports import NodeInfo

app = typer.Typer(no_args_is_help=True)
File = Annotated[Path, typer.Argument(help="The manifest's file.")]
_SECTIONS = ("inner", "outer", "windows", "end")


@app.command()
def new(
    output: File,
    model: Annotated[Path, typer.Option(help="A transformers config.json.")],
    data: Annotated[Path, typer.Option(help="The corpus: one text file, the same on every host.")],
    name: Annotated[str, typer.Option(help="What people call the run.")] = "run",
    participant: Annotated[
        list[str] | None, typer.Option(help="A member's account, repeated; none: chain weights.")
    ] = None,
    min_weight: Annotated[int, typer.Option(help="Weight below which the run waits; 0: two thirds of the list.")] = 0,
    carrier: Annotated[str, typer.Option(help="memo or kv; empty: what the chain has.")] = "",
    start_in: Annotated[int, typer.Option(help="Blocks from now to the first opening.")] = 50,
    codec: Annotated[str, typer.Option(help="int8, int4, bf16 or f32.")] = "int8",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="inner.steps=500, windows.train_blocks=300, ...")
    ] = None,
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
) -> None:
    """Make a run manifest: asks the chain node for its height, and the model for its parameters."""
    sections = _parse_settings(set_ or [])
    node = run_async(_ask(chain_config(grpc, rpc, chain_id, prefix)))
    request = Request(
        name=name,
        chain_id=node.chain_id,
        carrier=carrier or ("kv" if node.training_module else "memo"),
        log_height=node.height,
        start_height=node.height + start_in,
        model=_read_json(model),
        data=data,
        participants=tuple(participant or ()),
        min_weight=min_weight,
        codec=codec,
        inner=sections.get("inner", {}),
        outer=sections.get("outer", {}),
        windows=sections.get("windows", {}),
        end=sections.get("end", {}),
    )
    document = render_manifest(make_manifest(request))
    run_ = accept(document, str(output))
    round_params(run_.manifest, run_.hash, prefix)
    output.write_bytes(document)
    typer.echo(f"{output}: manifest {run_.hash.hex()}")


@app.command()
def check(file: File, prefix: Prefix = "gonka") -> None:
    """Check a manifest and say what it means."""
    run_ = read_manifest(file)
    params = round_params(run_.manifest, run_.hash, prefix)
    table = Table(title=Text(f"run {run_.manifest.name}"), show_header=False)
    for label, value in _explain(run_):
        table.add_row(label, Text(value))
    Console().print(table)
    typer.echo(f"run id        {params.run_id.hex()}\nmanifest hash {run_.hash.hex()}")


@app.command(name="hash")
def hash_(file: File) -> None:
    """Print a manifest's hash, which names the run."""
    typer.echo(read_manifest(file).hash.hex())


async def _ask(chain: ChainConfig) -> NodeInfo:
    async with open_client(chain) as client:
        return await client.info()


def _parse_settings(pairs: list[str]) -> dict[str, dict[str, Any]]:
    """Read SECTION.KEY=VALUE; values are TOML."""
    found: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        where, _, text = pair.partition("=")
        section, _, name = where.partition(".")
        if section not in _SECTIONS or not name or not text:
            raise ConfigError(f"--set {pair}: not SECTION.KEY=VALUE", f"sections: {', '.join(_SECTIONS)}")
        try:
            found.setdefault(section, {})[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found.setdefault(section, {})[name] = text
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "give the path of a manifest") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read(path))
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}", "give a transformers config.json") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: not an object", "give a transformers config.json")
    return value


def _explain(run_: Accepted) -> tuple[tuple[str, str], ...]:
    m = run_.manifest
    layout, inner, windows, members = m.layout, m.inner, m.windows, m.membership
    who = f"{len(members.participants)} participants of equal weight" if members.participants else "chain weights"
    longest = windows.train_blocks + windows.commit_blocks + windows.state_blocks
    longest += windows.attest_blocks * (1 + windows.extensions)
    return (
        ("chain, carrier", f"{m.chain_id}, {m.carrier}"),
        ("records count from", f"block {m.log_height}; first opening from block {m.start_height}"),
        ("model", f"{m.model.config.get('model_type')}, {layout.total_elements:,} parameters"),
        ("blob", f"{m.codec}, {layout.chunk_count} chunks of {m.chunk_elements:,} elements"),
        ("data", f"{m.data.size_bytes:,} bytes, {m.data.validation_bytes:,} held out"),
        ("a round", f"{inner.steps} inner steps of {inner.tokens_per_step:,} tokens, then one outer step"),
        ("inner", f"{inner.optimizer}, learning rate {inner.learning_rate}, warm-up {inner.warmup_steps} steps"),
        ("outer", f"learning rate {m.outer.learning_rate}, momentum {m.outer.momentum}, {m.outer.rule}"),
        ("windows", f"train {windows.train_blocks} blocks; at most {longest} blocks a round, PoC not counted"),
        ("members", f"{who}; waits below weight {members.min_weight}; dropped after {windows.absent_rounds} absences"),
        ("ends", f"after {m.end.rounds} rounds" if m.end.rounds else f"after {m.end.tokens:,} tokens"),
    )
