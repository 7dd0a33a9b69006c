"""Several machines for one host's worker: NODE_RANK, NNODES, MASTER_ADDR, MASTER_PORT, as a reserved shard has them.

docs/trainshards.md says which machine runs what. The variables are torchrun's own terms: machine NODE_RANK of NNODES,
and where machine 0 listens for the others.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gonka_trainer.errors import ConfigError
from gonka_trainer.text import printable
from gonka_trainer.trainer.child import LEASH, start, tail

_LOG: Final = logging.getLogger(__name__)
_MAX_NODES: Final = 1024
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_REMEDY: Final = "docs/trainshards.md says what the four variables hold"
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 5.0
_WORKER: Final = (*LEASH, sys.executable, "-m", "gonka_trainer.worker")


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Machine `node_rank` of `nodes`; machine 0 listens at `address`:`port`."""

    node_rank: int
    nodes: int
    address: str
    port: int

    @property
    def flags(self) -> tuple[str, ...]:
        """The arguments that make torchrun meet the other machines' agents."""
        return (
            f"--nnodes={self.nodes}",
            f"--node-rank={self.node_rank}",
            f"--master-addr={self.address}",
            f"--master-port={self.port}",
        )


STANDALONE: Final = ("--standalone",)


def read_rendezvous(environment: Mapping[str, str]) -> Rendezvous:
    """Read the four variables; ConfigError names the one that is missing or wrong, and its value."""
    if "LOCAL_RANK" in environment:
        raise ConfigError(
            f"LOCAL_RANK={printable(environment['LOCAL_RANK'], 40)} is set: this process was started by torchrun",
            "start gonka-trainer itself: it starts torchrun",
        )
    nodes = _number(environment, "NNODES", 1, _MAX_NODES)
    node_rank = _number(environment, "NODE_RANK", 0, nodes - 1)
    address = _text(environment, "MASTER_ADDR")
    if not _HOST.fullmatch(address):
        raise _wrong("MASTER_ADDR", address, "no host name or address")
    return Rendezvous(node_rank, nodes, address, _number(environment, "MASTER_PORT", 1, 65535))


def _text(environment: Mapping[str, str], name: str) -> str:
    if name not in environment:
        raise ConfigError(f'{name} is not set, and worker.rendezvous is "environment"', _REMEDY)
    return environment[name]


def _number(environment: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = _text(environment, name)
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and least <= int(text) <= most):
        raise _wrong(name, text, f"no whole number from {least} to {most}")
    return int(text)


def _wrong(name: str, value: str, what: str) -> ConfigError:
    return ConfigError(f"{name}={printable(value, 80)!r} is {what}", _REMEDY)


def torchrun(rendezvous: Rendezvous | None, processes: int) -> tuple[str, ...]:
    """Return the agent's command up to the worker's own flags; None: this machine alone."""
    place = STANDALONE if rendezvous is None else rendezvous.flags
    agent = (sys.executable, "-m", "torch.distributed.run", *place, f"--nproc-per-node={processes}")
    return (*agent, "--max-restarts=0", "--no-python", *_WORKER)


async def run_agent(rendezvous: Rendezvous, data: Path, processes: int, threads: int, log: Path) -> None:
    """Be one of a host's other machines until cancelled: meet machine 0's agent, train with it, and meet it again.

    It has no daemon and no job link. An agent ends when its worker does: with machine 0's worker (proof of compute, a
    run that is over), or by a fault; either way the next one waits for machine 0. Growing pauses between failures.
    """
    command = (*torchrun(rendezvous, processes), "--data", str(data), "--threads", str(threads))
    pause_seconds = _FIRST_PAUSE_SECONDS
    while True:
        place = f"{rendezvous.address}:{rendezvous.port}"
        _LOG.info("machine %d of %d: waiting for machine 0 at %s", rendezvous.node_rank, rendezvous.nodes, place)
        child = await start(command, log)
        try:
            await child.ended()
        finally:
            await child.stop(_STOP_SECONDS)
        if child.status == 0:
            pause_seconds = _FIRST_PAUSE_SECONDS
        else:
            _LOG.warning("the agent ended with status %s; the end of %s:\n%s", child.status, log, tail(log))
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(_LONGEST_PAUSE_SECONDS, pause_seconds * 2)
