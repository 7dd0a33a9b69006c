"""A devnet in a process of its own, hosts with funded keys on it, and strangers."""

from __future__ import annotations

import hashlib
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cosmpy.protos.cosmos.feegrant.v1beta1.feegrant_pb2 import BasicAllowance
from cosmpy.protos.cosmos.feegrant.v1beta1.tx_pb2 import MsgGrantAllowance, MsgRevokeAllowance
from google.protobuf.any_pb2 import Any as WireAny

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog, Pending
from gonka_trainer.chain.service import TxAnswer
from gonka_trainer.chain.sources import announce_on_kv
from gonka_trainer.chain.transactions import Fee, Message, Ordering, Signer, build
from gonka_trainer.chain.transport import NotYetError
from gonka_trainer.chain.watcher import Included, Watcher
from gonka_trainer.ports import Block
from gonka_trainer.round.naming import run_id, topic
from gonka_trainer.round.records import Announce, PlacedRecord
from gonka_trainer.types import Address, Digest, Height, sha256

CHAIN_ID: Final = "contract-1"
FUNDS: Final = 10**12
MINUTE_NS: Final = 60 * 10**9
NO_DIGEST: Final = Digest(bytes(32))


def key(name: str) -> AccountKey:
    return AccountKey.from_bytes(hashlib.sha256(name.encode()).digest())


def text(name: str) -> str:
    return encode_address(key(name).address, "gonka")


def manifest(name: str) -> Digest:
    """A manifest's hash that no other test uses."""
    return sha256(b"manifest of ", name.encode())


@dataclass
class Devnet:
    """A running devnet."""

    home: Path
    arguments: tuple[str, ...]
    grpc: str = "127.0.0.1:0"
    rpc: str = "127.0.0.1:0"
    process: subprocess.Popen[bytes] | None = None

    @property
    def node(self) -> NodeAddress:
        return NodeAddress(self.grpc, f"http://{self.rpc}")

    def start(self) -> None:
        """Start it, or start it again on the ports that it had."""
        accounts = [f"--account={text(name)}={FUNDS}" for name in ("alice", "bob", "carol")]
        places = [f"--grpc={self.grpc}", f"--rpc={self.rpc}", f"--home={self.home}", f"--chain-id={CHAIN_ID}"]
        command = [sys.executable, "-m", "gonka_devnet", *accounts, f"--account={text('poor')}=1"]
        self.home.mkdir(exist_ok=True)
        self.process = subprocess.Popen([*command, *places, *self.arguments], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the devnet did not start"
        said = json.loads(line)
        self.grpc, self.rpc = said["grpc"], said["rpc"]

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@contextmanager
def devnet(home: Path, *arguments: str, version: str = "0.2.0", block_seconds: float = 0.2) -> Iterator[Devnet]:
    """Run a devnet on free ports until the end of the block."""
    running = Devnet(home, (f"--chain-version={version}", f"--block-seconds={block_seconds}", *arguments))
    running.start()
    try:
        yield running
    finally:
        running.stop()


def client(net: Devnet, **changes: Any) -> ChainClient:
    return ChainClient(net.node, **{"chain_id": CHAIN_ID, "verify": True, **changes})


def sender(chain: ChainClient, name: str, folder: Path, **changes: Any) -> Sender:
    jitter = changes.pop("jitter", secrets.randbelow)
    settings = SendSettings(**{"poll_seconds": 0.05, **changes})
    return Sender(chain, key(name), FileSentLog(folder / f"sent-{name}"), settings, jitter)


@dataclass
class Run:
    """One run on one carrier, of which alice announced the task where the carrier has tasks."""

    carrier: str
    chain: ChainClient
    manifest_hash: Digest
    task_id: int

    @property
    def topic(self) -> Address:
        return topic(run_id(CHAIN_ID, self.manifest_hash))

    @property
    def topic_text(self) -> str:
        return encode_address(self.topic, "gonka")

    def log(self, sender: Sender) -> MemoRunLog | KvRunLog:
        if self.carrier == "memo":
            return MemoRunLog(sender, self.topic, "gonka")
        return KvRunLog(sender, self.task_id, "gonka")


async def open_run(carrier: str, chain: ChainClient, name: str, folder: Path) -> Run:
    announce = Announce(manifest(f"{carrier} {name}"), b"")
    task_id = 0
    if carrier == "kv":
        task_id, _ = await announce_on_kv(chain, sender(chain, "alice", folder), announce)
    return Run(carrier, chain, announce.manifest_hash, task_id)


async def block_at(chain: ChainClient, height: int) -> Block:
    """Return the block once it is there."""
    return await Watcher(chain, 0.05).patiently(lambda: chain.block(Height(height)))


async def read(log: MemoRunLog | KvRunLog, chain: ChainClient, start: int, end: int) -> list[PlacedRecord]:
    """Return the log's records of the blocks start to end, both included."""
    return [placed for height in range(start, end + 1) for placed in log.records(await block_at(chain, height))]


async def signed(
    chain: ChainClient, name: str, messages: Sequence[Message], memo: bytes = b"", gas: int = 400_000, **more: Any
) -> Pending:
    """Return a transaction that nobody simulated; `ahead_ns` and `granter` may be given."""
    info = await chain.info()
    account = await chain.tx.account(key(name).address)
    spread = int.from_bytes(hashlib.sha256(memo + b"".join(each.value for each in messages)).digest()[:3], "big")
    timeout_ns = info.time_ns + more.get("ahead_ns", MINUTE_NS) + spread
    signer = Signer(key(name), info.chain_id, account.number)
    fee = Fee(gas, more.get("fee", 0), "ngonka", more.get("granter", ""))
    transaction = build(messages, memo, fee, Ordering(timeout_ns=timeout_ns), signer)
    return Pending(NO_DIGEST, transaction, info.height + 1, timeout_ns, 0, 0)


async def put(chain: ChainClient, name: str, messages: Sequence[Message], memo: bytes = b"", **more: Any) -> Included:
    """Bring a stranger's transaction into a block, whatever becomes of it there."""
    pending = await signed(chain, name, messages, memo, **more)
    answer = await chain.tx.broadcast(pending.transaction)
    assert answer.code == 0, answer
    found = await Watcher(chain, 0.05).outcome(pending)
    assert found is not None
    return found


async def indexed(chain: ChainClient, tx_hash: str) -> TxAnswer:
    """Return what the index says of a transaction, once it has it."""

    async def ask() -> TxAnswer:
        found = await chain.tx.find_transaction(tx_hash)
        if found is None:
            raise NotYetError("not in the index yet")
        return found

    return await Watcher(chain, 0.05).patiently(ask)


def fee_grant(granter: str, grantee: str) -> Message:
    """Return the granting of an unlimited fee allowance, in cosmpy's types."""
    kind, limitless = "/cosmos.feegrant.v1beta1.BasicAllowance", BasicAllowance().SerializeToString()
    allowance = WireAny(type_url=kind, value=limitless)
    message = MsgGrantAllowance(granter=text(granter), grantee=text(grantee), allowance=allowance)
    return Message(b"/cosmos.feegrant.v1beta1.MsgGrantAllowance", message.SerializeToString())


def fee_revocation(granter: str, grantee: str) -> Message:
    message = MsgRevokeAllowance(granter=text(granter), grantee=text(grantee))
    return Message(b"/cosmos.feegrant.v1beta1.MsgRevokeAllowance", message.SerializeToString())
