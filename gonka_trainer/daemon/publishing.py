"""Actions on the chain: records, the join, the environment."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Final

from gonka_trainer import __version__
from gonka_trainer.daemon.dispatch import Wanted
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.errors import ChainError, ChainUnavailableError, DecodeError
from gonka_trainer.ports import Endpoint, Receipt
from gonka_trainer.round.environment import (
    Environment,
    decode_environment,
    encode_environment,
    environment_digest,
)
from gonka_trainer.round.events import EnvironmentRead
from gonka_trainer.round.records import Join
from gonka_trainer.types import Address, Digest, Height, Role

_LOG: Final = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 2.0
_END_SECONDS: Final = 10.0


class Publishing:
    """Publish, SendJoin and ReadEnvironment."""

    def __init__(self, kit: Kit, gate: RosterGate, role: Role) -> None:
        self._kit = kit
        self._gate = gate
        self._role = role
        self._ending: set[asyncio.Future[Receipt]] = set()

    async def publish(self, wanted: Wanted) -> None:
        """Have the record on chain; the core takes the command back when it sees the record in a block."""
        sending = asyncio.ensure_future(self._kit.log.publish((wanted.command.record,)))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            self._let_end(sending)
            raise

    async def join(self, wanted: Wanted) -> None:
        """Send joins until one counts."""
        while True:
            await self.send_join(wanted.command.after)
            await wanted.change()

    async def keep_endpoint(self) -> None:
        """Join again whenever the run knows another address or key of this host than it has now; until cancelled."""
        while True:
            state, own = self._kit.state(), self._kit.endpoint
            speaker = state.membership.standing(own.participant).speaker
            speaks = state.own.caught_up and speaker in self._kit.log.held
            join = state.membership.join_of(own.participant) if speaks else None
            if speaker is not None and join is not None and join.role is self._role and not _says(join, own):
                _LOG.info("the run knows this host as %r port %d: joining again", join.host, join.port)
                try:
                    await self.join_as(speaker, join.written)
                except ChainError as error:
                    _LOG.error("joining again: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def send_join(self, after: Height) -> None:
        """Have a join, written above `after`, in a block."""
        await self._kit.log.publish((self._record(after),))

    async def join_as(self, key: Address, after: Height) -> None:
        """Have a join of one of the held keys, written above `after`, in a block."""
        await self._kit.log.publish_as(key, (self._record(after),))

    def _let_end(self, sending: asyncio.Future[Receipt]) -> None:
        """Let a sending that is no longer wanted see its own block and clear its traces; then give it up."""
        ending = asyncio.ensure_future(asyncio.wait_for(sending, _END_SECONDS))
        self._ending.add(ending)
        ending.add_done_callback(self._ended)

    def _ended(self, ending: asyncio.Future[Receipt]) -> None:
        self._ending.discard(ending)
        if not ending.cancelled():
            ending.exception()

    async def read_environment(self, wanted: Wanted) -> None:
        """Read it from the chain, or by its final digest from those who have the preimage."""
        height, digest = wanted.command.height, wanted.command.digest
        while True:
            environment = await self._from_chain(height)
            if environment is None or digest not in {None, environment_digest(environment)}:
                environment = await self._from_peers(digest)
            if environment is not None:
                break
            await asyncio.sleep(_RETRY_SECONDS)
        self._kit.store.put_document(environment_digest(environment), encode_environment(environment))
        self._kit.emit(EnvironmentRead(height, environment))

    def _record(self, after: Height) -> Join:
        own = self._kit.endpoint
        height = Height(max(self._kit.state().height, after + 1))
        software = f"gonka-trainer {__version__}".encode()
        return Join(own.participant, self._role, own.spki, own.host.encode(), own.port, software, height)

    async def _from_chain(self, height: Height) -> Environment | None:
        try:
            return await self._kit.chain.environment(height)
        except ChainUnavailableError as error:
            _LOG.warning("environment of block %d: %s", height, error.what)
        except ChainError as error:
            _LOG.error("environment of block %d: %s", height, error)
        return None

    async def _from_peers(self, digest: Digest | None) -> Environment | None:
        if digest is None:
            return None
        stored = self._kit.store.document(digest)
        if stored is None:
            got = await self._kit.fetcher.document(self._gate.endpoints(), digest, partial(_is_environment, digest))
            for blame in () if isinstance(got, bytes) else got:
                who, detail = self._gate.name(blame.participant), blame.verdict.detail
                _LOG.warning("environment %s: %s: %s", digest.hex()[:16], who, detail)
            stored = got if isinstance(got, bytes) else b""
        return decode_environment(stored) if _is_environment(digest, stored) else None


def _says(join: Join, own: Endpoint) -> bool:
    return (join.host, join.port, join.spki) == (own.host.encode(), own.port, own.spki)


def _is_environment(digest: Digest, document: bytes) -> bool:
    try:
        return environment_digest(decode_environment(document)) == digest
    except DecodeError:
        return False
