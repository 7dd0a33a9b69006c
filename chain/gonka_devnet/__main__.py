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

from gonka_devnet import control, genesis
from gonka_devnet.app import App, Chain
from gonka_devnet.auth import Auth
from gonka_devnet.authz import Authz
from gonka_devnet.bank import Bank
from gonka_devnet.blocks import POWER, Maker
from gonka_devnet.clock import Clock
from gonka_devnet.database import Database
from gonka_devnet.doors import Doors
from gonka_devnet.feegrant import Feegrant
from gonka_devnet.index import Index
from gonka_devnet.inference import build
from gonka_devnet.node import Node
from gonka_devnet.staking import Staking

GENESIS_HELP = """\
a genesis file is a JSON object with one object for each module, all keys optional:
  {"bank": {"balances": {"gonka1...": 1000000}, "restricted_until": 0},
   "inference": {"epoch_params": {"epoch_length": 50, "epoch_shift": 0, "poc_stage_duration": 4,
                                  "poc_exchange_duration": 1, "poc_validation_delay": 1,
                                  "poc_validation_duration": 4, "set_new_validators_delay": 1},
                 "models": ["Qwen/QwQ-32B"],
                 "participants": [{"address": "gonka1...", "weight": 100, "url": "https://...",
                                   "nodes": [{"local_id": "node-1", "models": ["Qwen/QwQ-32B"],
                                              "hardware": [{"type": "H100", "count": 8}]}]}],
                 "allow_training": ["gonka1..."]}}
restricted_until is the height below which bank sends between users fail. Epoch parameters are in blocks; what is left
out is as above. Participants with a weight are the members from the first block on. allow_training fills both lists
(EXEC and START) of chain version 0.2.11, as --allow-training does.
"""
ADDRESS_HELP = "127.0.0.1:{} if left out; with port 0 the system chooses"
VERSIONS = ("0.2.0", "0.2.11", "0.2.16")


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
    made = argparse.ArgumentParser(
        "gonka_devnet",
        description="A Gonka-compatible single-process chain.",
        epilog=GENESIS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--account", type=account, action="append", default=[], metavar="ADDRESS=AMOUNT", help="a funded account")
    add("--grpc", type=host_port, default=("127.0.0.1", 9090), metavar="HOST:PORT", help=ADDRESS_HELP.format(9090))
    add("--rpc", type=host_port, default=("127.0.0.1", 26657), metavar="HOST:PORT", help=ADDRESS_HELP.format(26657))
    add("--chain-id", default="gonka-devnet")
    add("--prefix", default="gonka", help="of addresses")
    add("--denom", default="ngonka")
    add("--block-seconds", type=float, default=1.0)
    add("--min-gas-price", type=price, default=None, metavar="0.25ngonka")
    add("--index-lag-seconds", type=float, default=0.1)
    add("--home", type=Path, default=None, help="where the chain lives; a temporary folder if left out")
    add("--genesis", type=Path, default=None, help="JSON, see below")
    add("--chain-version", choices=VERSIONS, default="0.2.16")
    add("--control", type=host_port, default=None, metavar="HOST:PORT", help="faults on request, for tests alone")
    add("--allow-training", action="append", default=[], metavar="ADDRESS", help="may train on 0.2.11")
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
        clock = Clock()
        maker = Maker(app, database, validator, genesis_time_ns, clock)
        node = Node(app, database, index, validator, maker, clock, options.block_seconds, options.index_lag_seconds)
        node.load()
        await _serve(stack, node, options)


async def _serve(stack: AsyncExitStack, node: Node, options: argparse.Namespace) -> None:
    doors = Doors(node, options.chain_version, *(f"{host}:{port}" for host, port in (options.grpc, options.rpc)))
    stack.push_async_callback(doors.close)
    await doors.open()
    said = {"grpc": doors.grpc, "rpc": doors.rpc, "chain_id": options.chain_id}
    if options.control is not None:
        said["control"] = await _start_control(stack, node, doors, options)
    running = asyncio.create_task(node.run())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, node.stop)
    first = asyncio.ensure_future(node.first_block())
    await asyncio.wait((first, running), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        first.cancel()
        return await running
    print(json.dumps(said), flush=True)
    return await running


async def _start_control(stack: AsyncExitStack, node: Node, doors: Doors, options: argparse.Namespace) -> str:
    switches = control.Control(node, doors, options.chain_version)
    stack.push_async_callback(switches.close)
    host, port = options.control
    runner, bound = await control.start(switches, host, port)
    stack.push_async_callback(runner.cleanup)
    return f"{host}:{bound}"


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
