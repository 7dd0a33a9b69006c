"""Before a host follows the chain: whether its history can be had, and entering the run by a checkpoint if not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gonka_trainer import __version__
from gonka_trainer.app.checkpoint_text import CheckpointText
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.transport import GoneError
from gonka_trainer.daemon.gate import endpoint_of
from gonka_trainer.daemon.kit import Run
from gonka_trainer.errors import ChainUnavailableError, ConfigError, DecodeError, UserError
from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.fetcher import PeerFetcher
from gonka_trainer.exchange.identity import Identity
from gonka_trainer.ports import Blame, Endpoint, RunLog
from gonka_trainer.round import machine
from gonka_trainer.round.environment import decode_environment, environment_digest
from gonka_trainer.round.events import Resumed
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Join
from gonka_trainer.round.resuming import needed, refusal, resumed
from gonka_trainer.round.roster_bytes import decode_roster, roster_digest
from gonka_trainer.round.state import CoreState
from gonka_trainer.storage.journal import Journal
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import Address, Digest, Height, Role

_Check = Callable[[Digest, bytes], bool]
_LOG: Final = logging.getLogger(__name__)
_TRIES: Final = 60
_RETRY_SECONDS: Final = 2.0
_DENIED: Final = "PERMISSION_DENIED"
REMEDY: Final = (
    "name a node in chain that keeps all blocks (min-retain-blocks = 0, pruning = nothing), or go on from a "
    "checkpoint: take the line that `gonka-trainer checkpoint` prints on a host of the run, and give it here with "
    "`gonka-trainer join MANIFEST --checkpoint LINE`"
)


async def refuse_lost_history(chain: ChainClient, name: str, first: Height) -> None:
    """Raise GoneError when no node has the first block of a run that this host must read from its beginning."""
    gone = await _lost(chain.block(first))
    if gone is not None:
        raise GoneError(f"run {name} begins at block {first}: {gone.what}", REMEDY) from gone


async def _lost(asked: Coroutine[Any, Any, object]) -> GoneError | None:
    """Return the error when no node has what is asked for any longer; not yet, or no answer now, is not lost."""
    try:
        await asked
    except GoneError as error:
        return error
    except ChainUnavailableError:
        return None
    return None


@dataclass(frozen=True)
class CheckpointStart:
    """One start of a host in a run. `said` is the checkpoint that the operator gave, if any."""

    run: Run
    chain: ChainClient
    log: RunLog
    journal: Journal
    store: ObjectStore
    identity: Identity
    participant: Address
    said: CheckpointText | None

    async def prepare(self) -> None:
        """See that the journal can go on with blocks that the chain still has; put the checkpoint into it if needed.

        GoneError when blocks are lost and no checkpoint was given; ConfigError when the one given is of no use.
        """
        if self.said is None and await self._gone(self.run.params.log_height) is None:
            return  # the whole history can be had
        state = await asyncio.to_thread(self._replayed)
        begun = state.height > 0 or bool(state.queue)
        gone = await self._missing(state) if begun or self.said is None else None
        if gone is None and (begun or self.said is None):
            return
        if self.said is None:
            raise GoneError(f"this host needs what no node has: {gone and gone.what}", REMEDY) from gone
        event = await self._event(self.said, state)
        why = refusal(self.run.params, state, event)
        if why:
            raise ConfigError(
                f"the checkpoint of block {self.said.checkpoint.height} cannot be used here: {why}",
                "give a later one: run `gonka-trainer checkpoint` on a host that goes on",
            )
        self.journal.append(event)
        _LOG.info("going on from a checkpoint: block %d, round %d", event.roster.last_height, event.roster.round)

    def _replayed(self) -> CoreState:
        local = Local(None, None, wants_membership=False)
        state = machine.initial(self.run.params, local)
        for event in self.journal.replay():
            state, _ = machine.step(self.run.params, local, state, event)
        return state

    async def _missing(self, state: CoreState) -> GoneError | None:
        """Return what says that the next block, or the environment that an opening waits for, is lost."""
        need, last = state.need, state.height + len(state.queue)
        if need is not None and need.digest is None:  # by its digest peers have it
            gone = await _lost(self.chain.environment(need.height))
            if gone is not None:
                return gone
        return await self._gone(Height(max(self.run.params.log_height, last + 1)))

    async def _gone(self, height: Height) -> GoneError | None:
        return await _lost(self.chain.block(height))

    # -- the bytes under the checkpoint's digests -------------------------------------------------------------------

    async def _event(self, said: CheckpointText, state: CoreState) -> Resumed:
        peers = self._peers(said, state)
        async with PeerClient(self.identity) as client:
            fetching = _Fetching(self, PeerFetcher(client, self.store), peers)
            preimage = await fetching.document(said.checkpoint.roster, _is_roster)
            covered = decode_roster(preimage)
            environments = {digest: await fetching.document(digest, _is_environment) for digest in needed(covered)}
        try:
            return resumed(self.run.params, said.checkpoint, preimage, environments)
        except DecodeError as error:
            raise ConfigError(
                f"the checkpoint of block {said.checkpoint.height} contradicts itself: {error}",
                "compare the line with that of another host, and trust neither that differs",
            ) from error

    def _peers(self, said: CheckpointText, state: CoreState) -> tuple[Endpoint, ...]:
        """Return whom the checkpoint names, and then whom this host knew when it last read."""
        members = state.membership
        known = (endpoint_of(p, members.join_of(p)) for p in sorted(members.participants) if p != self.participant)
        found = [*said.peers, *(each for each in known if each is not None)]
        return tuple({peer.spki: peer for peer in reversed(found) if peer.spki != self.identity.spki}.values())[::-1]

    async def join_as_observer(self) -> None:
        """Come into the run, so that its hosts answer; it becomes a member when it has caught up."""
        _LOG.info("no host of the run knows this host's TLS key: joining as an observer first")
        height = (await self.chain.info()).height
        software = f"gonka-trainer {__version__}".encode()
        record = Join(self.participant, Role.OBSERVER, self.identity.spki, b"", 0, software, height)
        await self.log.publish([record])


class _Fetching:
    """Documents from the peers, once they answer this host."""

    def __init__(self, start: CheckpointStart, fetcher: PeerFetcher, peers: Sequence[Endpoint]) -> None:
        self._start = start
        self._fetcher = fetcher
        self._peers = peers
        self._joined = False

    async def document(self, digest: Digest, check: _Check) -> bytes:
        """Return the document from the store, or from a peer and keep it; UserError when nobody gives it."""
        stored = await asyncio.to_thread(self._start.store.document, digest)
        if stored is not None and check(digest, stored):
            return stored
        blames: tuple[Blame, ...] = ()
        for _ in range(_TRIES):
            got = await self._fetcher.document(self._peers, digest, partial(check, digest))
            if isinstance(got, bytes):
                await asyncio.to_thread(self._start.store.put_document, digest, got)
                return got
            blames = got
            await self._introduce(blames)
            await asyncio.sleep(_RETRY_SECONDS)
        said = "; ".join(sorted({blame.verdict.detail for blame in blames})) or "there is none"
        raise UserError(
            f"none of {len(self._peers)} hosts gives {digest.hex()[:16]} of the checkpoint: {said}",
            "take a newer checkpoint from a host that is up and can be reached from here",
        )

    async def _introduce(self, blames: Sequence[Blame]) -> None:
        """Join once, when those who answer say that this host is in no join."""
        if self._joined or not any(_DENIED in blame.verdict.detail for blame in blames):
            return
        try:
            await self._start.join_as_observer()
            self._joined = True
        except ChainUnavailableError as error:
            _LOG.warning("joining: %s", error.what)


def _is_roster(digest: Digest, document: bytes) -> bool:
    try:
        decode_roster(document)
    except DecodeError:
        return False
    return roster_digest(document) == digest


def _is_environment(digest: Digest, document: bytes) -> bool:
    try:
        return environment_digest(decode_environment(document)) == digest
    except DecodeError:
        return False
