"""The daemon: which of the agreed runs to serve, and for how long."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

import aiohttp

from gonka_trainer.app.accepted import Accepted, AcceptedRuns, accept
from gonka_trainer.app.host import RunHost, Speaker, has_begun
from gonka_trainer.app.opening import make_sender, open_client, open_run_log, task_sources
from gonka_trainer.app.rules import parse_address
from gonka_trainer.app.visitor import Visitor
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keys import AccountKey, load_key
from gonka_trainer.chain.sender import Sender
from gonka_trainer.config import Config
from gonka_trainer.errors import ChainError, ChainUnavailableError, ConfigError, StorageError, UserError
from gonka_trainer.exchange.identity import load_or_create_identity
from gonka_trainer.gradient.arithmetic import prove_default_mode
from gonka_trainer.manifest import manifest_hash
from gonka_trainer.manifest.document import MAX_MANIFEST_BYTES
from gonka_trainer.ports import FoundRun, NodeInfo
from gonka_trainer.storage.lock import DirectoryLock
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.types import Digest, Height

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0
_DOWNLOAD_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 60.0
_LOOK_BACK_BLOCKS: Final = 20  # what a lagging index may not have had at the last look


async def run_daemon(config: Config) -> None:
    """Serve the agreed runs, one at a time, until cancelled. UserError: somebody must mend something."""
    prove_default_mode()
    key = load_key(Path(config.keys.account_file))
    try:
        config.data_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"data_dir {config.data_path}: {error.strerror}", "name a folder that can be written"
        ) from error
    with DirectoryLock(config.data_path):
        async with open_client(config.chain) as chain:
            await _Daemon(config, chain, key).run()


class _Daemon:
    def __init__(self, config: Config, chain: ChainClient, key: AccountKey) -> None:
        self._config = config
        self._chain = chain
        self._speaker = _speaker(config, key)
        self._sender: Sender = make_sender(chain, config.chain, key, config.data_path / "sent")
        self._runs = AcceptedRuns(config.data_path)
        self._over: set[Digest] = set()
        self._found: dict[Digest, FoundRun] = {}
        self._looked = Height(1)
        self._sought: set[Digest] = set()

    async def run(self) -> None:
        info = await self._reach()
        _LOG.info(
            "chain %s at block %d, node %s; training module: %s; speaking for %s",
            info.chain_id,
            info.height,
            info.version,
            "yes" if info.training_module else "no",
            self._sender.text,
        )
        while True:
            chosen = await self._choose()
            await self._serve(chosen)

    async def _reach(self) -> NodeInfo:
        while True:
            try:
                return await self._chain.info()
            except ChainUnavailableError as error:
                _LOG.warning("%s; trying again", error.what)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _choose(self) -> Accepted:
        """Return an agreed run that is on chain: one that is not over, else the last one, to serve it on."""
        said = False
        while True:
            candidates = await self._candidates()
            going = [run for run in candidates if run.hash not in self._over]
            if going or candidates:
                return (going or candidates[-1:])[0]
            if not said:
                _LOG.info("no agreed run is on chain yet: waiting (`gonka-trainer join MANIFEST` agrees to one)")
                said = True
            await asyncio.sleep(_LOOK_SECONDS)

    async def _candidates(self) -> list[Accepted]:
        """Return the agreed runs that are on chain and were not left, in the order in which they start."""
        hashes = self._runs.hashes() | {Digest(bytes.fromhex(h)) for h in self._config.runs.accept}
        hashes = frozenset(h for h in hashes if not self._runs.has_left(h))
        await self._look(hashes)
        for run in hashes:
            if run in self._found and self._runs.get(run) is None:
                await self._get_document(self._found[run])
        return [run for run in self._runs.all() if run.hash in hashes and self._is_on_chain(run)]

    async def _look(self, hashes: frozenset[Digest]) -> None:
        """Look for announcements of agreed runs that are not known yet, from where the last look ended."""
        unknown = {h for h in hashes if h not in self._found}
        if not unknown:
            return
        if unknown - self._sought:
            self._looked, self._sought = Height(1), self._sought | unknown
        try:
            tip = (await self._chain.info()).height
            for source in task_sources(self._chain, frozenset(unknown)):
                for run in await source.runs(self._looked):
                    self._found.setdefault(run.manifest_hash, run)
            self._looked = Height(max(1, tip - _LOOK_BACK_BLOCKS))
        except ChainError as error:
            _LOG.warning("looking for runs: %s", error.what)

    def _is_on_chain(self, run: Accepted) -> bool:
        """Whether the run was announced, or this host is in it already: then nothing needs to be found again."""
        return run.hash in self._found or has_begun(self._config, run)

    async def _get_document(self, found: FoundRun) -> None:
        """Get an agreed run's manifest by what its announcement says, or from its hosts."""
        try:
            if found.url and self._config.runs.downloads:
                self._runs.add(accept(await download(found.url, found.manifest_hash), found.url))
            else:
                await self._ask_hosts(found)
        except UserError as error:
            _LOG.warning("manifest %s: %s", found.manifest_hash.hex(), error)

    async def _ask_hosts(self, found: FoundRun) -> None:
        identity = load_or_create_identity(self._config.data_path / "tls.pem")
        with ObjectStore(self._config.data_path / "visits") as store:
            visitor = Visitor(self._chain, self._sender, identity, store)
            carrier = "kv" if found.task_id else "memo"
            try:
                async with asyncio.timeout(_ASK_SECONDS):
                    self._runs.add(await visitor.manifest(found.manifest_hash, carrier, found.height))
            except TimeoutError:
                _LOG.warning("manifest %s: no host of the run gave it yet", found.manifest_hash.hex())

    async def _serve(self, accepted: Accepted) -> None:
        """Serve a run; once it is over or left, until another one can be served."""
        log = await open_run_log(self._chain, self._sender, accepted.manifest, accepted.hash)
        host = RunHost(self._config, accepted, self._speaker, self._chain, log, self._runs)
        _LOG.info("run %s (manifest %s)", accepted.manifest.name, accepted.hash.hex())
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(host.run())
            while not host.ended.is_set() and not self._runs.has_left(accepted.hash):
                await asyncio.sleep(_LOOK_SECONDS)
            if host.ended.is_set():
                self._over.add(accepted.hash)
                _LOG.info("run %s is over: idle, serving its final state", accepted.manifest.name)
            await self._another(accepted.hash)
            serving.cancel()

    async def _another(self, served: Digest) -> None:
        """Return when an agreed run other than the one served, and not over, is on chain."""
        while True:
            if any(run.hash not in self._over | {served} for run in await self._candidates()):
                return
            await asyncio.sleep(_LOOK_SECONDS)


def _speaker(config: Config, key: AccountKey) -> Speaker:
    named = config.keys.participant
    participant = parse_address(named, config.chain.prefix, "keys.participant") if named else key.address
    return Speaker(participant, key.address)


async def download(url: str, wanted: Digest) -> bytes:
    """Fetch a manifest from an https URL that the operator allowed; ConfigError when it is not the one wanted."""
    if not url.startswith("https://"):
        raise ConfigError(f"{url}: only https URLs are fetched", "get the document and name its file")
    timeout = aiohttp.ClientTimeout(total=_DOWNLOAD_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            answer.raise_for_status()
            document = b""
            async for piece in answer.content.iter_chunked(1 << 16):
                document += piece
                if len(document) > MAX_MANIFEST_BYTES:
                    break
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ConfigError(f"{url}: {error or 'no answer in time'}", "get the document and name its file") from error
    if manifest_hash(document) != wanted:
        raise ConfigError(f"{url} is not the manifest {wanted.hex()}", "ask the run's author for the document")
    return document
