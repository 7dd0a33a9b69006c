"""The daemon: which of the agreed runs to serve, and for how long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.app.budget import metered
from gonka_trainer.app.checkpoint_store import open_known_log
from gonka_trainer.app.choosing import Chooser
from gonka_trainer.app.discovering import log_discovery
from gonka_trainer.app.host import RunHost, Speaker
from gonka_trainer.app.keys import Passphrase, open_account, passphrase_of, sent_folder
from gonka_trainer.app.machines import own_rendezvous
from gonka_trainer.app.opening import acting_for, make_sender, open_client
from gonka_trainer.app.operations import Operations
from gonka_trainer.app.rotation import Succession
from gonka_trainer.app.rules import parse_address
from gonka_trainer.app.services import serve_host
from gonka_trainer.app.yielding import yield_gpus
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.sender import Sender
from gonka_trainer.config import Config
from gonka_trainer.controls import TaskLine
from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.errors import ChainUnavailableError, ConfigError, StorageError
from gonka_trainer.gradient.arithmetic import prove_default_mode
from gonka_trainer.ports import NodeInfo
from gonka_trainer.round.naming import run_id
from gonka_trainer.storage.lock import DirectoryLock
from gonka_trainer.storage.stops import FileStops
from gonka_trainer.types import Digest

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0


async def run_daemon(config: Config) -> None:
    """Serve the agreed runs, one at a time, until cancelled. UserError: somebody must mend something."""
    prove_default_mode(codecs=("f32",))  # a run proves its own codec before it uses it
    own_rendezvous(config.worker)
    passphrase = passphrase_of(config.keys)
    key = open_account(config.keys, passphrase)
    try:
        config.data_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"data_dir {config.data_path}: {error.strerror}", "name a folder that can be written"
        ) from error
    with DirectoryLock(config.data_path):
        async with open_client(config.chain) as chain:
            await Daemon(config, chain, key, passphrase).run()


class Daemon:
    """The daemon behind `gonka-trainer run`: one run at a time, of those that the operator's list allows."""

    def __init__(self, config: Config, chain: ChainClient, key: AccountKey, passphrase: Passphrase) -> None:
        self._config = config
        self._chain = chain
        self._speaker = _speaker(config, key)
        acts_for = acting_for(config, key)
        self._sender: Sender = make_sender(
            chain, config.chain, key, sent_folder(config.data_path, key.address), acts_for
        )
        self._succession = Succession(config, chain, passphrase, lambda: self._sender, self._took)
        self._runs = AcceptedRuns(config.data_path)
        self._chooser = Chooser(config, chain, lambda: self._sender, self._speaker.participant, self._runs)
        self.gpu = GpuTurns(FileStops(config.data_path / "stops.json", config.gpu.stop_seconds))
        self._over: set[Digest] = set()
        self._serving: Accepted | None = None
        self._host: RunHost | None = None
        self._task: asyncio.Task[Any] | None = None
        self._chain_id = config.chain.chain_id
        self.operations = Operations(config.data_path, self.gpu, self, self._end)
        self.gpu.tell = self.operations.tell

    async def run(self) -> None:
        """Serve until cancelled."""
        self._task = asyncio.current_task()
        self.operations.recall()
        async with serve_host(self._config, self.operations, self.gpu):
            await self._serve_runs()

    async def _serve_runs(self) -> None:
        info = await self._reach()
        self._chain_id = info.chain_id
        _LOG.info("speaking for %s", self._sender.text)
        async with asyncio.TaskGroup() as group:
            group.create_task(
                yield_gpus(self._config, self._chain, self.gpu, self._in_run, lambda: self.operations.wants_gpus)
            )
            while True:
                self._serving = await self._chooser.choose(self._over)
                await self._serve(self._serving)

    def _in_run(self) -> bool | None:
        """Whether a run is served that is not over, or soon will be; None while that is not known."""
        if self._host is not None and self._host.served.over is False:
            return True
        return False if self._chooser.idle else None

    def _took(self, key: AccountKey, sender: Sender) -> None:
        """Speak with a new account key from now on, in runs to come too."""
        self._speaker, self._sender = _speaker(self._config, key), sender

    async def _reach(self) -> NodeInfo:
        while True:
            try:
                await log_discovery(self._config, self._chain, self._speaker.key)
                return await self._chain.info()
            except ChainUnavailableError as error:
                _LOG.warning("%s; trying again", error.what)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _serve(self, accepted: Accepted) -> None:
        """Serve a run; once it is over or left, until another one can be served."""
        self._host = None
        log = await open_known_log(self._config, self._chain, self._sender, accepted)
        log = metered(self._config, accepted.hash, run_id(accepted.manifest.chain_id, accepted.hash), log)
        host = RunHost(self._config, accepted, self._speaker, self._chain, log, self._runs, self.gpu, self._succession)
        self._host = host
        _LOG.info("run %s (manifest %s)", accepted.manifest.name, accepted.hash.hex())
        with self.operations.serving(host.served, accepted.hash, accepted.manifest.name):
            await self._until_another(host, accepted)

    async def _until_another(self, host: RunHost, accepted: Accepted) -> None:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(host.run())
            while not host.ended.is_set() and not self._runs.has_left(accepted.hash):
                await asyncio.sleep(_LOOK_SECONDS)
            if host.ended.is_set():
                self._over.add(accepted.hash)
                _LOG.info("run %s is over: idle, serving its final state", accepted.manifest.name)
            await self._chooser.another(accepted.hash, self._over)
            serving.cancel()

    # -- for those who drive the daemon ----------------------------------------------------------------------------

    @property
    def about(self) -> Mapping[str, Any]:
        """Return for whom this daemon speaks, and on which chain."""
        return {
            "host": encode_address(self._speaker.participant, self._config.chain.prefix),
            "chain_id": self._chain_id,
        }

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def task_lines(self) -> tuple[TaskLine, ...]:
        """Return the runs on chain, with their standing here and the reason where it is not served."""
        standings = self._chooser.standings
        await standings.look(everything=True)
        return await standings.lines(None if self._serving is None else self._serving.hash)

    async def start_run(self, run: Digest) -> None:
        """Agree to a run by its hash, as `gonka-trainer join` does; ConfigError says why it does not start even so."""
        self._runs.agree(run)
        lines = [line for line in await self.task_lines() if line.manifest_hash == run]
        if lines and lines[0].standing == "refused":
            raise ConfigError(f"run {run.hex()} does not start: {lines[0].why}", "mend that; it is agreed to now")


def _speaker(config: Config, key: AccountKey) -> Speaker:
    named = config.keys.participant
    participant = parse_address(named, config.chain.prefix, "keys.participant") if named else key.address
    by_grant = acting_for(config, key) is not None  # then the records' author is the participant itself
    return Speaker(participant, participant if by_grant else key.address)
