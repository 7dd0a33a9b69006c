"""`gonka-trainer keys`: the host's account key, and who speaks for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gonka_trainer.app.leaving import publish_record
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.keys import create_key, load_key
from gonka_trainer.cli import options
from gonka_trainer.cli.options import (
    ChainId,
    Denom,
    GasPrice,
    Grpc,
    Key,
    Prefix,
    Rpc,
    chain_config,
    read_manifest,
    run_async,
)
from gonka_trainer.errors import ConfigError
from gonka_trainer.round.records import Delegate, Revoke

app = typer.Typer(no_args_is_help=True)
KeyFile = Annotated[Path, typer.Argument(help="The key's file.")]


@app.command()
def new(file: KeyFile, prefix: Prefix = "gonka") -> None:
    """Make an account key in a new file that only you can read, and say its address."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{file.parent}: {error.strerror}", "name a file in a folder that can be written") from error
    typer.echo(encode_address(create_key(file).address, prefix))


@app.command()
def show(file: KeyFile, prefix: Prefix = "gonka") -> None:
    """Say the address of a key."""
    typer.echo(encode_address(load_key(file).address, prefix))


@app.command()
def delegate(
    manifest: Annotated[Path, typer.Argument(help="The run's manifest.")],
    speaker: Annotated[str, typer.Argument(help="The address of the daemon's key.")],
    key: Key,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the word back instead.")] = False,
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
) -> None:
    """Let the daemon's key speak for the account of --key in a run; signed by that account, once."""
    run_ = read_manifest(manifest)
    named = parse_address(speaker, prefix, "speaker")
    kind = Revoke if revoke else Delegate
    chain = chain_config(grpc, rpc, chain_id or run_.manifest.chain_id, prefix, denom, gas_price)
    folder = key.parent / f".{key.name}.sent"
    receipt = run_async(publish_record(chain, folder, load_key(key), run_, lambda height: kind(named, height)))
    typer.echo(f"in block {receipt.height}: {receipt.tx_hash}")
