"""The node's doors: gRPC and CometBFT's RPC. They can be closed and opened again at the same addresses."""

from __future__ import annotations

import asyncio

import grpc.aio
from aiohttp import web

from gonka_devnet import reflection, rpc
from gonka_devnet.grpc_server import OPTIONS, Gateway, module_handlers
from gonka_devnet.node import Node
from gonka_devnet.services_tendermint import Tendermint
from gonka_devnet.services_tx import Transactions

GRACE_SECONDS = 0.5
TRIES, TRY_AGAIN_SECONDS = 100, 0.1


class Doors:
    """`grpc` and `rpc` are HOST:PORT; a port of 0 is chosen by the system when they are opened first."""

    def __init__(self, node: Node, version: str, grpc_address: str, rpc_address: str) -> None:
        self.grpc = grpc_address
        self.rpc = rpc_address
        self._node = node
        self._version = version
        self._server: grpc.aio.Server | None = None
        self._runner: web.AppRunner | None = None

    def _addresses(self) -> tuple[str, str]:
        return self.grpc, self.rpc

    async def open(self) -> None:
        """Listen; raise OSError where an address is taken."""
        tendermint = Tendermint(self._node, self._version, self._addresses)
        handlers = {**module_handlers(self._node), **tendermint.handlers(), **Transactions(self._node).handlers()}
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((*reflection.handlers(handlers), Gateway(self._node, handlers)))
        host = self.grpc.rpartition(":")[0]
        try:
            self.grpc = f"{host}:{server.add_insecure_port(self.grpc)}"
        except RuntimeError as error:  # so grpc says it
            raise OSError(
                f"--grpc {self.grpc} cannot be listened at, it may be taken: port 0 takes a free one"
            ) from error
        await server.start()
        self._server = server
        rpc_host, _, port = self.rpc.rpartition(":")
        self._runner, bound = await rpc.start(rpc.Rpc(self._node, self._addresses), rpc_host, int(port))
        self.rpc = f"{rpc_host}:{bound}"

    async def close(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Refuse connections and end those that are open."""
        server, runner, self._server, self._runner = self._server, self._runner, None, None
        if server is not None:
            await server.stop(grace_seconds)
        if runner is not None:
            await runner.cleanup()

    async def open_again(self) -> None:
        """Listen at the same addresses, waiting for them if another has them for a moment."""
        for left in reversed(range(TRIES)):
            try:
                await self.open()
            except OSError:
                await self.close(0)
                if not left:
                    raise
                await asyncio.sleep(TRY_AGAIN_SECONDS)
            else:
                return
