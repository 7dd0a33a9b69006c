"""Coming to a run from outside: join as an observer, and get the manifest or a state from those who have it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from gonka_trainer import __version__
from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.carriers import carrier_of, run_log
from gonka_trainer.app.reading import RunReader
from gonka_trainer.chain.attribution import Carrier, block_records
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sender import Sender
from gonka_trainer.daemon.follower import Follower, Tip
from gonka_trainer.daemon.gate import endpoint_of
from gonka_trainer.errors import ChainError, ConfigError, UserError
from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.fetcher import PeerFetcher
from gonka_trainer.exchange.identity import Identity
from gonka_trainer.gradient.state import open_state
from gonka_trainer.manifest import manifest_hash
from gonka_trainer.ports import Blame, Endpoint, RunLog, StoredObject
from gonka_trainer.round import membership
from gonka_trainer.round.membership import Membership, Place
from gonka_trainer.round.records import Join
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import Digest, Height, Role

_LOG: Final = logging.getLogger(__name__)
_TRIES: Final = 20
_RETRY_SECONDS: Final = 2.0


class Visitor:
    """Somebody with an account and a TLS identity who wants something of a run's hosts. `since`: where to read from."""

    def __init__(self, chain: ChainClient, sender: Sender, identity: Identity, store: ObjectStore) -> None:
        self._chain = chain
        self._sender = sender
        self._identity = identity
        self._store = store

    async def manifest(self, run: Digest, carrier: str, since: Height) -> Accepted:
        """Get the manifest's document from any host of the run; ConfigError when nobody gives it."""
        endpoints = await self._introduce(run, carrier, since)
        async with self._fetcher() as fetcher:
            blames: tuple[Blame, ...] = ()
            for _ in range(_TRIES):
                got = await fetcher.document(endpoints, run, lambda document: manifest_hash(document) == run)
                if isinstance(got, bytes):
                    return accept(got, f"manifest {run.hex()}")
                blames = got
                await asyncio.sleep(_RETRY_SECONDS)
        _say(blames)
        raise ConfigError(
            f"none of {len(endpoints)} hosts of the run gives the manifest {run.hex()}",
            "get the document from the run's author and name its file",
        )

    async def final_state(self, accepted: Accepted) -> tuple[int, Digest, StoredObject]:
        """Return (round, root, state) of the latest final round; UserError when there is none or nobody has it."""
        reader = RunReader(self._chain, accepted)
        async for _ in reader.to_tip():
            pass
        final = reader.state.final
        if final is None:
            raise UserError("no round of the run is final yet", "try again later; `gonka-trainer audit` shows it")
        manifest = accepted.manifest
        endpoints = await self._introduce(accepted.hash, manifest.carrier, Height(manifest.log_height))
        holders = [endpoint for endpoint in endpoints if endpoint.participant in final.holders]
        async with self._fetcher() as fetcher:
            for _ in range(_TRIES):
                got = await fetcher.fetch(
                    "state",
                    final.root,
                    0,
                    holders,
                    lambda preamble, leaves: open_state(final.root, preamble, leaves, manifest.layout),
                )
                _say(got.blames)
                if got.stored is not None:
                    return final.number, final.root, got.stored
                await asyncio.sleep(_RETRY_SECONDS)
        raise UserError(f"none of {len(holders)} hosts gives the state {final.root.hex()}", "are they up? try again")

    async def _introduce(self, run: Digest, carrier_name: str, since: Height) -> tuple[Endpoint, ...]:
        """Read who is in the run, and join as an observer unless our key is in already."""
        chain_id = await self._chain.chain_id()
        carrier = await carrier_of(self._chain, carrier_name, chain_id, run, since)
        members, height = await self._members(carrier, since)
        self._check_stranger(members)
        found = (endpoint_of(p, members.join_of(p)) for p in sorted(members.participants))
        endpoints = tuple(e for e in found if e is not None and e.participant != self._sender.author)
        if not endpoints:  # joining would cost a fee and bring nothing
            raise ConfigError(
                f"nobody is in the run {run.hex()} yet", "try again later, or get the document and name its file"
            )
        own = members.join_of(self._sender.author)
        if own is None or own.spki != self._identity.spki:
            await self._join(run_log(self._sender, carrier), members, height)
        return endpoints

    def _check_stranger(self, members: Membership) -> None:
        """Refuse a key that is in the run with a voice: joining as an observer would end that."""
        speaks_for = members.speaks_for(self._sender.author)
        join = None if speaks_for is None else members.join_of(speaks_for)
        if join is not None and join.role is not Role.OBSERVER and join.spki != self._identity.spki:
            raise ConfigError(
                f"{self._sender.author_text} speaks for a member of the run",
                "fetch with another account's key: a member that joins as an observer departs",
            )

    async def _members(self, carrier: Carrier, since: Height) -> tuple[Membership, Height]:
        members = Membership()
        async for block in Follower(self._chain, 0.5).follow(since):
            if isinstance(block, Tip):
                return members, block.height
            for placed in block_records(block, carrier):
                place = Place(block.height, placed.transaction, placed.message)
                members, _ = membership.apply(members, place, placed.author, placed.record)
        raise ChainError("the chain's blocks ended", "this cannot happen: a follower never ends")

    async def _join(self, log: RunLog, members: Membership, height: Height) -> None:
        me = self._sender.author
        entry = members.keys.get(me)
        written = height if entry is None else max(height, entry.written + 1)
        software = f"gonka-trainer {__version__}".encode()
        await log.publish([Join(me, Role.OBSERVER, self._identity.spki, b"", 0, software, Height(written))])

    @asynccontextmanager
    async def _fetcher(self) -> AsyncIterator[PeerFetcher]:
        async with PeerClient(self._identity) as peers:
            yield PeerFetcher(peers, self._store)


def _say(blames: Iterable[Blame]) -> None:
    for blame in blames:
        _LOG.warning("host %s: %s (%s)", blame.participant.hex(), blame.verdict.fault, blame.verdict.detail)
