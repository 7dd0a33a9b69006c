"""A node that the suite asks over the wire alone: a devnet by default, or any node that the environment names."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from cosmpy.protos.cosmos.auth.v1beta1 import query_pb2 as auth
from cosmpy.protos.cosmos.bank.v1beta1 import query_pb2 as bank
from cosmpy.protos.cosmos.base.node.v1beta1 import query_pb2 as node_query
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from cosmpy.protos.cosmos.tx.v1beta1 import service_pb2 as tx_service

from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog, Pending
from gonka_trainer.chain.service import TxAnswer
from gonka_trainer.chain.transactions import Fee, Message, Ordering, Signer, build, send_message, tx_hash
from gonka_trainer.chain.transport import NodeAnswerError, NotYetError
from gonka_trainer.chain.watcher import Included, Watcher
from gonka_trainer.ports import Block
from gonka_trainer.types import Digest, Height, sha256

GRPC, RPC, KEYS, DENOM = "CHAIN_GRPC", "CHAIN_RPC", "CHAIN_KEYS", "CHAIN_DENOM"
AUTH, BANK, TX, TM = "/cosmos.auth.v1beta1.", "/cosmos.bank.v1beta1.", "/cosmos.tx.v1beta1.Service/", "/cosmos.base."
TRAINING: Final = "/inference.inference.Query/"
MINUTE_NS: Final = 60 * 10**9
FUNDS: Final = 10**12
GAS: Final = 400_000
NO_DIGEST: Final = Digest(bytes(32))
DEVNET_PRICES: Final = {"0.2.0": "", "0.2.16": "0.25ngonka"}


@dataclass(frozen=True)
class Node:
    """A node and what it can: `missing` says why a test that needs something cannot run there."""

    grpc: str
    rpc: str
    chain_id: str
    prefix: str
    denom: str
    gas_price: Decimal
    secrets: tuple[bytes, ...]
    missing: Mapping[str, str]
    channel: grpc.Channel
    control: str

    def need(self, *abilities: str) -> None:
        """Skip the test where the node lacks one of these."""
        for ability in abilities:
            if ability in self.missing:
                pytest.skip(self.missing[ability])

    def key(self, index: int) -> AccountKey:
        """One of the funded keys."""
        return AccountKey.from_bytes(self.secrets[index])

    def text(self, key: AccountKey) -> str:
        """The key's address."""
        return encode_address(key.address, self.prefix)

    def topic(self) -> str:
        """An address whose key nobody has, another one each time."""
        return encode_address(AccountKey.from_bytes(secrets.token_bytes(32)).address, self.prefix)

    def fee(self, gas: int, amount: int | None = None, granter: str = "") -> Fee:
        """What the node asks for this much gas, or an amount."""
        return Fee(gas, math.ceil(gas * self.gas_price) if amount is None else amount, self.denom, granter)

    def call(self, path: str, request: Any = b"", height: int | None = None) -> bytes:
        """The answer's bytes of a gRPC call; raises grpc.RpcError."""
        raw = request if isinstance(request, bytes) else request.SerializeToString()
        method = self.channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
        metadata = () if height is None else (("x-cosmos-block-height", str(height)),)
        answer: bytes = method(raw, timeout=30, metadata=metadata)
        return answer

    def balance(self, address: str, height: int | None = None) -> int:
        """What the account holds, asked for without our client."""
        request = bank.QueryBalanceRequest(address=address, denom=self.denom)
        answer = bank.QueryBalanceResponse.FromString(self.call(BANK + "Query/Balance", request, height))
        return int(answer.balance.amount or 0)

    def client(self) -> ChainClient:
        """Our client, to be entered."""
        address = NodeAddress(self.grpc, self.rpc)
        return ChainClient(address, chain_id=self.chain_id, prefix=self.prefix, verify=True)

    def fault(self, name: str, **keys: Any) -> Any:
        """Switch a fault of the devnet."""
        request = urllib.request.Request(f"http://{self.control}/{name}", json.dumps(keys).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    @property
    def poll_seconds(self) -> float:
        """How often to ask: blocks of a devnet come fast."""
        return 0.5 if "control" in self.missing else 0.03


def encoded(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Protobuf bytes of (number, whole number or text or bytes) for messages that our client has no use for."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(_varint(number << 3) + _varint(value))
        else:
            raw = value.encode() if isinstance(value, str) else value
            parts.append(_varint(number << 3 | 2) + _varint(len(raw)) + raw)
    return b"".join(parts)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def code_of(error: pytest.ExceptionInfo[grpc.RpcError]) -> tuple[grpc.StatusCode, str]:
    """Status and text of a call that failed."""
    call: Any = error.value
    return call.code(), call.details()


def sender(node: Node, chain: ChainClient, key: AccountKey, folder: Path, **changes: Any) -> Sender:
    """Our sender; `acts_for` and any setting may be given."""
    acts_for = changes.pop("acts_for", None)
    asked = {"denom": node.denom, "gas_price": node.gas_price, "poll_seconds": node.poll_seconds}
    return Sender(chain, key, FileSentLog(folder), SendSettings(**{**asked, **changes}), acts_for=acts_for)


async def account(node: Node, chain: ChainClient, folder: Path, amount: int = 0) -> AccountKey:
    """A new account with this much, or enough for a few transactions."""
    node.need("sends")
    made = AccountKey.from_bytes(secrets.token_bytes(32))
    amount = amount or max(1000, int(20 * GAS * node.gas_price))
    message = send_message(node.text(node.key(0)), node.text(made), amount, node.denom)
    payer = sender(node, chain, node.key(0), folder / "funding")
    await payer.deliver(sha256(made.address), [message])
    return made


async def ordering(chain: ChainClient, ahead_ns: int = MINUTE_NS) -> Ordering:
    """An unordered one."""
    return Ordering(timeout_ns=(await chain.info()).time_ns + ahead_ns + secrets.randbelow(10**6))


async def signer(chain: ChainClient, key: AccountKey) -> Signer:
    """The key with its account's number."""
    return Signer(key, await chain.chain_id(), (await chain.tx.account(key.address)).number)


async def signed(
    node: Node,
    chain: ChainClient,
    key: AccountKey,
    messages: Sequence[Message],
    memo: bytes = b"",
    fee: Fee | None = None,
    order: Ordering | None = None,
) -> Pending:
    """A transaction that nobody simulated."""
    order = order or await ordering(chain)
    raw = build(messages, memo, fee or node.fee(GAS), order, await signer(chain, key))
    start = Height((await chain.info()).height + 1)
    return Pending(NO_DIGEST, raw, start, order.timeout_ns, order.timeout_height, 0)


async def outcome(node: Node, chain: ChainClient, pending: Pending) -> Included:
    """What became of it in its block."""
    found = await Watcher(chain, node.poll_seconds).outcome(pending)
    assert found is not None, "it is in no block"
    return found


async def put(
    node: Node, chain: ChainClient, key: AccountKey, messages: Sequence[Message], memo: bytes = b"", **more: Any
) -> Included:
    """Hand it over, and wait for its block whatever becomes of it there."""
    pending = await signed(node, chain, key, messages, memo, **more)
    answer = await chain.tx.broadcast(pending.transaction)
    assert answer.code == 0, answer
    return await outcome(node, chain, pending)


async def block_at(node: Node, chain: ChainClient, height: int) -> Block:
    """The block once it is there."""
    return await Watcher(chain, node.poll_seconds).patiently(lambda: chain.block(Height(height)))


async def indexed(node: Node, chain: ChainClient, raw: bytes) -> TxAnswer:
    """What the index says of a transaction, once it has it."""
    node.need("index")

    async def ask() -> TxAnswer:
        found = await chain.tx.find_transaction(tx_hash(raw))
        if found is None:
            raise NotYetError("not in the index yet")
        return found

    return await Watcher(chain, node.poll_seconds).patiently(ask)


# -- which node -------------------------------------------------------------------------------------------------------


def named() -> bool:
    """Whether the environment names a node."""
    return bool(os.environ.get(GRPC))


@contextmanager
def open_node(version: str, home: Path) -> Iterator[Node]:
    """The named node, or a devnet of this version."""
    if named():
        with _connected(os.environ[GRPC], os.environ.get(RPC, ""), _read_keys(), "") as node:
            yield node
        return
    private = tuple(hashlib.sha256(f"node suite {name}".encode()).digest() for name in "ab")
    with (
        _devnet(version, home, private) as said,
        _connected(said["grpc"], said["rpc"], private, said["control"]) as node,
    ):
        yield node


@contextmanager
def _devnet(version: str, home: Path, private: Sequence[bytes]) -> Iterator[dict[str, str]]:
    addresses = [encode_address(AccountKey.from_bytes(each).address, "gonka") for each in private]
    command = [sys.executable, "-m", "gonka_devnet", "--grpc=127.0.0.1:0", "--rpc=127.0.0.1:0", f"--home={home}"]
    command += [f"--chain-version={version}", "--block-seconds=0.1", "--chain-id=suite-1", "--control=127.0.0.1:0"]
    command += [f"--account={address}={FUNDS}" for address in addresses]
    command += [f"--min-gas-price={DEVNET_PRICES[version]}"] if DEVNET_PRICES[version] else []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.kill()


def _read_keys() -> tuple[bytes, ...]:
    path = os.environ.get(KEYS, "")
    lines = Path(path).read_text().split() if path else []
    assert len(lines) >= 2, f"{KEYS} names a file with at least two funded keys, each 64 hexadecimal digits on a line"
    return tuple(bytes.fromhex(line) for line in lines)


@contextmanager
def _connected(target: str, rpc: str, private: tuple[bytes, ...], control: str) -> Iterator[Node]:
    scheme, _, host = target.rpartition("://")
    assert rpc, f"{RPC} names the node's CometBFT RPC, host:port"
    url = rpc if "://" in rpc else f"http://{rpc}"
    options = [("grpc.max_receive_message_length", 64 << 20)]
    if scheme == "https":
        channel = grpc.secure_channel(host, grpc.ssl_channel_credentials(), options)
    else:
        channel = grpc.insecure_channel(host, options)
    with channel:
        node = _describe(Node(target, url, "", "", "", Decimal(0), private, {}, channel, control))
        yield replace(node, missing={**node.missing, **asyncio.run(_missing_by_simulation(node))})


def _describe(bare: Node) -> Node:
    said = auth.Bech32PrefixResponse.FromString(bare.call(AUTH + "Query/Bech32Prefix"))
    info = tendermint.GetNodeInfoResponse.FromString(bare.call(TM + "tendermint.v1beta1.Service/GetNodeInfo"))
    chain_id, prefix = info.default_node_info.network, said.bech32_prefix
    holder = encode_address(AccountKey.from_bytes(bare.secrets[0]).address, prefix)
    held = bank.QueryAllBalancesResponse.FromString(
        bare.call(BANK + "Query/AllBalances", bank.QueryAllBalancesRequest(address=holder))
    )
    assert held.balances, f"{holder} holds nothing: the keys must be funded"
    denom = os.environ.get(DENOM) or max(held.balances, key=lambda coin: int(coin.amount)).denom
    price = _gas_price(bare, denom)
    missing = _missing(bare, price)
    return replace(bare, chain_id=chain_id, prefix=prefix, denom=denom, gas_price=price, missing=missing)


def _gas_price(node: Node, denom: str) -> Decimal:
    """The least price of gas in this denomination that the node says it takes."""
    raw = node.call(TM + "node.v1beta1.Service/Config")
    prices = node_query.ConfigResponse.FromString(raw).minimum_gas_price
    found = [price[: -len(denom)] for price in prices.split(",") if price.endswith(denom)]
    return Decimal(found[0]) if found else Decimal(0)


def _missing(node: Node, price: Decimal) -> dict[str, str]:
    missing = {}
    if not node.control:
        missing["control"] = "a node that is not ours cannot be made to fail"
    if price:
        missing["free"] = "the node asks for a gas price"
    else:
        missing["price"] = "the node asks for no gas price"
    for ability, method, reason in (
        ("epochs", "EpochInfo", "the chain has no epochs"),
        ("training", "TrainingTaskAll", "the chain has no training module"),
    ):
        if not _answers(node, TRAINING + method):
            missing[ability] = reason
    if "training" not in missing:
        missing["no training"] = "the chain has the training module"
    try:
        node.call(TX + "GetTx", tx_service.GetTxRequest(hash="00" * 32))
    except grpc.RpcError as error:
        details: Any = error
        if "indexing is disabled" in details.details():
            missing["index"] = "the node keeps no transaction index"
    return missing


async def _missing_by_simulation(node: Node) -> dict[str, str]:
    async with node.client() as chain:
        send = send_message(node.text(node.key(0)), node.text(node.key(1)), 1, node.denom)
        probe = await signed(node, chain, node.key(0), [send])
        try:
            await chain.tx.simulate(probe.transaction)
        except NodeAnswerError as error:
            if "restricted" in error.details:
                return {"sends": "the chain forbids sends between users now"}
            if "not supported" in error.details:
                return {"unordered": "the chain takes no unordered transactions"}
            raise
    return {}


def _answers(node: Node, path: str) -> bool:
    try:
        node.call(path)
    except grpc.RpcError as error:
        status: Any = error
        return bool(status.code() is not grpc.StatusCode.UNIMPLEMENTED)
    return True
