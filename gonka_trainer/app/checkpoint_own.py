"""A host's own latest checkpoint, from its data directory; the daemon may be running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.app.checkpoint_store import known_task
from gonka_trainer.app.checkpoint_text import MOST_PEERS, CheckpointText, peer_of
from gonka_trainer.app.host import run_folder
from gonka_trainer.app.rules import round_params
from gonka_trainer.config import Config
from gonka_trainer.daemon.gate import endpoint_of
from gonka_trainer.errors import ConfigError
from gonka_trainer.ports import Endpoint
from gonka_trainer.round import machine
from gonka_trainer.round.membership import Membership
from gonka_trainer.round.params import Local, RoundParams
from gonka_trainer.round.resuming import checkpoint_of
from gonka_trainer.round.roster_bytes import RosterState, decode_roster
from gonka_trainer.storage.journal import read_events
from gonka_trainer.types import Digest

_READER = Local(None, None, wants_membership=False)


def own_checkpoint(config: Config, run: Digest | None) -> CheckpointText:
    """Return the checkpoint of the latest round that opened here; ConfigError when there is none.

    `run` is the manifest's hash, None where this host is in one run only.
    """
    accepted = _chosen(config, run)
    folder = run_folder(config, accepted)
    params = round_params(accepted.manifest, accepted.hash, config.chain.prefix)
    covered, members = _latest(params, folder / "journal" / "events")
    task = known_task(folder)
    if accepted.manifest.carrier == "kv" and not task:
        raise ConfigError(f"{folder}: the run's task is not known here", "start the daemon once: it finds the task")
    peers = tuple(_peers(members, covered))[:MOST_PEERS]
    if not peers:
        raise ConfigError(
            "no host of the run can be dialled: there is nobody to start from",
            "set exchange.advertise to an address at which this host can be reached",
        )
    return CheckpointText(params.run_id, checkpoint_of(params, covered), task, peers)


def _chosen(config: Config, run: Digest | None) -> Accepted:
    begun = [each for each in AcceptedRuns(config.data_path).all() if (run_folder(config, each) / "journal").exists()]
    found = [each for each in begun if run in (None, each.hash)]
    if not found:
        raise ConfigError(
            f"{config.data_path}: this host is in no run" if run is None else f"this host is not in run {run.hex()}",
            "start the daemon first, or name a host's configuration with --config",
        )
    if len(found) > 1:
        hashes = ", ".join(each.hash.hex() for each in found)
        raise ConfigError(f"this host is in {len(found)} runs", f"name one by its manifest's hash: {hashes}")
    return found[0]


def _latest(params: RoundParams, journal: Path) -> tuple[RosterState, Membership]:
    """Return what the latest round opened with, and the membership now."""
    state, preimage = machine.initial(params, _READER), b""
    for event in read_events(journal):
        state, _ = machine.step(params, _READER, state, event)
        if state.current is not None:
            preimage = state.current.roster.preimage
    if not preimage:
        raise ConfigError(
            "no round of the run has opened yet, so there is nothing to start from",
            "wait for round 0; until then a new host reads the run from its beginning",
        )
    return decode_roster(preimage), state.membership


def _peers(members: Membership, covered: RosterState) -> Iterator[Endpoint]:
    """Yield who can be dialled: the heaviest of the roster first, ties by address."""
    for seat in sorted(covered.seats, key=lambda seat: (-seat.weight, seat.participant)):
        found = endpoint_of(seat.participant, members.join_of(seat.participant))
        if found is not None:
            yield peer_of(found.host, found.port, found.spki)
