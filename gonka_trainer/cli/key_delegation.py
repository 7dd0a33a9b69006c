"""`gonka-trainer keys delegate` and `keys broadcast`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.key_delegation import Terms, read_slip, sign_record, write_slip
from gonka_trainer.app.key_delegation import broadcast as broadcast_slip
from gonka_trainer.app.leaving import publish_record
from gonka_trainer.app.opening import decimal_setting, open_client
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.transactions import Fee
from gonka_trainer.chain.watcher import Included
from gonka_trainer.cli import options
from gonka_trainer.cli.key_options import PassphraseFile, open_key
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
from gonka_trainer.config import ChainConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.round.records import Delegate, Revoke
from gonka_trainer.text import printable
from gonka_trainer.types import Height

_OFFLINE = "With --offline: "
_WAIT_BLOCKS = 30
_MOST = (1 << 63) - 1


def delegate(
    manifest: Annotated[Path, typer.Argument(help="The run's manifest.")],
    speaker: Annotated[str, typer.Argument(help="The address of the daemon's key.")],
    key: Key,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the word back instead.")] = False,
    passphrase_file: PassphraseFile = "",
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
    offline: Annotated[Path | None, typer.Option(help="Sign only, into this new file, for `keys broadcast`.")] = None,
    account_number: Annotated[
        int, typer.Option(min=-1, max=_MOST, help=_OFFLINE + "the account's number on chain.")
    ] = -1,
    sequence: Annotated[int, typer.Option(min=-1, max=_MOST, help=_OFFLINE + "the account's next sequence.")] = -1,
    height: Annotated[int, typer.Option(min=0, max=_MOST, help=_OFFLINE + "the height of a recent block.")] = 0,
    gas: Annotated[int, typer.Option(min=1, max=_MOST, help=_OFFLINE + "the gas limit.")] = 200_000,
    fee: Annotated[
        int, typer.Option(min=-1, help=_OFFLINE + "the fee in the smallest unit; -1: gas times price.")
    ] = -1,
    fee_granter: Annotated[str, typer.Option(help=_OFFLINE + "who pays the fee, if not the account.")] = "",
    good_until: Annotated[
        int, typer.Option(min=0, max=_MOST, help=_OFFLINE + "the last block that may hold it; 0: any.")
    ] = 0,
    task: Annotated[int, typer.Option(min=0, max=_MOST, help=_OFFLINE + "the run's task, on carrier kv.")] = 0,
) -> None:
    """Let the daemon's key speak for the account of --key in a run; signed by that account, once.

    --offline FILE needs no network: the file holds the signed transaction, and no secret. The record says the height
    at which it was written: it counts when that is above the account's last one and not above its block's.
    """
    run_ = read_manifest(manifest)
    named = parse_address(speaker, prefix, "speaker")
    kind = Revoke if revoke else Delegate
    if offline is None:
        chain = chain_config(grpc, rpc, chain_id or run_.manifest.chain_id, prefix, denom, gas_price)
        _send(chain, key, passphrase_file, run_, lambda written: kind(named, written))
        return
    if min(account_number, sequence) < 0 or height <= 0:
        raise ConfigError("--offline needs --account-number, --sequence and --height", "an explorer shows all three")
    payment = Fee(gas, _fee(fee, gas, gas_price), denom, fee_granter)
    terms = Terms(prefix, account_number, sequence, good_until, payment, task)
    slip = sign_record(open_key(key, passphrase_file), run_, kind(named, Height(height)), terms)
    write_slip(offline, slip)
    typer.echo(f"{offline}: {slip.says}\nbring it to a machine with network: gonka-trainer keys broadcast {offline}")


def _send(
    chain: ChainConfig, key: Path, passphrase_file: str, run: Accepted, record: Callable[[Height], Delegate | Revoke]
) -> None:
    folder = key.parent / f".{key.name}.sent"
    receipt = run_async(publish_record(chain, folder, open_key(key, passphrase_file), run, record))
    typer.echo(f"in block {receipt.height}: {receipt.tx_hash}")


def _fee(fee: int, gas: int, gas_price: str) -> int:
    return fee if fee >= 0 else math.ceil(gas * decimal_setting(gas_price, "--gas-price"))


def broadcast(
    file: Annotated[Path, typer.Argument(help="What `keys delegate --offline` wrote.")],
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    prefix: Prefix = "gonka",
    wait_blocks: Annotated[int, typer.Option(min=1, help="How many blocks to wait for it.")] = _WAIT_BLOCKS,
) -> None:
    """Bring a transaction that was signed elsewhere on chain, and wait for its block."""
    slip = read_slip(file)
    typer.echo(printable(slip.says))
    found = run_async(_broadcast(chain_config(grpc, rpc, slip.chain_id, prefix), file, wait_blocks))
    typer.echo(f"in block {found.height}")


async def _broadcast(chain: ChainConfig, file: Path, wait_blocks: int) -> Included:
    async with open_client(chain) as client:
        return await broadcast_slip(client, read_slip(file), wait_blocks)
