"""Channels to peers, one an endpoint, pinned to its key. A broken one is replaced; none is closed under a call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc

from gonka_trainer.exchange import pin
from gonka_trainer.exchange.identity import SERVER_NAME, Identity
from gonka_trainer.exchange.limits import Limits, client_options
from gonka_trainer.ports import Endpoint
from gonka_trainer.types import Verdict


@dataclass(eq=False)
class Link:
    """A channel, the turns on it, and how many calls have or want one. `stale`: to be closed after the last of them."""

    channel: grpc.aio.Channel
    turns: asyncio.Semaphore
    calls: int = 0
    stale: bool = False


@dataclass(eq=False)
class _Place:
    """What is known of one endpoint: its channel, and the lock under which that is made."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    link: Link | None = None
    users: int = 0


class Channels:
    """Opens channels on demand and keeps them. `close` when done."""

    def __init__(self, identity: Identity, limits: Limits) -> None:
        self._identity = identity
        self._limits = limits
        self._places: dict[Endpoint, _Place] = {}

    @asynccontextmanager
    async def use(self, endpoint: Endpoint) -> AsyncIterator[Link | Verdict]:
        """Yield a pinned channel for one call, or why there is none; waits while the peer has enough calls of ours."""
        link = await self._link(endpoint)
        if isinstance(link, Verdict):
            yield link
            return
        link.calls += 1
        try:
            async with link.turns:
                yield link
        finally:
            link.calls -= 1
            if link.stale and not link.calls:
                await link.channel.close(None)

    def drop(self, endpoint: Endpoint, link: Link) -> None:
        """Have the next call make a new channel, certificate and all: this one's peer is gone or has another."""
        link.stale = True
        place = self._places.get(endpoint)
        if place is not None and place.link is link:
            place.link = None

    async def take(self, identity: Identity) -> None:
        """Show this identity from now on: channels that are open end with the calls on them."""
        self._identity = identity
        links = [place.link for place in self._places.values() if place.link is not None]
        for place in self._places.values():
            place.link = None
        for link in links:
            link.stale = True
            if not link.calls:
                await link.channel.close(None)

    async def close(self) -> None:
        """Close all channels; calls that are under way are cancelled."""
        links = [place.link for place in self._places.values() if place.link is not None]
        self._places.clear()
        for link in links:
            await link.channel.close(None)

    async def _link(self, endpoint: Endpoint) -> Link | Verdict:
        place = self._places.setdefault(endpoint, _Place())
        place.users += 1
        try:
            async with place.lock:
                while place.link is None:
                    identity = self._identity
                    made = await self._open(endpoint, identity)
                    if isinstance(made, Verdict):
                        return made
                    if identity is self._identity:
                        place.link = made
                    else:  # another identity was taken meanwhile
                        await made.channel.close(None)
                return place.link
        finally:
            place.users -= 1
            if place.link is None and not place.users and self._places.get(endpoint) is place:
                del self._places[endpoint]

    async def _open(self, endpoint: Endpoint, identity: Identity) -> Link | Verdict:
        address = pin.target(endpoint)
        if isinstance(address, Verdict):
            return address
        root = await pin.server_certificate(endpoint, self._limits.connect_seconds)
        if isinstance(root, Verdict):
            return root
        credentials = grpc.ssl_channel_credentials(root, identity.key, identity.caller)
        options = client_options(self._limits, SERVER_NAME)
        compression = grpc.Compression.NoCompression
        channel = grpc.aio.secure_channel(address, credentials, options=options, compression=compression)
        return Link(channel, asyncio.Semaphore(self._limits.calls_per_peer))
