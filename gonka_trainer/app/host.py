"""One host in one run: everything put together, from the journal to the worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.app.checkpoint_documents import RosterDocuments
from gonka_trainer.app.checkpoint_start import CheckpointStart
from gonka_trainer.app.checkpoint_store import checkpoint_for
from gonka_trainer.app.machines import own_rendezvous
from gonka_trainer.app.rotation import AccountChange, Succession, TlsChange, watch_keys
from gonka_trainer.app.rules import round_params
from gonka_trainer.app.served import ServedRun
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.config import Config
from gonka_trainer.config_file import endpoint
from gonka_trainer.daemon.applying import Applying
from gonka_trainer.daemon.dispatch import Action
from gonka_trainer.daemon.evaluating import Evaluating
from gonka_trainer.daemon.fetching import Fetching
from gonka_trainer.daemon.follower import Follower
from gonka_trainer.daemon.gate import RosterGate
from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.daemon.host import Host
from gonka_trainer.daemon.kit import Kit, make_run
from gonka_trainer.daemon.publishing import Publishing
from gonka_trainer.daemon.report import Reporter
from gonka_trainer.daemon.spotcheck import SpotCheck
from gonka_trainer.daemon.training import Training
from gonka_trainer.daemon.voice import Presence, Voices
from gonka_trainer.errors import ConfigError
from gonka_trainer.exchange.client import PeerClient
from gonka_trainer.exchange.fetcher import PeerFetcher
from gonka_trainer.exchange.identity import Identity, load_or_create_identity
from gonka_trainer.exchange.limits import DEFAULT_LIMITS
from gonka_trainer.exchange.server import PeerServer
from gonka_trainer.ports import Endpoint, RunLog
from gonka_trainer.round import commands
from gonka_trainer.round.events import Event
from gonka_trainer.round.params import Local
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Phase
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.storage.journal import Journal
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.storage.unfinished import UnfinishedRound
from gonka_trainer.trainer.process import WorkerSettings
from gonka_trainer.trainer.trainer import Trainer, open_trainer
from gonka_trainer.types import Address, Role

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Speaker:
    """For whom this daemon speaks, and with which account key's address."""

    participant: Address
    key: Address


def has_begun(config: Config, run: Accepted) -> bool:
    """Whether this host has a journal of the run."""
    return (run_folder(config, run) / "journal").exists()


def run_folder(config: Config, run: Accepted) -> Path:
    """Return where this host keeps what belongs to the run."""
    run_id = round_params(run.manifest, run.hash, config.chain.prefix).run_id
    return config.data_path / "runs" / run_id.hex()[:16]


class RunHost:
    """A host's daemon in one accepted run, until cancelled; it goes on serving when the run is over."""

    def __init__(
        self,
        config: Config,
        accepted: Accepted,
        speaker: Speaker,
        chain: ChainClient,
        log: RunLog,
        runs: AcceptedRuns,
        gpu: GpuTurns,
        succession: Succession | None = None,
    ) -> None:
        self._config = config
        self._accepted = accepted
        self._speaker = speaker
        self._chain = chain
        self._log = log
        self._runs = runs
        self._gpu = gpu
        self._succession = succession
        params = round_params(accepted.manifest, accepted.hash, config.chain.prefix)
        self._run = make_run(accepted.manifest, accepted.hash, params, speaker.participant)
        self.folder = (
            config.data_path / "runs" / params.run_id.hex()[:16]
        )  # a Unix socket below it has 107 bytes at most
        self.ended = asyncio.Event()
        self.served = ServedRun(speaker.participant, self.ended)

    def name(self, address: Address) -> str:
        """Render an address for people."""
        return encode_address(address, self._config.chain.prefix)

    async def run(self) -> None:
        """Serve the run until cancelled or until an error ends it."""
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        self._check_speaker()
        (self.folder / "manifest.json").write_bytes(self._accepted.document)
        identity = load_or_create_identity(self._config.data_path / "tls.pem")
        with (
            ObjectStore(self.folder / "objects") as store,
            Journal(self._journal_path(), self._run.params.run_id) as journal,
        ):
            if journal.warning:
                _LOG.warning("%s", journal.warning)
            store.put_document(self._accepted.hash, self._accepted.document)
            await self._start(identity, store, journal).prepare()
            await self._assemble(identity, store, journal, work)

    def _start(self, identity: Identity, store: ObjectStore, journal: Journal) -> CheckpointStart:
        said, own = checkpoint_for(self._config, self._accepted), self._speaker.participant
        return CheckpointStart(self._run, self._chain, self._log, journal, store, identity, own, said)

    def _check_speaker(self) -> None:
        """Refuse to go on with another's journal: its commitments are of another's blobs."""
        path, own = self.folder / "participant", self.name(self._speaker.participant)
        if not path.exists():
            write_atomic(path, own.encode())
        elif path.read_text() != own:
            raise ConfigError(
                f"{self.folder} is of participant {path.read_text()}, this daemon speaks for {own}",
                "set keys.participant or keys.account_file back, or use another data_dir",
            )

    def _journal_path(self) -> Path:
        folder = self.folder / "journal"
        folder.mkdir(exist_ok=True)
        return folder / "events"

    async def _assemble(self, identity: Identity, store: ObjectStore, journal: Journal, work: Path) -> None:
        config, run = self._config, self._run
        reporter = Reporter(
            self.folder, self.name, self.name(self._speaker.participant), run.params.run_id.hex(), self._speaker.key
        )
        local = Local(self._speaker.participant, self._speaker.key, self._wants_membership())
        follower = Follower(self._chain, config.chain.poll_seconds)
        host = Host(run.params, local, journal, self._log, follower, reporter.stepped)
        voices = Voices(self._speaker.participant, self._speaker.key, self._log, lambda: host.state)
        host.key = lambda: voices.key
        gate = RosterGate(lambda: host.state, self.name)
        async with self._peers(identity, gate, store) as (server, peers), self._trainer(work) as trainer:
            address, port = endpoint(config.exchange.advertise, "exchange.advertise")
            own = Endpoint(self._speaker.participant, address, port or server.port, identity.spki)
            fetcher = PeerFetcher(peers, store)
            kit = Kit(
                run,
                self._chain,
                voices,
                store,
                fetcher,
                trainer,
                reporter,
                Presence(own),
                work,
                lambda: host.state,
                host.emit,
                UnfinishedRound(work),
            )
            tls = TlsChange(config.data_path / "tls.pem", kit, server, peers)
            await self._live(host, kit, gate, tls)

    async def _live(self, host: Host, kit: Kit, gate: RosterGate, tls: TlsChange) -> None:
        evaluating, checking = Evaluating(kit), SpotCheck(kit, gate)
        rosters = RosterDocuments(kit.store)

        def replayed(former: CoreState, state: CoreState, event: Event) -> None:
            kit.reporter.stepped(former, state, event)
            rosters.look(state)

        host.observer = replayed
        host.replay()
        kit.reporter.live()
        _LOG.info("the journal is read: at block %d, round %d", host.state.height, host.state.round)

        def watch(former: CoreState, state: CoreState, event: Event) -> None:
            replayed(former, state, event)
            host.wants_membership = self._wants_membership()
            if state.phase is Phase.ENDED and state.final_root in state.own.states:
                self.ended.set()
            checking.look(former, event)
            if self._config.worker.evaluate:
                evaluating.look(state)

        host.observer, host.reader = watch, kit.reporter.block
        publishing = Publishing(kit, gate, Role.MEMBER)
        with self.served.live(host, kit.reporter):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._gpu.serve(kit.trainer, kit.reporter.update))  # before anything wants a worker
                group.create_task(host.run(_actions(kit, gate, publishing)))
                group.create_task(evaluating.run())
                group.create_task(evaluating.warm_up())
                group.create_task(evaluating.rest(self.ended))
                group.create_task(checking.run())
                group.create_task(rosters.run())
                group.create_task(publishing.keep_endpoint())
                group.create_task(watch_keys(tls, *self._account_change(kit, publishing)))

    def _account_change(self, kit: Kit, publishing: Publishing) -> list[AccountChange]:
        return [] if self._succession is None else [AccountChange(self._succession, kit, publishing)]

    def _wants_membership(self) -> bool:
        return not self._runs.has_left(self._accepted.hash)

    @asynccontextmanager
    async def _peers(
        self, identity: Identity, gate: RosterGate, store: ObjectStore
    ) -> AsyncIterator[tuple[PeerServer, PeerClient]]:
        exchange = self._config.exchange
        # No good list of the run is longer: two vectors of 32-byte leaves; a blob's entries take 44 bytes.
        list_bytes = 64 * self._run.layout.chunk_count
        limits = replace(DEFAULT_LIMITS, streams_per_peer=exchange.streams_per_peer, leaf_list_bytes=list_bytes)
        async with (
            PeerServer(identity, gate, store, exchange.bind, limits) as server,
            PeerClient(identity, limits) as peers,
        ):
            _LOG.info("serving peers on port %d", server.port)
            yield server, peers

    @asynccontextmanager
    async def _trainer(self, work: Path) -> AsyncIterator[Trainer]:
        worker = self._config.worker
        settings = WorkerSettings(
            manifest=self.folder / "manifest.json",
            data=Path(worker.data),
            folder=work,
            processes=worker.processes,
            threads=worker.threads,
            command=worker.command,
            rendezvous=own_rendezvous(worker),
            start_seconds=worker.start_seconds,
        )
        async with open_trainer(settings) as trainer:
            yield trainer


def _actions(kit: Kit, gate: RosterGate, publishing: Publishing) -> Mapping[type, Action]:
    fetching, training, applying = Fetching(kit, gate), Training(kit), Applying(kit)
    return {
        commands.ReadEnvironment: publishing.read_environment,
        commands.SendJoin: publishing.join,
        commands.Publish: publishing.publish,
        commands.Train: training.train,
        commands.Fetch: fetching.fetch,
        commands.Serve: fetching.serve,
        commands.Sync: fetching.sync,
        commands.ProvePossession: applying.prove,
        commands.Apply: applying.apply,
        commands.Keep: applying.keep,
        commands.Halt: applying.halt,
    }
