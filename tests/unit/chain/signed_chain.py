"""A chain whose validators are known: blocks, results, commits and validators as a node's RPC answers them.

Hashes and votes are made by the devnet's code and cosmpy's messages, which share nothing with the client's.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from cosmpy.protos.tendermint.crypto.keys_pb2 import PublicKey
from cosmpy.protos.tendermint.types import types_pb2
from cosmpy.protos.tendermint.types.validator_pb2 import SimpleValidator
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from gonka_devnet import headers, merkle, rpc_json

CHAIN_ID = "signed-1"
START_NS = 1_700_000_000 * 10**9


@dataclass(frozen=True)
class Voter:
    """A validator: its key by name, its power, and whether it signs."""

    name: str
    power: int = 10
    signs: bool = True

    @property
    def key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(self.name.encode()).digest())

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    @property
    def address(self) -> bytes:
        return hashlib.sha256(self.public).digest()[:20]


def set_hash(voters: Sequence[Voter]) -> bytes:
    members = [SimpleValidator(pub_key=PublicKey(ed25519=each.public), voting_power=each.power) for each in voters]
    return merkle.root([bytes(member.SerializeToString()) for member in members])


@dataclass
class SignedChain:
    """A chain of `length` blocks with one transaction each. `voters(height)` vote on the block of that height.

    From `fork` on transactions are others. `methods` are what the node serves.
    """

    voters: Callable[[int], Sequence[Voter]]
    length: int = 40
    fork: int = 0
    methods: tuple[str, ...] = ("status", "block", "block_results", "header", "commit", "validators")
    messages: dict[int, Any] = field(default_factory=dict)
    ids: dict[int, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        previous = types_pb2.BlockID()
        previous.part_set_header.SetInParent()
        for height in range(1, self.length + 1):
            message = self._header(height, previous)
            self.messages[height] = message
            parts = types_pb2.PartSetHeader(total=1, hash=hashlib.sha256(b"parts").digest())
            previous = types_pb2.BlockID(hash=headers.header_hash(message), part_set_header=parts)
            self.ids[height] = previous

    def transactions(self, height: int) -> list[bytes]:
        return [f"transaction {height}{' forked' if self.fork and height >= self.fork else ''}".encode()]

    def _header(self, height: int, previous: Any) -> Any:
        message = types_pb2.Header(chain_id=CHAIN_ID, height=height, last_block_id=previous)
        message.version.block = 11
        message.time.CopyFrom(headers.timestamp(START_NS + height * 10**9))
        message.data_hash = headers.data_hash(self.transactions(height))
        message.validators_hash = set_hash(self.voters(height))
        message.next_validators_hash = set_hash(self.voters(height + 1))
        message.consensus_hash = headers.CONSENSUS_HASH
        message.last_results_hash = headers.results_hash([headers.wire.ExecTxResult(gas_wanted=7, gas_used=5)])
        message.proposer_address = self.voters(height)[0].address
        return message

    def _commit(self, height: int) -> dict[str, Any]:
        rows = [self._signature(height, place, voter) for place, voter in enumerate(self.voters(height))]
        return {"height": str(height), "round": 0, "block_id": rpc_json.block_id(self.ids[height]), "signatures": rows}

    def _signature(self, height: int, place: int, voter: Voter) -> dict[str, Any]:
        if not voter.signs:
            absent = {"block_id_flag": 1, "validator_address": "", "timestamp": "0001-01-01T00:00:00Z"}
            return {**absent, "signature": None}
        moment = START_NS + height * 10**9 + place
        signed = headers.vote_bytes(CHAIN_ID, height, self.ids[height], moment)
        shown = {"block_id_flag": 2, "validator_address": rpc_json.in_hex(voter.address)}
        time = rpc_json.rfc3339_nano(moment)
        return {**shown, "timestamp": time, "signature": rpc_json.in_base64(voter.key.sign(signed))}

    def answer(self, method: str, height: int) -> dict[str, Any]:
        """Return the result of a call."""
        if method == "status":
            return self._status()
        if method == "validators":
            return self._validators(height)
        header = rpc_json.header(self.messages[height])
        if method == "header":
            return {"header": header}
        if method == "commit":
            return {"signed_header": {"header": header, "commit": self._commit(height)}, "canonical": True}
        if method == "block_results":
            row = {"code": 0, "data": None, "log": "", "gas_wanted": "7", "gas_used": "5", "codespace": ""}
            return {"height": str(height), "txs_results": [row]}
        data = {"txs": [base64.b64encode(raw).decode() for raw in self.transactions(height)]}
        return {"block_id": rpc_json.block_id(self.ids[height]), "block": {"header": header, "data": data}}

    def _validators(self, height: int) -> dict[str, Any]:
        rows = [
            {
                "address": rpc_json.in_hex(voter.address),
                "pub_key": {"type": "tendermint/PubKeyEd25519", "value": rpc_json.in_base64(voter.public)},
                "voting_power": str(voter.power),
            }
            for voter in self.voters(height)
        ]
        return {"block_height": str(height), "validators": rows, "count": str(len(rows)), "total": str(len(rows))}

    def _status(self) -> dict[str, Any]:
        moment = rpc_json.rfc3339_nano(START_NS + self.length * 10**9)
        sync = {"latest_block_height": str(self.length), "latest_block_time": moment, "catching_up": False}
        info = {"network": CHAIN_ID, "version": "0.38.17", "other": {"tx_index": "on"}}
        return {"node_info": info, "sync_info": {**sync, "earliest_block_height": "1"}}

    async def respond(self, request: web.Request) -> web.Response:
        method, height = request.match_info["method"], int(request.query.get("height", self.length))
        self.asked.append(f"{method} {height}")
        if method not in self.methods:
            return web.Response(status=404, text="404 page not found\n")
        if height > self.length and not (method == "validators" and height == self.length + 1):
            data = f"height {height} must be less than or equal to the current blockchain height {self.length}"
            error = {"code": -32603, "message": "Internal error", "data": data}
            return web.json_response({"jsonrpc": "2.0", "id": -1, "error": error}, status=500)
        return web.json_response({"jsonrpc": "2.0", "id": -1, "result": self.answer(method, height)})


@asynccontextmanager
async def served(chain: SignedChain) -> AsyncIterator[str]:
    """Serve the chain's RPC; yield its URL."""
    server = web.Application()
    server.router.add_get("/{method}", chain.respond)
    runner = web.AppRunner(server)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
