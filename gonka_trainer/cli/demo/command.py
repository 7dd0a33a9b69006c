"""`gonka-trainer demo`: the main job on one machine, from nothing."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.live import Live

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.opening import open_client
from gonka_trainer.cli.demo import collect, recipe, screen
from gonka_trainer.cli.demo.baseline import run_baseline
from gonka_trainer.cli.demo.corpus import write_corpus
from gonka_trainer.cli.demo.stage import Stage
from gonka_trainer.cli.options import run_async
from gonka_trainer.cli.run_commands import announce_run
from gonka_trainer.cli.spec_builder import make_manifest
from gonka_trainer.errors import ConfigError, UserError
from gonka_trainer.manifest import render_manifest

_MARK: Final = "gonka-trainer-demo"
_LINE_SECONDS: Final = 10.0

Out = Annotated[Path, typer.Option("--out", help="Where everything goes; an earlier demo there is removed.")]
Data = Annotated[Path | None, typer.Option("--data", help="A text file or folder of your own to train on.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(demo)
    app.command(name="demo-baseline")(demo_baseline)


def demo(
    out: Out = Path("demo-out"),
    data: Data = None,
    chain_version: Annotated[str, typer.Option(help="0.2.0 (training module), 0.2.11 or 0.2.16.")] = "0.2.16",
    rounds: Annotated[int, typer.Option(min=1, help="Outer steps.")] = recipe.ROUNDS,
    hosts: Annotated[int, typer.Option(min=2, max=16, help="Host daemons.")] = recipe.HOSTS,
    block_seconds: Annotated[float, typer.Option(help="Between blocks.")] = 1.0,
    timeout_seconds: Annotated[float, typer.Option(help="Give up after this long.")] = 1200.0,
) -> None:
    """Train a small model over an embedded chain with three hosts that do not trust each other."""
    baseline = _fresh(out)
    write_corpus(out / "corpus.txt", data)
    work = _demo(out, Stage(out, hosts, chain_version, block_seconds), rounds, timeout_seconds)
    report = run_async(work)
    collect.write(out / "report.json", report)
    screen.show(Console(), report)
    screen.draw(out / "loss.png", report, baseline)
    typer.echo(f"report: {out / 'report.json'}; picture: {out / 'loss.png'}")
    _judge(report, rounds)


def demo_baseline(
    out: Annotated[Path, typer.Option("--out", help="The demo's folder; its manifest and corpus are used.")] = Path(
        "demo-out"
    ),
    data: Data = None,
) -> None:
    """Train one host alone, with the demo's model, data and number of its own inner steps."""
    out.mkdir(exist_ok=True)
    (out / _MARK).touch()
    if data is not None or not (out / "corpus.txt").exists():
        write_corpus(out / "corpus.txt", data)
    baseline = run_async(run_baseline(out))
    collect.write(out / "baseline.json", baseline)
    for where, loss in baseline["validation_loss"].items():
        typer.echo(f"{where:>8}: {loss:.4f}")
    if (out / "report.json").exists():
        screen.draw(out / "loss.png", collect.read(out / "report.json"), baseline)
        typer.echo(f"drawn beside the hosts' curve: {out / 'loss.png'}")


async def _demo(out: Path, stage: Stage, rounds: int, timeout_seconds: float) -> dict[str, Any]:
    started = time.monotonic()
    async with stage:
        await stage.start_chain()
        run = await _make_run(out, stage, rounds)
        typer.echo(
            f"{len(stage.hosts)} hosts, {run.manifest.layout.total_elements:,} parameters, {rounds} rounds of"
            f" {run.manifest.inner.steps} inner steps (tx: own transactions, got: bytes fetched);"
            f" logs: {out}/host-N/daemon.log"
        )
        await stage.start_hosts(run, out / "corpus.txt")
        await announce_run(stage.chain, stage.researcher, run, "")
        try:
            async with asyncio.timeout(timeout_seconds):
                await _watch(stage, rounds, started)
        except TimeoutError as error:
            raise UserError(f"the run did not end in {timeout_seconds:.0f} s", f"see the logs in {out}") from error
        facts = {
            "run": run.manifest.name,
            "manifest_hash": run.hash.hex(),
            "chain_id": run.manifest.chain_id,
            "carrier": run.manifest.carrier,
            "parameters": run.manifest.layout.total_elements,
            "inner_steps": run.manifest.inner.steps,
            "seconds": round(time.monotonic() - started, 1),
        }
        return collect.report(stage.hosts, facts)


async def _make_run(out: Path, stage: Stage, rounds: int) -> Accepted:
    async with open_client(stage.chain) as client:
        node = await client.info()
    request = recipe.request(node, out / "corpus.txt", tuple(host.address for host in stage.hosts), rounds)
    document = render_manifest(await asyncio.to_thread(make_manifest, request))
    (out / "manifest.json").write_bytes(document)
    return accept(document, str(out / "manifest.json"))


async def _watch(stage: Stage, rounds: int, started: float) -> None:
    """Show progress until every host has ended and the last round is evaluated."""
    console, said = Console(), -_LINE_SECONDS
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        while True:
            stage.check()
            statuses = {host.name: collect.status(host) for host in stage.hosts}
            seconds = time.monotonic() - started
            if console.is_terminal:
                live.update(screen.live_table(statuses, seconds))
            elif seconds - said >= _LINE_SECONDS:
                said = seconds
                typer.echo(screen.line(statuses, seconds))
            if _over(stage, statuses):
                return
            await asyncio.sleep(0.5)


def _over(stage: Stage, statuses: dict[str, dict[str, Any]]) -> bool:
    if any(status.get("phase") != "ended" for status in statuses.values()):
        return False
    final = [line["round"] for line in collect.lines(stage.hosts[0], "rounds") if line["outcome"] == "final"]
    labels = {line["label"] for line in collect.lines(stage.hosts[0], "evaluations")}
    return not final or f"round {max(final)}" in labels


def _fresh(out: Path) -> dict[str, Any] | None:
    """Empty the demo's folder, but for a baseline that was run there; refuse to touch a folder that is not a demo's."""
    baseline = collect.read(out / "baseline.json") if (out / "baseline.json").exists() else None
    if out.exists() and any(out.iterdir()):
        if not (out / _MARK).exists():
            raise ConfigError(f"{out} is not empty and not a demo's", "name another folder with --out")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()
    if baseline is not None:
        collect.write(out / "baseline.json", baseline)
    return baseline


def _judge(report: dict[str, Any], rounds: int) -> None:
    """Exit with 1 when the hosts did not agree, or rounds are missing."""
    final = [r for r in report["rounds"] if r["outcome"] == "final"]
    disagreeing = [r["round"] for r in final if len({h["state_root"] for h in r["hosts"].values()} - {None}) != 1]
    if disagreeing or len(report["rounds"]) < rounds or not final:
        typer.echo(
            f"rounds: {len(report['rounds'])} of {rounds}, {len(final)} final; disagreeing: {disagreeing}", err=True
        )
        raise typer.Exit(1)
