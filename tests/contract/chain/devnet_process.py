"""A devnet in a process of its own, and accounts whose keys the tests hold."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from cosmpy.protos.cosmos.auth.v1beta1 import auth_pb2
from cosmpy.protos.cosmos.auth.v1beta1 import query_pb2 as auth
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from gonka_devnet import bech32
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.signature import ORDER, address_bytes

NAMES = ("alice", "bob", "carol", "dave", "nobody", "poor")
FUNDS = 10**12
FIRST_BLOCK_SECONDS = 60
TM, TX = "/cosmos.base.tendermint.v1beta1.Service/", "/cosmos.tx.v1beta1.Service/"
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Key:
    """An account's private key."""

    secret: bytes

    def _private(self) -> ec.EllipticCurvePrivateKey:
        return ec.derive_private_key(int.from_bytes(self.secret, "big"), ec.SECP256K1())

    @property
    def public(self) -> bytes:
        """The compressed public key."""
        numbers = self._private().public_key().public_numbers()
        return bytes([2 + numbers.y % 2]) + numbers.x.to_bytes(32, "big")

    def address(self, prefix: str = "gonka") -> str:
        """The bech32 address."""
        return bech32.encode(prefix, address_bytes(self.public))

    def sign(self, message: bytes, high_s: bool = False) -> bytes:
        """A signature of 64 bytes, s in the lower half unless told otherwise."""
        r, s = utils.decode_dss_signature(self._private().sign(message, ec.ECDSA(SHA256())))
        low = min(s, ORDER - s)
        return r.to_bytes(32, "big") + (ORDER - low if high_s else low).to_bytes(32, "big")


def golden_key(name: str) -> Key:
    """The keys of the recorded net."""
    return Key(hashlib.sha256(b"golden test key, never use: " + name.encode()).digest())


def topic_address(name: str, prefix: str = "gonka") -> str:
    """An address whose key nobody has."""
    return bech32.encode(prefix, hashlib.sha256(name.encode()).digest()[:20])


def eventually(ask: Callable[[], Answer | None], seconds: float = 30) -> Answer:
    """Ask again until there is an answer; fail when none comes in time."""
    import time

    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer is not None:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"nothing came in {seconds} s")
        time.sleep(0.02)


class FaultRefusedError(Exception):
    """The devnet's text on a fault that it cannot switch."""


def control_call(address: str, name: str, body: Any) -> Any:
    """What the control answers to a POST of the body, or to a GET when there is none."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(f"http://{address}/{name}", data=data, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise FaultRefusedError(error.read().decode()) from error


@dataclass
class Devnet:
    """A running devnet, with its doors."""

    process: subprocess.Popen[bytes]
    grpc: str
    rpc: str
    chain_id: str
    channel: grpc.Channel
    control: str

    def fault(self, name: str, **keys: Any) -> Any:
        """Switch a fault; what the devnet answers. `seconds` and the like are the fault's own keys."""
        return control_call(self.control, name, keys)

    def faults(self) -> Any:
        """Everything that can be switched, as it is now."""
        return control_call(self.control, "state", None)

    def call(self, path: str, request: Any, metadata: Sequence[tuple[str, str]] = ()) -> bytes:
        """Answer's bytes of a gRPC call; the request is a message or bytes."""
        return self.call_with_headers(path, request, metadata)[0]

    def call_with_headers(
        self, path: str, request: Any, metadata: Sequence[tuple[str, str]] = ()
    ) -> tuple[bytes, dict[str, Any]]:
        """Answer's bytes and its initial metadata."""
        raw = request if isinstance(request, bytes) else request.SerializeToString()
        method = self.channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
        answer, done = method.with_call(raw, timeout=20, metadata=tuple(metadata))
        return answer, dict(done.initial_metadata())

    def height(self) -> int:
        """The newest height."""
        raw = self.call(TM + "GetLatestBlock", b"")
        return int(tendermint.GetLatestBlockResponse.FromString(raw).block.header.height)

    def next_block(self) -> int:
        """Wait for a new block; its height."""
        start = self.height()
        return eventually(lambda: height if (height := self.height()) > start else None)

    def account(self, address: str) -> Any:
        """A BaseAccount."""
        raw = self.call("/cosmos.auth.v1beta1.Query/Account", auth.QueryAccountRequest(address=address))
        found = auth_pb2.BaseAccount()
        auth.QueryAccountResponse.FromString(raw).account.Unpack(found)
        return found

    def broadcast(self, raw: bytes, mode: int = 2) -> wire.TxResponse:
        """What BroadcastTx says."""
        answer = self.call(TX + "BroadcastTx", wire.BroadcastTxRequest(tx_bytes=raw, mode=mode))
        return wire.BroadcastTxResponse.FromString(answer).tx_response

    def find(self, raw: bytes) -> wire.TxResponse | None:
        """What GetTx says of these bytes; None while it is not in the index."""
        return self.find_hash(hashlib.sha256(raw).hexdigest().upper())

    def find_hash(self, digest: str) -> wire.TxResponse | None:
        """The same by hash."""
        try:
            answer = self.call(TX + "GetTx", wire.GetTxRequest(hash=digest.encode()))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            raise
        return wire.GetTxResponse.FromString(answer).tx_response

    def included(self, raw: bytes) -> wire.TxResponse:
        """Broadcast and wait for the index."""
        said = self.broadcast(raw)
        assert said.code == 0, said
        return self.included_already(raw)

    def included_already(self, raw: bytes) -> wire.TxResponse:
        """Wait for the index to have what was broadcast."""
        return eventually(lambda: self.find(raw))

    def block_time_ns(self) -> int:
        """The newest block's time, in nanoseconds since 1970."""
        moment = tendermint.GetLatestBlockResponse.FromString(self.call(TM + "GetLatestBlock", b"")).block.header.time
        return int(moment.ToNanoseconds())

    def get(self, path: str) -> Any:
        """CometBFT's RPC by address: JSON, or text where it is none."""
        try:
            with urllib.request.urlopen(f"http://{self.rpc}/{path}", timeout=20) as answer:
                body = answer.read()
        except urllib.error.HTTPError as error:
            body = error.read()
        try:
            return json.loads(body)
        except ValueError:
            return body.decode()

    def stop(self) -> int:
        """Ask it to end; its exit status."""
        self.process.terminate()
        return self.process.wait(30)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(30)

    def send(self, key: Key, recipient: str, amount: int = 1, **options: Any) -> bytes:
        """A signed bank send."""
        message = wire.MsgSend(from_address=key.address().encode(), to_address=recipient.encode())
        message.amount.add(denom=b"ngonka", amount=str(amount).encode())
        return self.sign(key, [("/cosmos.bank.v1beta1.MsgSend", message.SerializeToString())], **options)

    def sign(
        self,
        key: Key,
        messages: Sequence[tuple[str, bytes]],
        memo: bytes = b"",
        sequence: int | None = None,
        timeout_ns: int = 0,
        gas: int = 200_000,
        number: int | None = None,
        fee: int = 0,
        granter: str = "",
        mode: int = 1,
        with_key: bool = True,
    ) -> bytes:
        """A signed transaction; unordered when it has a timeout."""
        if number is None or (sequence is None and not timeout_ns):
            account = self.account(key.address())
            number = account.account_number
            sequence = account.sequence if sequence is None else sequence
        body = wire.TxBody(memo=memo, unordered=bool(timeout_ns))
        body.messages.extend(wire.AnyValue(type_url=url.encode(), value=value) for url, value in messages)
        if timeout_ns:
            body.timeout_timestamp.seconds, body.timeout_timestamp.nanos = divmod(timeout_ns, 10**9)
        auth_info = wire.AuthInfo(fee=wire.Fee(gas_limit=gas, granter=granter.encode()))
        if fee:
            auth_info.fee.amount.add(denom=b"ngonka", amount=str(fee).encode())
        info = auth_info.signer_infos.add(sequence=0 if timeout_ns else sequence or 0)
        if with_key:
            info.public_key.type_url = b"/cosmos.crypto.secp256k1.PubKey"
            info.public_key.value = wire.PubKey(key=key.public).SerializeToString()
        info.mode_info.single.mode = mode
        parts = (body.SerializeToString(), auth_info.SerializeToString())
        document = wire.SignDoc(
            body_bytes=parts[0], auth_info_bytes=parts[1], chain_id=self.chain_id.encode(), account_number=number
        )
        signature = key.sign(document.SerializeToString())
        return wire.TxRaw(body_bytes=parts[0], auth_info_bytes=parts[1], signatures=[signature]).SerializeToString()


@contextmanager
def devnet(home: Path, *flags: str, block_seconds: float = 0.2, prefix: str = "gonka") -> Iterator[Devnet]:
    """Run a devnet with the recorded net's accounts; it is ended however the test ends."""
    accounts = [
        f"{golden_key(name).address(prefix)}={1 if name == 'poor' else FUNDS}" for name in NAMES if name != "nobody"
    ]
    command = [
        sys.executable,
        "-m",
        "gonka_devnet",
        "--grpc",
        "127.0.0.1:0",
        "--rpc",
        "127.0.0.1:0",
        "--home",
        str(home),
        "--control",
        "127.0.0.1:0",
    ]
    command += ["--block-seconds", str(block_seconds), "--prefix", prefix, *flags]
    command += [part for account in accounts for part in ("--account", account)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            with grpc.insecure_channel(
                said["grpc"], options=[("grpc.max_receive_message_length", 64 << 20)]
            ) as channel:
                yield Devnet(process, said["grpc"], said["rpc"], said["chain_id"], channel, said["control"])
        finally:
            process.kill()
            process.wait(30)
