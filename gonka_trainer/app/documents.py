"""Getting the manifests of runs that the list allows: from an https URL, where downloads are allowed, or from hosts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

import aiohttp

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.carriers import carrier_name
from gonka_trainer.app.rules import round_params
from gonka_trainer.app.visitor import Visitor
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.sender import Sender
from gonka_trainer.config import Config
from gonka_trainer.errors import ConfigError, UserError
from gonka_trainer.exchange.identity import load_or_create_identity
from gonka_trainer.manifest import manifest_hash
from gonka_trainer.manifest.document import MAX_MANIFEST_BYTES
from gonka_trainer.ports import FoundRun
from gonka_trainer.storage.objects import ObjectStore
from gonka_trainer.text import printable
from gonka_trainer.types import Digest

_LOG: Final = logging.getLogger(__name__)
_DOWNLOAD_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 60.0
_MAX_REDIRECTS: Final = 5
_URLS_AT_A_TIME: Final = 3
_FIRST_PAUSE_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 300.0

_Way = Callable[[FoundRun], Awaitable[Accepted]]


@dataclass
class _Pause:
    """When a manifest that nobody gave may be asked for again, in the loop's seconds."""

    until: float = 0.0
    seconds: float = _FIRST_PAUSE_SECONDS


class Documents:
    """Gets one manifest at a time; a way that failed is tried again after a pause that grows.

    Anybody can announce an agreed hash once more, with a URL of his own: so a few URLs are tried at a time, those that
    were not tried for the longest time first, and the hosts of a carrier once for all who announced the run there.
    """

    def __init__(self, config: Config, chain: ChainClient, sender: Callable[[], Sender]) -> None:
        self._config = config
        self._chain = chain
        self._sender = sender
        self._pauses: dict[tuple[Digest, str], _Pause] = {}

    async def get(self, asked: Sequence[FoundRun]) -> tuple[Accepted, FoundRun] | None:
        """Return a run's manifest and who of those that announced it led there; None when nobody gives it now.

        `asked` are announcements of one run that the list allows. What went wrong is logged.
        """
        for found, way in (*self._urls(asked), *self._hosts(asked)):
            got = await self._try(found, way)
            if got is not None:
                return got, found
        return None

    def _urls(self, asked: Sequence[FoundRun]) -> list[tuple[FoundRun, _Way]]:
        by_url = {found.url: found for found in asked if found.url} if self._config.runs.downloads else {}
        waited = sorted(by_url.values(), key=lambda found: self._pause(found, found.url).until)
        return [(found, self._from_url) for found in waited[:_URLS_AT_A_TIME] if self._begin(found, found.url)]

    def _hosts(self, asked: Sequence[FoundRun]) -> list[tuple[FoundRun, _Way]]:
        earliest = {carrier_name(found): found for found in sorted(asked, key=lambda found: -found.height)}
        return [(found, self._from_hosts) for carrier, found in earliest.items() if self._begin(found, carrier)]

    def _pause(self, found: FoundRun, what: str) -> _Pause:
        return self._pauses.setdefault((found.manifest_hash, what), _Pause())

    def _begin(self, found: FoundRun, what: str) -> bool:
        """Whether it may be tried now; if so, its next pause begins."""
        pause, now = self._pause(found, what), asyncio.get_running_loop().time()
        if now < pause.until:
            return False
        pause.until, pause.seconds = now + pause.seconds, min(_LONGEST_PAUSE_SECONDS, pause.seconds * 1.5)
        return True

    async def _try(self, found: FoundRun, way: _Way) -> Accepted | None:
        try:
            got = await way(found)
            round_params(got.manifest, got.hash, self._config.chain.prefix)
            return got
        except UserError as error:
            _LOG.warning("manifest %s: %s", found.manifest_hash.hex(), error)
        except TimeoutError:
            _LOG.warning("manifest %s: no host of the run gave it yet", found.manifest_hash.hex())
        return None

    async def _from_url(self, found: FoundRun) -> Accepted:
        return accept(await download(found.url, found.manifest_hash), printable(found.url))

    async def _from_hosts(self, found: FoundRun) -> Accepted:
        identity = load_or_create_identity(self._config.data_path / "tls.pem")
        with ObjectStore(self._config.data_path / "visits") as store:
            visitor = Visitor(self._chain, self._sender(), identity, store)
            async with asyncio.timeout(_ASK_SECONDS):
                return await visitor.manifest(found.manifest_hash, carrier_name(found), found.height)


async def download(url: str, wanted: Digest) -> bytes:
    """Fetch a manifest from an https URL that the operator allowed; ConfigError when it is not the one wanted."""
    timeout = aiohttp.ClientTimeout(total=_DOWNLOAD_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            document = await _follow(session, url)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        text = f"{printable(url)}: {printable(str(error)) or 'no answer in time'}"
        raise ConfigError(text, "get the document and name its file") from error
    if manifest_hash(document) != wanted:
        raise ConfigError(
            f"{printable(url)} is not the manifest {wanted.hex()}", "ask the run's author for the document"
        )
    return document


async def _follow(session: aiohttp.ClientSession, url: str) -> bytes:
    """Return the body, cut above the largest manifest; a redirection must lead to https too."""
    for _ in range(_MAX_REDIRECTS):
        if not url.startswith("https://"):
            raise ConfigError(f"{printable(url)}: only https URLs are fetched", "get the document and name its file")
        async with session.get(url, allow_redirects=False) as answer:
            answer.raise_for_status()
            if answer.status < 300:
                return await _read(answer)
            url = urljoin(url, answer.headers.get("Location", ""))
    raise ConfigError(f"{printable(url)}: too many redirections", "get the document and name its file")


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    document = b""
    async for piece in answer.content.iter_chunked(1 << 16):
        document += piece
        if len(document) > MAX_MANIFEST_BYTES:
            break
    return document
