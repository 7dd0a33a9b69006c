"""Reading what the hosts report: live status, and the final report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gonka_trainer.cli.demo.stage import DemoHost


def status(host: DemoHost) -> dict[str, Any]:
    """Return the host's status, empty before its daemon wrote one."""
    for path in (host.data / "runs").glob("*/status.json"):
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    return {}


def lines(host: DemoHost, name: str) -> list[dict[str, Any]]:
    """Return a report file's lines; a line that is still being written is left out."""
    found = []
    for path in (host.data / "runs").glob(f"*/{name}.jsonl"):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                found.append(json.loads(line))
    return found


def report(hosts: tuple[DemoHost, ...], run: dict[str, Any]) -> dict[str, Any]:
    """Return everything about the run, from what all hosts reported."""
    own = {host.name: {line["round"]: line["own"] for line in lines(host, "rounds")} for host in hosts}
    losses = {line["label"]: line["loss"] for line in lines(hosts[0], "evaluations")}
    transactions = {host.name: lines(host, "transactions") for host in hosts}
    names = {host.address: host.name for host in hosts}
    rounds = [_round(line, hosts, own, transactions, names, losses) for line in lines(hosts[0], "rounds")]
    return {
        **run,
        "hosts": {host.name: host.address for host in hosts},
        "validation_loss": {
            "initial": losses.get("initial"),
            **{str(r["round"]): r["validation_loss"] for r in rounds},
        },
        "rounds": rounds,
        "transactions": transactions,
    }


def _round(
    line: dict[str, Any],
    hosts: tuple[DemoHost, ...],
    own: dict[str, dict[int, Any]],
    transactions: dict[str, list[dict[str, Any]]],
    names: dict[str, str],
    losses: dict[str, float],
) -> dict[str, Any]:
    number = line["round"]
    members = {}
    for host in hosts:
        made = own[host.name].get(number, {})
        state = line["states"].get(host.address, {})
        members[host.name] = {
            "commitment": line["commitments"].get(host.address, {}).get("commitment"),
            "blob_digest": made.get("payload_root"),
            "blob_bytes": made.get("blob_bytes"),
            "tokens": made.get("tokens"),
            "inner_steps": made.get("inner_steps"),
            "train_loss": made.get("mean_loss"),
            "attested": sorted(names.get(a, a) for a in line["attestations"].get(host.address, [])),
            "state_root": state.get("root"),
            "transactions": [t["hash"] for t in transactions[host.name] if t["round"] == number],
        }
    return {
        "round": number,
        "outcome": line["outcome"],
        "reason": line["reason"],
        "heights": line["heights"],
        "base_root": line["base_root"],
        "state_root": line["root"],
        "included": sorted(names.get(a, a) for a in line["included"]),
        "validation_loss": losses.get(f"round {number}"),
        "hosts": members,
    }


def write(path: Path, value: Any) -> None:
    """Write a JSON file for people and programs."""
    path.write_text(json.dumps(value, indent=1) + "\n")


def read(path: Path) -> dict[str, Any]:
    """Read a file that `write` made."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found
