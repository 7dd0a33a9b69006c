"""New keys in mid-run: `gonka-trainer keys rotate` leaves them beside the old ones, and the daemon takes them over.

The new account key joins while the old one speaks on; once a round's roster names the new one (or there is no round),
the files change places and the old key is let go (docs/protocol.md 1). The new TLS key is shown from the block on in
which the run learns of it. Whether a key waits is what the files say, and how far its change has come is what the chain
says: a crash at any instant leaves nothing half done, and the next start goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gonka_trainer.app.budget import metered
from gonka_trainer.app.keys import next_key_path, promote_key, sent_folder
from gonka_trainer.app.opening import acting_for, make_sender, open_run_log
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keyfiles import is_credential
from gonka_trainer.chain.keys import AccountKey, load_key
from gonka_trainer.chain.sender import Sender
from gonka_trainer.config import Config
from gonka_trainer.daemon.kit import Kit
from gonka_trainer.daemon.publishing import Publishing
from gonka_trainer.errors import ConfigError, UserError
from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.identity import Identity, next_identity, promote_identity
from gonka_trainer.exchange.server import PeerServer
from gonka_trainer.round.membership import NEVER
from gonka_trainer.round.state import CoreState
from gonka_trainer.types import Address

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0
_TROUBLED_SECONDS: Final = 30.0  # a join that the chain refuses may cost its fee each time


@dataclass(frozen=True)
class Succession:
    """What the daemon lends to a change of its account key.

    `sender` gives the sender that it has; `taken` is told when a new key has replaced that one's.
    """

    config: Config
    chain: ChainClient
    passphrase: Callable[[], bytes]
    sender: Callable[[], Sender]
    taken: Callable[[AccountKey, Sender], None]


class AccountChange:
    """Takes over the account key that waits beside the daemon's own."""

    def __init__(self, succession: Succession, kit: Kit, publishing: Publishing) -> None:
        self._succession = succession
        self._kit = kit
        self._publishing = publishing
        self._next: tuple[AccountKey, Sender] | None = None

    async def look(self) -> None:
        """Go one step further if a key waits. UserError: somebody must mend something, or later."""
        keys = self._succession.config.keys
        if is_credential(keys.account_file):
            return
        if self._next is None and next_key_path(keys).exists():
            self._next = await self._take()
        if self._next is None:
            return
        key, sender = self._next
        state, participant = self._kit.state(), self._kit.endpoint.participant
        if sender.by_grant:  # the records' author stays the participant: nothing on chain names the key
            self._let_go(key, sender)
        elif not state.own.caught_up:
            return
        elif _speaks_alone(state, participant, key.address, self._kit.log.held):
            self._let_go(key, sender)
        elif _may_join(state, participant, key.address):
            entry = state.membership.keys.get(key.address)
            await self._publishing.join_as(key.address, entry.written if entry is not None else NEVER)

    async def _take(self) -> tuple[AccountKey, Sender]:
        """Hold the waiting key besides the old one: from now on it speaks where a roster names it."""
        config, chain, run = self._succession.config, self._succession.chain, self._kit.run
        if not config.keys.participant:
            raise ConfigError(
                "a new account key waits, and keys.participant is empty: it would be taken for another participant",
                "set keys.participant to the account that this daemon speaks for, and restart the daemon",
            )
        key = await asyncio.to_thread(load_key, next_key_path(config.keys), self._succession.passphrase)
        folder, acts_for = sent_folder(config.data_path, key.address), acting_for(config, key)
        sender = make_sender(chain, config.chain, key, folder, acts_for)
        log = await open_run_log(chain, sender, run.manifest, run.manifest_hash)
        log = metered(config, run.manifest_hash, run.params.run_id, log)
        self._kit.log.take(acts_for or key.address, log)
        self._kit.reporter.also(key.address)
        _LOG.info("a new account key waits: %s; it takes over when a round names it", sender.text)
        return key, sender

    def _let_go(self, key: AccountKey, sender: Sender) -> None:
        config = self._succession.config
        kept = promote_key(config.keys, self._succession.sender().text)
        for old in self._kit.log.held[:-1]:
            self._kit.log.retire(old)
        _LOG.info("account key %s speaks alone now; the old one is kept as %s", sender.text, kept)
        self._succession.taken(key, sender)
        self._next = None


def _speaks_alone(state: CoreState, participant: Address, key: Address, held: tuple[Address, ...]) -> bool:
    """Whether the key is the participant's speaker, and no round that goes on needs another one of those held."""
    if state.membership.standing(participant).speaker != key:
        return False
    named = state.current.roster.keys if state.current is not None else {}
    return not any(named.get(other) == participant for other in held if other != key)


def _may_join(state: CoreState, participant: Address, key: Address) -> bool:
    """Whether a join of the key would make it the participant's speaker."""
    standing = state.membership.standing(participant)
    return standing.speaker != key and key in {participant, standing.delegate}


class TlsChange:
    """Takes over the TLS key that waits in the data directory."""

    def __init__(self, path: Path, kit: Kit, server: PeerServer, peers: PeerClient) -> None:
        self._path = path
        self._kit = kit
        self._server = server
        self._peers = peers
        self._next: Identity | None = None

    async def look(self) -> None:
        """Have the run told of a waiting key, and show it once the run knows it. StorageError: its file is bad."""
        if self._next is None:
            self._next = next_identity(self._path)
            if self._next is None:
                return
            _LOG.info("a new TLS key waits: %s", self._next.spki.hex())
            presence = self._kit.presence
            presence.endpoint = replace(presence.endpoint, spki=self._next.spki)
        join = self._kit.state().membership.join_of(self._kit.endpoint.participant)
        if join is not None and join.spki == self._next.spki:
            promote_identity(self._path)
            self._server.take(self._next)
            await self._peers.take(self._next)
            _LOG.info("TLS key %s is shown from block %d on", self._next.spki.hex(), self._kit.state().height)
            self._next = None


async def watch_keys(*changes: AccountChange | TlsChange) -> None:
    """Look for new keys until cancelled. What is wrong with them is said once, and the old keys go on."""
    said = ""
    while True:
        pause = _LOOK_SECONDS
        try:
            for change in changes:
                await change.look()
        except UserError as error:
            if said != str(error):
                _LOG.error("changing keys: %s", error)
            said, pause = str(error), _TROUBLED_SECONDS
        await asyncio.sleep(pause)
