"""Commands of researchers and observers: announce, fetch, audit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.audit import Audit, audit
from gonka_trainer.app.carriers import carrier_name, task_sources
from gonka_trainer.app.opening import make_sender, open_client
from gonka_trainer.app.reading import RunReader
from gonka_trainer.app.visitor import Visitor
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sources import announce_on_kv, announce_on_memo
from gonka_trainer.cli import options
from gonka_trainer.cli.key_options import open_key
from gonka_trainer.cli.options import (
    ChainId,
    Denom,
    GasPrice,
    Grpc,
    Key,
    Prefix,
    Rpc,
    chain_config,
    parse_hash,
    read_manifest,
    run_async,
    start_logging,
)
from gonka_trainer.config import ChainConfig
from gonka_trainer.daemon.report import summary_document
from gonka_trainer.errors import ConfigError
from gonka_trainer.exchange.identity import load_or_create_identity
from gonka_trainer.ports import Receipt
from gonka_trainer.round.records import Announce
from gonka_trainer.round.summary import Note, RoundSummary
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import Address, Height

Name = Callable[[Address], str]
Run = Annotated[str, typer.Argument(help="A manifest's file, or its hash.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command, name in ((announce, "announce"), (fetch, "fetch"), (audit_, "audit")):
        app.command(name=name)(command)


def announce(
    manifest: Annotated[Path, typer.Argument(help="The manifest's file.")],
    key: Key,
    url: Annotated[str, typer.Option(help="Where the document can be had (https), if anywhere.")] = "",
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
) -> None:
    """Put a run on chain: hosts that agreed to its hash join it."""
    run_ = read_manifest(manifest)
    chain = chain_config(grpc, rpc, run_.manifest.chain_id, prefix, denom, gas_price)
    receipt = run_async(announce_run(chain, key, run_, url))
    typer.echo(f"run {run_.manifest.name} announced in block {receipt.height}: {receipt.tx_hash}")
    typer.echo(f"hosts agree with: gonka-trainer join {run_.hash.hex()}")


async def announce_run(chain: ChainConfig, key: Path, run_: Accepted, url: str) -> Receipt:
    """Announce over the manifest's carrier."""
    record = Announce(run_.hash, url.encode())
    async with open_client(chain) as client:
        sender = make_sender(client, chain, open_key(key), key.parent / f".{key.name}.sent")
        if run_.manifest.carrier == "memo":
            return await announce_on_memo(client, sender, record)
        _, receipt = await announce_on_kv(client, sender, record)
        return receipt


def fetch(
    run: Run,
    output: Annotated[Path, typer.Argument(help="A folder for the state.")],
    key: Key,
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
) -> None:
    """Get a run's final state from its hosts, checked against the root on chain. Joins as an observer."""
    start_logging(False)
    chain = chain_config(grpc, rpc, chain_id, prefix, denom, gas_price)
    number, root = run_async(_fetch(chain, key, run, output))
    typer.echo(f"state of round {number}, root {root}: {output / 'parameters.f32'}")


async def _fetch(chain: ChainConfig, key: Path, run: str, output: Path) -> tuple[int, str]:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror}", "name a folder that can be written") from error
    identity = load_or_create_identity(output / ".visitor" / "tls.pem")
    with ObjectStore(output / ".visitor" / "objects") as store:
        async with open_client(chain) as client:
            sender = make_sender(client, chain, open_key(key), output / ".visitor" / "sent")
            visitor = Visitor(client, sender, identity, store)
            run_ = await _manifest(client, visitor, run)
            number, root, stored = await visitor.final_state(run_)
        size_bytes = 4 * run_.manifest.layout.total_elements
        _copy_start(stored.payload, output / "parameters.f32", size_bytes)
    (output / "manifest.json").write_bytes(run_.document)
    facts = {"manifest": run_.hash.hex(), "round": number, "state_root": root.hex(), "state": stored.preamble.hex()}
    (output / "provenance.json").write_text(json.dumps(facts, indent=1) + "\n")
    return number, root.hex()


async def _manifest(client: ChainClient, visitor: Visitor, run: str) -> Accepted:
    path = Path(run)
    if path.exists():
        return read_manifest(path)
    wanted = parse_hash(run)
    found = [each for source in task_sources(client, frozenset({wanted})) for each in await source.runs(Height(1))]
    wrong = ConfigError(f"no announcement of {run} is on this chain", "check the hash and the chain node")
    earliest = {carrier_name(each): each for each in sorted(found, key=lambda each: -each.height)}
    for carrier, each in earliest.items():  # anybody can announce it where it is not
        try:
            return await visitor.manifest(wanted, carrier, each.height)
        except ConfigError as error:
            wrong = error
    raise wrong


def _copy_start(source: Path, target: Path, size_bytes: int) -> None:
    temporary = target.with_name(target.name + ".new")
    with source.open("rb") as reader, temporary.open("wb") as writer:
        while size_bytes > 0:
            piece = reader.read(min(size_bytes, 1 << 20))
            writer.write(piece)
            size_bytes -= len(piece)
    shutil.move(temporary, target)


def audit_(
    manifest: Annotated[Path, typer.Argument(help="The manifest's file.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    prefix: Prefix = "gonka",
) -> None:
    """Replay a run from the chain alone and say, round by round, what happened. Exit status 2: a record contradicts."""
    run_ = read_manifest(manifest)
    found = run_async(_audit(chain_config(grpc, rpc, run_.manifest.chain_id, prefix), run_))

    def name(address: Address) -> str:
        return encode_address(address, prefix)

    if as_json:
        rounds = [summary_document(summary, name) for summary in found.rounds]
        wrong = [
            {"height": n.height, "author": name(n.author) if n.author else "", "text": n.text}
            for n in found.contradictions
        ]
        typer.echo(json.dumps({"rounds": rounds, "contradictions": wrong}))
    else:
        _print(found, name)
    raise typer.Exit(2 if found.contradictions else 0)


async def _audit(chain: ChainConfig, run_: Accepted) -> Audit:
    async with open_client(chain) as client:
        return await audit(RunReader(client, run_))


def _line(note: Note, name: Name) -> str:
    author = "" if note.author is None else f"{name(note.author)}: "
    return f"block {note.height}: {author}{note.text}"


def _print(found: Audit, name: Name) -> None:
    console = Console()
    for summary in found.rounds:
        console.print(_round_table(summary, name))
    for note in found.ignored:
        console.print(_line(note, name), style="dim")
    for note in found.contradictions:
        console.print(f"CONTRADICTION: {_line(note, name)}", style="red")
    state = found.state
    root = "no round is final yet; initial root" if state.final is None else "final root"
    typer.echo(f"round {state.round}, {state.phase} at block {state.height}; {root} {state.final_root.hex()}")


def _round_table(summary: RoundSummary, name: Name) -> Table:
    heights = f"opened {summary.opened}, closed {summary.closed}, frozen {summary.frozen}, ended {summary.ended}"
    root = summary.root.hex() if summary.root else summary.reason
    table = Table(title=f"round {summary.round}: {summary.outcome} ({heights})\n{root}", title_justify="left")
    for column in ("participant", "weight", "commitment", "attested", "included", "posted root"):
        table.add_column(column)
    commitments = {who: c.hex()[:16] for who, c, _ in summary.commitments}
    attested = {who: str(len(held)) for who, held in summary.attestations}
    posted = {post.participant: post.root.hex()[:16] for post in summary.posts}
    for seat in summary.roster:
        who = seat.participant
        weight = f"{seat.weight}" if seat.voice else f"{seat.weight}, no voice"
        row = (commitments.get(who, "-"), attested.get(who, "-"), "yes" if who in summary.included else "no")
        table.add_row(name(who), weight, *row, posted.get(who, "-"))
    return table
