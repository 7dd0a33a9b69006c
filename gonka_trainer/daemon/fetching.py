"""Actions on peers: blobs, states, and what is served to others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.daemon.states import make_initial
from gonka_trainer.gradient.blob import open_blob
from gonka_trainer.gradient.state import decode_state_header, open_state
from gonka_trainer.ports import ChunkIndex, Endpoint, Fetched, StoredObject
from gonka_trainer.round.commands import Fetch, Sync
from gonka_trainer.round.events import BlobHeld, StateSynced
from gonka_trainer.types import Address, Fault, Verdict

_LOG: Final = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 2.0
_FIRST_RETRY_SECONDS: Final = 0.25  # most often the other host is a block behind


class Fetching:
    """Fetch, Sync and Serve."""

    def __init__(self, kit: Kit, gate: RosterGate) -> None:
        self._kit = kit
        self._gate = gate

    async def fetch(self, wanted: Wanted) -> None:
        """Get a committed blob from its author or an attester, and say whether it keeps the rules."""
        wait_seconds = _FIRST_RETRY_SECONDS
        while True:
            command: Fetch = wanted.command
            holders = self._endpoints([command.participant, *command.holders])
            got = await self._kit.fetcher.fetch(
                "blob", command.commitment, command.round, holders, partial(self._open_blob, command)
            )
            self._blame(f"blob of {self._gate.name(command.participant)} in round {command.round}", got)
            if got.stored is not None or not got.form.good:
                return self._held(command, got.stored, got.form)
            await wanted.change(wait_seconds)
            wait_seconds = min(2 * wait_seconds, _RETRY_SECONDS)

    async def sync(self, wanted: Wanted) -> None:
        """Get a state by its root: the initial one is made here, others come from those who posted it."""
        command: Sync = wanted.command
        run = self._kit.run
        if command.root == run.params.initial_root and self._kit.store.state(command.root) is None:
            await asyncio.to_thread(make_initial, run, self._kit.store)
        stored = self._kit.store.state(command.root)
        while stored is None:
            command = wanted.command
            got = await self._kit.fetcher.fetch(
                "state",
                command.root,
                0,
                self._endpoints(command.holders),
                partial(self._open_state, command),
            )
            self._blame(f"state {command.root.hex()[:16]}", got)
            stored = got.stored
            if stored is None:
                await wanted.change(_RETRY_SECONDS)
        self._kit.emit(StateSynced(command.root, decode_state_header(stored.preamble).tokens))

    async def serve(self, wanted: Wanted) -> None:
        """Let members have the round's blobs for as long as the command stands."""
        with self._gate.opened(wanted.command):
            await asyncio.Event().wait()

    def _open_state(self, command: Sync, preamble: bytes, leaf_list: bytes) -> ChunkIndex | Verdict:
        return open_state(command.root, preamble, leaf_list, self._kit.run.layout)

    def _open_blob(self, command: Fetch, preamble: bytes, leaf_list: bytes) -> ChunkIndex | Verdict:
        run = self._kit.run
        expected = run.expected(command.round, command.participant, command.base_root)
        index = open_blob(command.commitment, preamble, leaf_list, expected, run.layout)
        if isinstance(index, Verdict) or index.header_verdict.good:
            return index
        return index.header_verdict  # weight 0 for everybody: its bytes, which may be any number, are not fetched

    def _held(self, command: Fetch, stored: StoredObject | None, form: Verdict) -> None:
        if not form.good:
            _LOG.warning(
                "round %d: the blob of %s breaks a rule (%s: %s): not attested, weight 0",
                command.round,
                self._gate.name(command.participant),
                form.fault,
                form.detail,
            )
        if stored is not None:
            self._kit.reporter.count(got_bytes=stored.payload.stat().st_size)
        self._kit.emit(BlobHeld(command.round, command.participant, form.good))

    def _endpoints(self, participants: Iterable[Address]) -> Sequence[Endpoint]:
        own = self._kit.run.participant
        found = (self._gate.endpoint(p) for p in dict.fromkeys(participants) if p != own)
        return [endpoint for endpoint in found if endpoint is not None]

    def _blame(self, what: str, got: Fetched) -> None:
        for blame in got.blames:
            who, verdict = self._gate.name(blame.participant), blame.verdict
            # A peer that cannot be reached, or is a block behind, is everyday; everything else is its fault.
            level = logging.INFO if verdict.fault is Fault.UNREACHABLE else logging.WARNING
            _LOG.log(level, "%s: %s: %s (%s)", what, who, verdict.fault, verdict.detail)
