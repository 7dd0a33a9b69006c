"""`gonka-trainer task`: training tasks of the chain's module, and every run on chain as this host's list sees it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.opening import make_sender, open_client
from gonka_trainer.app.rules import parse_address
from gonka_trainer.app.tasklist import Listed, list_tasks
from gonka_trainer.chain.hardware import Hardware, Match, matches
from gonka_trainer.chain.sources import announce_on_kv
from gonka_trainer.chain.tasks import Assignee, Step, Task, TaskDesk
from gonka_trainer.cli import options
from gonka_trainer.cli.key_options import open_key
from gonka_trainer.cli.options import (
    DEFAULT_CONFIG,
    ChainId,
    ConfigPath,
    Denom,
    GasPrice,
    Grpc,
    Key,
    Prefix,
    Rpc,
    chain_config,
    host_config,
    read_manifest,
    run_async,
)
from gonka_trainer.cli.task_views import hardware_text, print_matches, stands, summary
from gonka_trainer.config import ChainConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.ports import Receipt
from gonka_trainer.round.records import Announce

app = typer.Typer(no_args_is_help=True)
TaskId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The task's number.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Participant = Annotated[
    str, typer.Option("--participant", help="The account that acts, if --key acts for it by a grant (authz).")
]


@app.command()
def create(
    manifest: Annotated[Path, typer.Argument(help="The manifest's file.")],
    key: Key,
    hardware: Annotated[
        list[str] | None, typer.Option("--hardware", metavar="TYPE=COUNT", help="What the task asks for; repeatable.")
    ] = None,
    url: Annotated[str, typer.Option(help="Where the document can be had (https), if anywhere.")] = "",
    participant: Participant = "",
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
) -> None:
    """Create a training task for a run and announce the run under it. The signer is its requester."""
    run = read_manifest(manifest)
    if run.manifest.carrier != "kv":
        raise ConfigError(
            f"{manifest}: its records go over {run.manifest.carrier}, not over a task", "`gonka-trainer announce` it"
        )
    chain = chain_config(grpc, rpc, run.manifest.chain_id, prefix, denom, gas_price)
    wanted = tuple(parse_hardware(each) for each in hardware or ())
    task, receipt, found = run_async(_create(chain, key, participant, run, wanted, url))
    typer.echo(f"task {task.id} for run {run.manifest.name}; announced in block {receipt.height}: {receipt.tx_hash}")
    typer.echo(f"hosts agree with: gonka-trainer join {run.hash.hex()}")
    print_matches(found)


async def _create(
    chain: ChainConfig, key: Path, participant: str, run: Accepted, wanted: tuple[Hardware, ...], url: str
) -> tuple[Task, Receipt, tuple[Match, ...]]:
    async with open_client(chain) as client:
        desk = TaskDesk(client)
        hosts = await desk.hosts() if await client.has_training_module() else ()
        acts_for = parse_address(participant, chain.prefix, "--participant") if participant else None
        sender = make_sender(client, chain, open_key(key), key.parent / f".{key.name}.sent", acts_for)
        await desk.all()  # says it where there is no module
        task_id, receipt = await announce_on_kv(client, sender, Announce(run.hash, url.encode()), wanted)
        task = await desk.one(task_id)
        return task, receipt, matches(task.hardware, hosts)


@app.command()
def claim(
    task_id: TaskId,
    key: Key,
    participant: Participant = "",
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
) -> None:
    """Claim a task for assignment. Others may too: what stands then is said. Exit status 2: not as you wanted."""
    chain = chain_config(grpc, rpc, chain_id, prefix, denom, gas_price)
    step = run_async(_step(chain, key, participant, task_id, None))
    _tell(step, "claimed")


@app.command()
def assign(
    task_id: TaskId,
    assignees: Annotated[list[str], typer.Argument(metavar="PARTICIPANT=NODE[,NODE...]", help="Who trains, on what.")],
    key: Key,
    participant: Participant = "",
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
    denom: Denom = "ngonka",
    gas_price: GasPrice = "0",
) -> None:
    """Assign a task to participants' nodes, by their local ids. Exit status 2: somebody else has assigned it."""
    chain = chain_config(grpc, rpc, chain_id, prefix, denom, gas_price)
    named = tuple(parse_assignee(each, prefix) for each in assignees)
    _tell(run_async(_step(chain, key, participant, task_id, named)), "assigned")


async def _step(
    chain: ChainConfig, key: Path, participant: str, task_id: int, assignees: tuple[Assignee, ...] | None
) -> Step:
    acts_for = parse_address(participant, chain.prefix, "--participant") if participant else None
    async with open_client(chain) as client:
        sender = make_sender(client, chain, open_key(key), key.parent / f".{key.name}.sent", acts_for)
        desk = TaskDesk(client)
        if assignees is None:
            return await desk.claim(sender, task_id)
        return await desk.assign(sender, task_id, assignees)


def _tell(step: Step, wanted: str) -> None:
    """Say what was done and what stands; leave with status 2 when that is not what was wanted."""
    if step.refusal:
        typer.echo(step.refusal, err=True)
    if step.stands:
        done = f"{wanted} by transaction {step.tx_hash}" if step.tx_hash else f"{wanted} so already, nothing was sent"
        typer.echo(f"task {step.task.id}: {done}")
    else:
        why = "somebody else came first" if not step.tx_hash else "somebody else went over it"
        typer.echo(f"task {step.task.id}: not {wanted} as you asked: {why}; trying again blindly does not help")
    typer.echo(stands(step.task))
    raise typer.Exit(0 if step.stands else 2)


@app.command(name="list")
def list_(
    config: ConfigPath = DEFAULT_CONFIG,
    everything: Annotated[bool, typer.Option("--all", help="Also tasks that are no runs of this program.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every run on chain: whether this host takes part in it, and if not, why. Starts and fetches nothing."""
    found = run_async(list_tasks(host_config(config), everything))
    if as_json:
        typer.echo(json.dumps([each.document() for each in found]))
        return
    if not found:
        typer.echo("no run is on chain")
        return
    for each in found:
        typer.echo(summary(each))


@app.command()
def show(
    task_id: TaskId,
    as_json: AsJson = False,
    grpc: Grpc = options.DEFAULT_GRPC,
    rpc: Rpc = options.DEFAULT_RPC,
    chain_id: ChainId = "",
    prefix: Prefix = "gonka",
) -> None:
    """Show a task, and which participants have the hardware that it asks for."""
    task, found = run_async(_show(chain_config(grpc, rpc, chain_id, prefix), task_id))
    if as_json:
        facts = Listed(None, task, ()).document()["task"]
        facts["manifest"] = task.manifest.manifest_hash.hex() if task.manifest else None
        typer.echo(json.dumps({**facts, "matches": [asdict(each) for each in found]}))
        return
    typer.echo(f"task {task.id}: {task.dataset or 'no dataset'}")
    if task.hardware:
        typer.echo(f"  asks for {hardware_text(task.hardware)}")
    typer.echo(stands(task))
    print_matches(found)


async def _show(chain: ChainConfig, task_id: int) -> tuple[Task, tuple[Match, ...]]:
    async with open_client(chain) as client:
        desk = TaskDesk(client)
        task = await desk.one(task_id)
        return task, matches(task.hardware, await desk.hosts())


def parse_hardware(text: str) -> Hardware:
    """Read TYPE=COUNT."""
    kind, sign, count = text.rpartition("=")
    if not sign or not kind.strip() or not (count.isascii() and count.isdigit()) or not 0 < int(count) < 1 << 32:
        raise ConfigError(f"--hardware {text!r} is not TYPE=COUNT", 'such as --hardware "NVIDIA H100 80GB=8"')
    return kind, int(count)


def parse_assignee(text: str, prefix: str) -> Assignee:
    """Read PARTICIPANT=NODE[,NODE...]."""
    participant, sign, nodes = text.partition("=")
    named = tuple(nodes.split(","))
    if not sign or not all(node.strip() for node in named):
        raise ConfigError(f"{text!r} is not PARTICIPANT=NODE[,NODE...]", "such as gonka1...=node1,node2")
    parse_address(participant, prefix, "assignee")
    return participant, named
