"""cosmos.base.tendermint.v1beta1.Service and cosmos.base.node.v1beta1.Service."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import grpc
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as query
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import types_pb2 as types
from cosmpy.protos.cosmos.crypto.ed25519.keys_pb2 import PubKey
from google.protobuf.any_pb2 import Any as AnyMessage

from gonka_devnet import bech32, headers
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.blocks import POWER, Block
from gonka_devnet.errors import invalid_argument
from gonka_devnet.grpc_server import Handler
from gonka_devnet.module import QueryError
from gonka_devnet.node import Node
from gonka_devnet.paging import page

SERVICE = "/cosmos.base.tendermint.v1beta1.Service/"
NODE_SERVICE = "/cosmos.base.node.v1beta1.Service/"
COMET_VERSION = "0.38.17"
SDK_VERSION = "v0.53.3"
CHANNELS = bytes.fromhex("40202122233038606100")


def node_id(node: Node) -> str:
    """Return the node's id: 40 hexadecimal digits."""
    return hashlib.sha256(b"node of " + node.validator.public_key).hexdigest()[:40]


def tx_index(node: Node) -> str:
    """Return what the node says of its transaction index."""
    return "on" if node.faults.index else "off"


class Tendermint:
    """Blocks, validators and what the node says of itself."""

    def __init__(self, node: Node, version: str, addresses: Callable[[], tuple[str, str]]) -> None:
        self._node = node
        self._version = version
        self._addresses = addresses

    def handlers(self) -> dict[str, Handler]:
        """Return the methods by path."""
        table: dict[str, tuple[Any, Callable[[Any, int], Any]]] = {
            "GetNodeInfo": (query.GetNodeInfoRequest, self.node_info),
            "GetSyncing": (query.GetSyncingRequest, lambda _r, _h: query.GetSyncingResponse()),
            "GetLatestBlock": (query.GetLatestBlockRequest, self.latest_block),
            "GetBlockByHeight": (query.GetBlockByHeightRequest, self.block_by_height),
            "GetLatestValidatorSet": (query.GetLatestValidatorSetRequest, self.latest_validators),
            "GetValidatorSetByHeight": (query.GetValidatorSetByHeightRequest, self.validators_by_height),
        }
        served = {SERVICE + name: _served(*entry) for name, entry in table.items()}
        served[NODE_SERVICE + "Config"] = _served(wire.PageRequest, self.config)
        served[NODE_SERVICE + "Status"] = _served(wire.PageRequest, self.status)
        return served

    def node_info(self, _request: Any, _height: int) -> Any:
        """Answer GetNodeInfo."""
        listen, rpc = self._addresses()
        return query.GetNodeInfoResponse(
            default_node_info={
                "protocol_version": {"p2p": 8, "block": headers.BLOCK_PROTOCOL},
                "default_node_id": node_id(self._node),
                "listen_addr": f"tcp://{listen}",
                "network": self._node.chain_id,
                "version": COMET_VERSION,
                "channels": CHANNELS,
                "moniker": "devnet",
                "other": {"tx_index": tx_index(self._node), "rpc_address": f"tcp://{rpc}"},
            },
            application_version={
                "name": "inference",
                "app_name": "inferenced",
                "version": self._version,
                "cosmos_sdk_version": SDK_VERSION,
            },
        )

    def _answer(self, response: Any, block: Block) -> Any:
        message = block.message
        shown = types.Block.FromString(wire_without_header(message))
        shown.header.CopyFrom(_sdk_header(message.header, self._node.app.chain.prefix))
        return response(block_id=block.block_id, block=message, sdk_block=shown)

    def latest_block(self, _request: Any, _height: int) -> Any:
        """Answer GetLatestBlock."""
        return self._answer(query.GetLatestBlockResponse, self._node.last)

    def block_by_height(self, request: Any, _height: int) -> Any:
        """Answer GetBlockByHeight."""
        self._check(request.height)
        return self._answer(query.GetBlockByHeightResponse, self._node.block(request.height))

    def _check(self, height: int) -> None:
        if height > self._node.height:
            raise invalid_argument("requested block height is bigger then the chain length")
        if height < 1:
            raise QueryError(grpc.StatusCode.UNKNOWN, f"height must be greater than 0, but got {height}")

    def _validators(self, response: Any, request: Any, height: int) -> Any:
        key, validator = PubKey(key=self._node.validator.public_key), self._node.validator
        shown = query.Validator(
            address=bech32.encode(self._node.app.chain.prefix + "valcons", validator.address),
            pub_key=AnyMessage(type_url="/cosmos.crypto.ed25519.PubKey", value=key.SerializeToString()),
            voting_power=POWER,
        )
        listed, pagination = page([shown], request.pagination)
        return response(block_height=height, validators=listed, pagination=pagination)

    def latest_validators(self, request: Any, _height: int) -> Any:
        """Answer GetLatestValidatorSet, for the block that comes next."""
        return self._validators(query.GetLatestValidatorSetResponse, request, self._node.height + 1)

    def validators_by_height(self, request: Any, _height: int) -> Any:
        """Answer GetValidatorSetByHeight."""
        self._check(request.height)
        return self._validators(query.GetValidatorSetByHeightResponse, request, request.height)

    def config(self, _request: Any, _height: int) -> Any:
        """Answer the node's Config."""
        prices = self._node.app.chain.prices
        text = ",".join(f"{float(price):.18f}{denom}" for denom, price in sorted(prices.items()) if price)
        return wire.NodeConfig(minimum_gas_price=text.encode(), pruning_keep_recent=b"0", pruning_interval=b"0")

    def status(self, _request: Any, _height: int) -> Any:
        """Answer the node's Status."""
        last = self._node.last
        moment = wire.Time(seconds=last.at.time_ns // 10**9, nanos=last.at.time_ns % 10**9)
        return wire.NodeStatus(
            height=last.height,
            timestamp=moment,
            app_hash=last.message.header.app_hash,
            validator_hash=last.message.header.next_validators_hash,
        )


def wire_without_header(block: Any) -> bytes:
    """Return a block's bytes without its header: the rest is the same in the SDK's own form of it."""
    rest = type(block)()
    rest.CopyFrom(block)
    rest.ClearField("header")
    return bytes(rest.SerializeToString())


def _sdk_header(header: Any, prefix: str) -> Any:
    """Return the header in the SDK's form: the proposer as bech32 text."""
    plain = type(header)()
    plain.CopyFrom(header)
    plain.ClearField("proposer_address")
    shown = types.Header.FromString(plain.SerializeToString())
    shown.proposer_address = bech32.encode(prefix + "valcons", header.proposer_address)
    return shown


def _served(request_type: Any, answer: Callable[[Any, int], Any]) -> Handler:
    async def handler(request: bytes, height: int) -> bytes:
        return bytes(answer(request_type.FromString(request), height).SerializeToString())

    return handler
