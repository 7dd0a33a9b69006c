"""`ports.Fetcher` over a peer client and a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gonka_trainer.exchange.fetch import Store, fetch_object
from gonka_trainer.ports import Blame, Endpoint, Fetched, OpenIndex, Peers
from gonka_trainer.types import Digest, Fault, Verdict


class PeerFetcher:
    """Fetches whole objects into the store, and documents, from the holders in their order."""

    def __init__(self, peers: Peers, store: Store) -> None:
        self._peers = peers
        self._store = store

    async def fetch(
        self, kind: str, key: Digest, round_number: int, holders: Sequence[Endpoint], open_index: OpenIndex
    ) -> Fetched:
        """Fetch what is not here yet; see `fetch_object`."""
        return await fetch_object(self._peers, holders, kind, key, round_number, open_index, self._store)

    async def document(
        self, holders: Sequence[Endpoint], digest: Digest, check: Callable[[bytes], bool]
    ) -> bytes | tuple[Blame, ...]:
        """Return the first document that passes the check, or what each holder did wrong."""
        blames = []
        for holder in holders:
            got = await self._peers.fetch_document(holder, digest)
            if not isinstance(got, Verdict) and check(got):
                return got
            wrong = got if isinstance(got, Verdict) else Verdict(Fault.DIGEST, "not the document of this digest")
            blames.append(Blame(holder.participant, wrong))
        return tuple(blames)
