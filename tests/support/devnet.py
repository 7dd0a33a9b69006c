"""A devnet in a process of its own whose faults a test switches; docs/development.md has the faults."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

START_SECONDS = 60
CALL_SECONDS = 120


class FaultRefusedError(Exception):
    """The devnet's text on a fault that it cannot switch."""


async def switch_fault(control: str, name: str, **keys: Any) -> Any:
    """Switch a fault at a devnet's control address (HOST:PORT); return what it answers.

    await switch_fault(control, "blocks", make=600)
    """
    return await _call("POST", f"http://{control}/{name}", keys)


async def fault_state(control: str) -> Any:
    """Everything that can be switched, as it is now."""
    return await _call("GET", f"http://{control}/state", None)


async def _call(method: str, url: str, body: Any) -> Any:
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.request(method, url, json=body) as answer:
        text = await answer.text()
        if answer.status != 200:
            raise FaultRefusedError(text)
        return json.loads(text)


@dataclass(frozen=True)
class FaultyDevnet:
    """A running devnet: its doors as HOST:PORT, its chain id and its process."""

    grpc: str
    rpc: str
    control: str
    chain_id: str
    process: asyncio.subprocess.Process

    async def fault(self, name: str, **keys: Any) -> Any:
        """Switch a fault: `await devnet.fault("drop", count=1)`."""
        return await switch_fault(self.control, name, **keys)

    async def state(self) -> Any:
        """Everything that can be switched, as it is now."""
        return await fault_state(self.control)


@asynccontextmanager
async def faulty_devnet(
    home: Path,
    *flags: str,
    accounts: Mapping[str, int] | None = None,
    genesis: Mapping[str, Any] | None = None,
    block_seconds: float = 0.2,
) -> AsyncIterator[FaultyDevnet]:
    """Run a devnet with funded accounts (address to amount) and a genesis document; it ends with the block."""
    command = ["-m", "gonka_devnet", "--home", str(home), "--block-seconds", str(block_seconds)]
    command += [part for door in ("--grpc", "--rpc", "--control") for part in (door, "127.0.0.1:0")]
    command += [part for who, amount in (accounts or {}).items() for part in ("--account", f"{who}={amount}")]
    if genesis is not None:
        path = home.with_name(home.name + "-genesis.json")
        path.write_text(json.dumps(genesis))
        command += ["--genesis", str(path)]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, *flags, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = json.loads(await asyncio.wait_for(process.stdout.readline(), START_SECONDS))
        yield FaultyDevnet(said["grpc"], said["rpc"], said["control"], said["chain_id"], process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
