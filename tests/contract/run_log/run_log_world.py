"""A devnet in a process of its own, hosts with funded keys on it, and strangers."""

from __future__ import annotations

import hashlib
import json
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cosmpy.protos.cosmos.authz.v1beta1.authz_pb2 import GenericAuthorization, Grant
from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgGrant
from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import Coin
from cosmpy.protos.cosmos.feegrant.v1beta1.feegrant_pb2 import AllowedMsgAllowance, BasicAllowance
from cosmpy.protos.cosmos.feegrant.v1beta1.tx_pb2 import MsgGrantAllowance, MsgRevokeAllowance
from google.protobuf.any_pb2 import Any as WireAny
from google.protobuf.timestamp_pb2 import Timestamp

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
    control: str = "127.0.0.1:0"
    process: subprocess.Popen[bytes] | None = None

    @property
    def node(self) -> NodeAddress:
        return NodeAddress(self.grpc, f"http://{self.rpc}")

    def start(self) -> None:
        """Start it, or start it again on the ports that it had."""
        accounts = [f"--account={text(name)}={FUNDS}" for name in ("alice", "bob", "carol")]
        places = [f"--grpc={self.grpc}", f"--rpc={self.rpc}", f"--home={self.home}", f"--chain-id={CHAIN_ID}"]
        places.append(f"--control={self.control}")
        command = [sys.executable, "-m", "gonka_devnet", *accounts, f"--account={text('poor')}=1"]
        self.home.mkdir(exist_ok=True)
        self.process = subprocess.Popen([*command, *places, *self.arguments], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the devnet did not start"
        said = json.loads(line)
        self.grpc, self.rpc, self.control = said["grpc"], said["rpc"], said["control"]

    def fault(self, name: str, **keys: Any) -> Any:
        """Switch a fault."""
        request = urllib.request.Request(f"http://{self.control}/{name}", json.dumps(keys).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def faults(self) -> Any:
        """Everything that can be switched, as it is now."""
        with urllib.request.urlopen(f"http://{self.control}/state", timeout=60) as answer:
            return json.loads(answer.read())

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
    jitter, acts_for = changes.pop("jitter", secrets.randbelow), changes.pop("acts_for", None)
    settings = SendSettings(**{"poll_seconds": 0.05, **changes})
    return Sender(chain, key(name), FileSentLog(folder / f"sent-{name}"), settings, jitter, acts_for)


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


def basic_allowance(limit: int = 0, until_ns: int = 0) -> WireAny:
    """Return a fee allowance, in cosmpy's types: 0 is without limit."""
    coins = [Coin(denom="ngonka", amount=str(limit))] if limit else []
    until = Timestamp(seconds=until_ns // 10**9, nanos=until_ns % 10**9) if until_ns else None
    basic = BasicAllowance(spend_limit=coins, expiration=until)
    return WireAny(type_url="/cosmos.feegrant.v1beta1.BasicAllowance", value=basic.SerializeToString())


def allowance_for(message_type: bytes) -> WireAny:
    """Return one for one kind of message."""
    made = AllowedMsgAllowance(allowance=basic_allowance(), allowed_messages=[message_type.decode()])
    return WireAny(type_url="/cosmos.feegrant.v1beta1.AllowedMsgAllowance", value=made.SerializeToString())


def grant(granter: str, grantee: str, message_type: bytes) -> Message:
    """Return the granting of a kind of message for good."""
    generic = GenericAuthorization(msg=message_type.decode()).SerializeToString()
    what = WireAny(type_url="/cosmos.authz.v1beta1.GenericAuthorization", value=generic)
    message = MsgGrant(granter=text(granter), grantee=text(grantee), grant=Grant(authorization=what))
    return Message(b"/cosmos.authz.v1beta1.MsgGrant", message.SerializeToString())


def fee_grant(granter: str, grantee: str, allowance: WireAny | None = None) -> Message:
    """Return the granting of a fee allowance, without limit if none is given."""
    allowance = allowance or basic_allowance()
    message = MsgGrantAllowance(granter=text(granter), grantee=text(grantee), allowance=allowance)
    return Message(b"/cosmos.feegrant.v1beta1.MsgGrantAllowance", message.SerializeToString())


def fee_revocation(granter: str, grantee: str) -> Message:
    message = MsgRevokeAllowance(granter=text(granter), grantee=text(grantee))
    return Message(b"/cosmos.feegrant.v1beta1.MsgRevokeAllowance", message.SerializeToString())
