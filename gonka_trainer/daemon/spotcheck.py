"""Holding possession proofs against the bytes: who did not read what it attests is named (docs/protocol.md 3)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from gonka_trainer.daemon.blobs import proof
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.errors import DecodeError, StorageError
from gonka_trainer.round import bitmap
from gonka_trainer.round.events import BlockSeen, Event
from gonka_trainer.round.records import Attest
from gonka_trainer.round.state import CoreState, Round
from gonka_trainer.types import Address

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True)
class _Claim:
    round: Round
    attester: Address
    authors: tuple[Address, ...]
    possession: bytes


class SpotCheck:
    """Checks each attestation of the open round as soon as its blobs are here too. It decides nothing."""

    def __init__(self, kit: Kit, gate: RosterGate) -> None:
        self._kit = kit
        self._gate = gate
        self._queue: asyncio.Queue[_Claim] = asyncio.Queue()

    def look(self, former: CoreState, event: Event) -> None:
        """Take note of the attestations in a block of the round that was open before it."""
        current = former.current
        if not isinstance(event, BlockSeen) or current is None or current.closed is None:
            return
        for placed in event.records:
            attester = current.roster.keys.get(placed.author)
            if isinstance(placed.record, Attest) and placed.record.round == current.number and attester is not None:
                self._note(current, attester, placed.record)

    def _note(self, current: Round, attester: Address, record: Attest) -> None:
        if attester == self._kit.run.participant:
            return
        try:
            positions = bitmap.unpack(record.bitmap, len(current.committers))
        except DecodeError:
            return
        authors = tuple(current.committers[i] for i in sorted(positions))
        self._queue.put_nowait(_Claim(current, attester, authors, record.possession))

    async def run(self) -> None:
        """Check as the bytes come, until cancelled; a claim of a round that is over is let go."""
        while True:
            claim = await self._queue.get()
            while self._is_open(claim) and not self._holds(claim):
                await asyncio.sleep(_LOOK_SECONDS)
            if self._holds(claim):
                await self._check(claim)

    def _is_open(self, claim: _Claim) -> bool:
        current = self._kit.state().current
        return current is not None and current.number == claim.round.number

    def _holds(self, claim: _Claim) -> bool:
        commits = claim.round.commits
        return all(self._kit.store.complete("blob", commits[a][0], claim.round.number) for a in claim.authors)

    async def _check(self, claim: _Claim) -> None:
        try:
            right = await asyncio.to_thread(proof, self._kit, claim.round, claim.attester, claim.authors)
        except StorageError as error:
            _LOG.info("attestation of %s not checked: %s", self._gate.name(claim.attester), error.what)
            return
        if right != claim.possession:
            _LOG.warning(
                "round %d: %s attests blobs that it did not read: its possession proof is wrong (evidence)",
                claim.round.number,
                self._gate.name(claim.attester),
            )
