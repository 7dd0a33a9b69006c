"""Start a devnet: python -m gonka_devnet --account ADDRESS=AMOUNT ..."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc.aio

from gonka_devnet import genesis, reflection, rpc
from gonka_devnet.app import App, Chain
from gonka_devnet.auth import Auth
from gonka_devnet.authz import Authz
from gonka_devnet.bank import Bank
from gonka_devnet.blocks import POWER, Maker
from gonka_devnet.database import Database
from gonka_devnet.feegrant import Feegrant
from gonka_devnet.grpc_server import OPTIONS, Gateway, module_handlers
from gonka_devnet.index import Index
from gonka_devnet.inference import build
from gonka_devnet.node import Node
from gonka_devnet.services_tendermint import Tendermint
from gonka_devnet.services_tx import Transactions
from gonka_devnet.staking import Staking

VERSIONS = ("0.2.0", "0.2.11", "0.2.16")
GRACE_SECONDS = 0.5


def account(text: str) -> tuple[str, int]:
    """Read ADDRESS=AMOUNT."""
    address, sign, amount = text.partition("=")
    if not sign or not amount.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS=AMOUNT")
    return address, int(amount)


def price(text: str) -> tuple[str, Fraction]:
    """Read a gas price such as 0.25ngonka."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-zA-Z][a-zA-Z0-9/:._-]*)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a price such as 0.25ngonka")
    return match.group(2), Fraction(match.group(1))


def host_port(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, sign, port = text.rpartition(":")
    if not sign or not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser("gonka_devnet", description="A Gonka-compatible single-process chain.")
    add = made.add_argument
    add("--account", type=account, action="append", default=[], metavar="ADDRESS=AMOUNT", help="a funded account")
    add("--grpc", type=host_port, default=("127.0.0.1", 9090), metavar="HOST:PORT")
    add("--rpc", type=host_port, default=("127.0.0.1", 26657), metavar="HOST:PORT")
    add("--chain-id", default="gonka-devnet")
    add("--prefix", default="gonka", help="of addresses")
    add("--denom", default="ngonka")
    add("--block-seconds", type=float, default=1.0)
    add("--min-gas-price", type=price, default=None, metavar="0.25ngonka")
    add("--index-lag-seconds", type=float, default=0.1)
    add("--home", type=Path, default=None, help="where the chain lives; a temporary folder if left out")
    add("--genesis", type=Path, default=None, help="JSON: one object for each module")
    add("--chain-version", choices=VERSIONS, default="0.2.16")
    add("--allow-training", action="append", default=[], metavar="ADDRESS")
    return made


def application(chain: Chain, chain_version: str, validator_key: Callable[[], bytes]) -> App:
    """Return the application with the chain's modules in their order."""
    made: list[App] = []
    authz = Authz(lambda: made[0].messages)
    staking = Staking(POWER, validator_key)
    made.append(App(chain, [Auth(), Bank(), Feegrant(), authz, staking, build(chain_version)]))
    return made[0]


async def serve(options: argparse.Namespace, home: Path) -> None:
    """Run the chain until a signal comes."""
    prices = dict([options.min_gas_price]) if options.min_gas_price else {}
    chain = Chain(options.chain_id, options.prefix, options.denom, prices)
    keys: list[bytes] = []
    app = application(chain, options.chain_version, lambda: keys[0])
    documents = genesis.read_documents(options.genesis, dict(options.account), options.allow_training)
    async with AsyncExitStack() as stack:
        database, index = Database(home / "state.db"), Index(home / "index.db")
        database.open()
        stack.callback(database.close)
        index.open()
        stack.callback(index.close)
        validator, genesis_time_ns = genesis.start(app, database, documents)
        keys.append(validator.public_key)
        maker = Maker(app, database, validator, genesis_time_ns)
        node = Node(app, database, index, validator, maker, options.block_seconds, options.index_lag_seconds)
        node.load()
        await _serve(stack, node, options)


async def _serve(stack: AsyncExitStack, node: Node, options: argparse.Namespace) -> None:
    bound: list[str] = ["", ""]
    tendermint = Tendermint(node, options.chain_version, lambda: (bound[0], bound[1]))
    server = grpc.aio.server(options=OPTIONS)
    handlers = {**module_handlers(node), **tendermint.handlers(), **Transactions(node).handlers()}
    server.add_generic_rpc_handlers((*reflection.handlers(handlers), Gateway(node, handlers)))
    host, port = options.grpc
    bound[0] = f"{host}:{server.add_insecure_port(f'{host}:{port}')}"
    await server.start()
    stack.push_async_callback(server.stop, GRACE_SECONDS)
    rpc_host, rpc_port = options.rpc
    runner, rpc_port = await rpc.start(rpc.Rpc(node, lambda: (bound[0], bound[1])), rpc_host, rpc_port)
    stack.push_async_callback(runner.cleanup)
    bound[1] = f"{rpc_host}:{rpc_port}"
    running = asyncio.create_task(node.run())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, node.stop)
    first = asyncio.ensure_future(node.first_block())
    await asyncio.wait((first, running), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        first.cancel()
        return await running
    said: dict[str, Any] = {"grpc": bound[0], "rpc": bound[1], "chain_id": options.chain_id}
    print(json.dumps(said), flush=True)
    return await running


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gonka-devnet-") as temporary:
        try:
            asyncio.run(serve(options, options.home or Path(temporary)))
        except (ValueError, OSError, sqlite3.Error) as error:
            print(f"gonka_devnet: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
