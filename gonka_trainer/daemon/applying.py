"""Actions on bytes that are here: possession, the outer step, what stays on disk, and the stop."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from gonka_trainer.daemon.blobs import proof
from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.daemon.states import apply_round
from gonka_trainer.errors import MachineError, ProtocolError
from gonka_trainer.gradient.arithmetic import prove_default_mode
from gonka_trainer.round.commands import Apply, Halt, Keep, ProvePossession
from gonka_trainer.round.events import PossessionProved, StateComputed
from gonka_trainer.types import Address

_LOG: Final = logging.getLogger(__name__)


class Applying:
    """ProvePossession, Apply, Keep and Halt."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    async def prove(self, wanted: Wanted) -> None:
        """Compute the proof over one drawn chunk of each held blob."""
        command: ProvePossession = wanted.command
        proof = await asyncio.to_thread(self._possession, command)
        self._kit.emit(PossessionProved(command.round, command.participants, proof))

    async def apply(self, wanted: Wanted) -> None:
        """Make the outer step and store the new state."""
        command: Apply = wanted.command
        await asyncio.to_thread(prove_default_mode, codecs=(self._kit.run.codec.name,))
        good = self._known_forms(command)
        try:
            applied = await asyncio.to_thread(apply_round, self._kit.run, self._kit.store, command, good)
        except ValueError as error:
            raise MachineError(
                f"round {command.round}: the new state cannot be: {error}",
                "check the machine's memory and disk, then move the run's folder away: the daemon reads the run again",
            ) from error
        self._kit.reporter.clipped(command.round, applied.clips)
        index = applied.index
        _LOG.info("round %d: state root %s (try %d)", command.round, index.root.hex(), command.attempt)
        self._kit.emit(StateComputed(command.round, index.root, command.attempt, index.header.tokens))

    async def keep(self, wanted: Wanted) -> None:
        """Remove what is no longer needed."""
        command: Keep = wanted.command
        await asyncio.to_thread(self._kit.store.prune, command)

    async def halt(self, wanted: Wanted) -> None:
        """Stop the host: going on would spread a wrong state."""
        command: Halt = wanted.command
        raise ProtocolError(
            f"round {command.round}: this host computed {command.computed.hex()} twice, final is {command.final.hex()}",
            "keep the data directory as evidence, and check the machine (memory, CPU) and the version first",
        )

    def _known_forms(self, command: Apply) -> dict[Address, bool]:
        """Return what was found of the round's blobs when they came; a second attempt looks at the good ones again."""
        own = self._kit.state().own
        work = own.work if own.work.number == command.round else own.former
        held = work.held if work.number == command.round else {}
        return {who: good for who, good in held.items() if not (good and command.attempt)}

    def _possession(self, command: ProvePossession) -> bytes:
        kit = self._kit
        current = kit.state().current
        if kit.run.participant is None or current is None or current.number != command.round:
            raise ProtocolError(f"round {command.round} is over", "this cannot happen while its proof is wanted")
        return proof(kit, current, kit.run.participant, command.participants)
