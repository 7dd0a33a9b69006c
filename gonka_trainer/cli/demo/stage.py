"""The processes of the demo: a devnet and the hosts, each with its own key, folder, port and worker."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from gonka_trainer.app.accepted import Accepted, AcceptedRuns
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.keys import create_key
from gonka_trainer.config import ChainConfig
from gonka_trainer.errors import ChainError, UserError

_FUNDS: Final = 10**15
_START_SECONDS: Final = 60
_WITH_ALLOW_LISTS: Final = ("0.2.11",)
_STOP_SECONDS: Final = 15
_CONFIG: Final = """\
data_dir = "data"

[chain]
grpc = "{grpc}"
rpc = "{rpc}"
chain_id = "{chain_id}"

[keys]
account_file = "account.key"

[exchange]
bind = "127.0.0.1:0"
advertise = "127.0.0.1:0"

[worker]
data = "{data}"
evaluate = {evaluate}
{worker}
"""


@dataclass(frozen=True)
class DemoHost:
    """A host's folder and what it is called."""

    name: str
    folder: Path
    address: str

    @property
    def data(self) -> Path:
        """The daemon's data directory."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The daemon's log."""
        return self.folder / "daemon.log"

    @property
    def config(self) -> Path:
        """The daemon's configuration."""
        return self.folder / "gonka-trainer.toml"


class Stage:
    """Starts and stops the processes. `chain` is set once the devnet runs."""

    def __init__(self, out: Path, host_count: int, chain_version: str, block_seconds: float) -> None:
        self._out = out
        self._host_count = host_count
        self._chain_version = chain_version
        self._block_seconds = block_seconds
        self._stack = AsyncExitStack()
        self.hosts: tuple[DemoHost, ...] = ()
        self.researcher = out / "keys" / "researcher.key"
        self.chain = ChainConfig("127.0.0.1:0", "http://127.0.0.1:0", "")
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def __aenter__(self) -> Stage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def start_chain(self) -> None:
        """Make the accounts and start the devnet."""
        self.researcher.parent.mkdir(parents=True)
        addresses = [encode_address(create_key(self.researcher).address, "gonka")]
        hosts = []
        for number in range(1, self._host_count + 1):
            folder = self._out / f"host-{number}"
            folder.mkdir()
            address = encode_address(create_key(folder / "account.key").address, "gonka")
            hosts.append(DemoHost(f"host-{number}", folder, address))
        self.hosts = tuple(hosts)
        addresses += [host.address for host in hosts]
        accounts = [flag for address in addresses for flag in ("--account", f"{address}={_FUNDS}")]
        ready = await self._devnet(accounts)
        self.chain = ChainConfig(ready["grpc"], _url(ready["rpc"]), ready["chain_id"])

    async def _devnet(self, accounts: list[str]) -> dict[str, Any]:
        flags = ["--home", str(self._out / "chain"), "--chain-version", self._chain_version]
        flags += ["--grpc", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--block-seconds", str(self._block_seconds)]
        if self._chain_version in _WITH_ALLOW_LISTS:
            flags += [f"--allow-training={flag.partition('=')[0]}" for flag in accounts if "=" in flag]
        process = await self._start("devnet", ["-m", "gonka_devnet", *flags, *accounts], self._out / "devnet.log")
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
            return dict(json.loads(line))
        except (TimeoutError, ValueError) as error:
            raise ChainError("the devnet did not start", f"see {self._out / 'devnet.log'}") from error

    async def start_hosts(self, run: Accepted, data: Path, worker: str = "") -> None:
        """Configure each host, agree to the run for it, and start its daemon; the first one evaluates."""
        for host in self.hosts:
            AcceptedRuns(host.data).add(run)
            evaluate = "true" if host is self.hosts[0] else "false"
            text = _CONFIG.format(
                grpc=self.chain.grpc,
                rpc=self.chain.rpc,
                chain_id=self.chain.chain_id,
                data=data.resolve(),
                evaluate=evaluate,
                worker=worker,
            )
            host.config.write_text(text)
            await self.start_host(host)

    async def start_host(self, host: DemoHost) -> None:
        """Start (again) a host's daemon."""
        await self._start(host.name, ["-m", "gonka_trainer", "run", "--config", str(host.config)], host.log)

    def check(self) -> None:
        """Raise UserError when a process has ended by itself."""
        for name, process in self.processes.items():
            if process.returncode is not None:
                raise UserError(f"{name} ended with status {process.returncode}", f"its log is in {self._out}")

    async def _start(self, name: str, arguments: list[str], log: Path) -> asyncio.subprocess.Process:
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=file
            )
        self.processes[name] = process
        self._stack.push_async_callback(stop, process)
        return process


async def stop(process: asyncio.subprocess.Process) -> None:
    """Ask a process to end, and make it."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _url(rpc: str) -> str:
    return rpc if rpc.startswith("http") else f"http://{rpc}"
