"""A checkpoint as one line of text, for an operator to hand to another (docs/runs.md, Checkpoints).

    checkpoint/1/RUN/HEIGHT/ROUND/ROOT/ENVIRONMENT/ROSTER/TASK@HOST:PORT#SPKI,...

Digests in hex; TASK is the run's task on the kv carrier, 0 on memo. All before the @ is the same from every host of the
run; behind it stand hosts from which the rest can be had, each with the digest of its TLS key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gonka_trainer.errors import ConfigError
from gonka_trainer.ports import Endpoint
from gonka_trainer.round.resuming import Checkpoint
from gonka_trainer.text import printable
from gonka_trainer.types import ADDRESS_BYTES, Address, Digest, Height

MOST_PEERS: Final = 8
_REMEDY: Final = "give the whole line that `gonka-trainer checkpoint` printed on a host of the run"
_NUMBER: Final = "(0|[1-9][0-9]{0,18})"
_DIGEST: Final = "([0-9a-f]{64})"
_FORM: Final = re.compile(
    f"checkpoint/1/{_DIGEST}/{_NUMBER}/{_NUMBER}/{_DIGEST}/{_DIGEST}/{_DIGEST}/{_NUMBER}@([!-~]+)", re.ASCII
)
_PEER: Final = re.compile(f"([A-Za-z0-9.:-]{{1,64}}):([1-9][0-9]{{0,4}})#{_DIGEST}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CheckpointText:
    """What the line says. `peers` are named by their TLS keys: who they speak for is in no checkpoint."""

    run_id: Digest
    checkpoint: Checkpoint
    task_id: int
    peers: tuple[Endpoint, ...]


def render_checkpoint(said: CheckpointText) -> str:
    """Return the line."""
    c = said.checkpoint
    digests = "/".join(digest.hex() for digest in (c.root, c.environment, c.roster))
    peers = ",".join(f"{peer.host}:{peer.port}#{peer.spki.hex()}" for peer in said.peers)
    return f"checkpoint/1/{said.run_id.hex()}/{c.height}/{c.round}/{digests}/{said.task_id}@{peers}"


def parse_checkpoint(text: str, where: str) -> CheckpointText:
    """Read the line; ConfigError when it is anything else, naming `where` it stands."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{where}: {printable(text)!r:.60} is no checkpoint", _REMEDY)
    run, height, number, root, environment, roster, task, peers = found.groups()
    checkpoint = Checkpoint(Height(int(height)), int(number), _digest(root), _digest(environment), _digest(roster))
    return CheckpointText(_digest(run), checkpoint, int(task), _peers(peers, where))


def peer_of(host: str, port: int, spki: Digest) -> Endpoint:
    """Return an endpoint of somebody of whom no more is known than its TLS key."""
    return Endpoint(Address(spki[:ADDRESS_BYTES]), host, port, spki)


def _peers(text: str, where: str) -> tuple[Endpoint, ...]:
    found = [_PEER.fullmatch(part) for part in text.split(",")]
    if len(found) > MOST_PEERS:
        raise ConfigError(f"{where}: {len(found)} hosts in a checkpoint, at most {MOST_PEERS}", _REMEDY)
    peers = []
    for match, part in zip(found, text.split(","), strict=True):
        if match is None or int(match.group(2)) > 65535:
            raise ConfigError(f"{where}: {printable(part)!r:.120} is not HOST:PORT#KEY", _REMEDY)
        peers.append(peer_of(match.group(1), int(match.group(2)), _digest(match.group(3))))
    return tuple(peers)


def _digest(text: str) -> Digest:
    return Digest(bytes.fromhex(text))
