"""CometBFT's RPC over HTTP: by address (`/block?height=5`) and as JSON-RPC (POST)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from gonka_devnet import headers, rpc_json
from gonka_devnet.blocks import POWER, Block
from gonka_devnet.module import QueryError
from gonka_devnet.node import Node
from gonka_devnet.services_tendermint import CHANNELS, COMET_VERSION, node_id, tx_index

INTERNAL, NO_METHOD, BAD_PARAMS, BAD_JSON, BAD_REQUEST = -32603, -32601, -32602, -32700, -32600
BY_ADDRESS_ID = -1
MOST_BODY_BYTES = 1_000_000
TITLES = {
    INTERNAL: "Internal error",
    NO_METHOD: "Method not found",
    BAD_PARAMS: "Invalid params",
    BAD_JSON: "Parse error. Invalid JSON",
    BAD_REQUEST: "Invalid Request",
}
Params = Mapping[str, Any]


class RpcError(Exception):
    """A refusal: JSON-RPC code and the text of its data."""

    def __init__(self, code: int, data: str) -> None:
        super().__init__(data)
        self.code = code
        self.data = data


def _height(params: Params) -> int | None:
    """Return the height that is asked for, None for the newest."""
    asked = params.get("height")
    if asked is None or asked == "":
        return None
    text = str(asked).strip('"')
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII):
        raise RpcError(BAD_PARAMS, f"error converting http params to arguments: invalid character in height {text!r}")
    return int(text)


class Rpc:
    """The methods over a node."""

    def __init__(self, node: Node, addresses: Callable[[], tuple[str, str]]) -> None:
        self._node = node
        self._addresses = addresses
        self._methods: dict[str, Callable[[Params], Any]] = {
            "health": lambda _params: {},
            "status": self.status,
            "block": lambda params: rpc_json.block(self._block(params)),
            "header": lambda params: {"header": rpc_json.header(self._block(params).message.header)},
            "block_results": lambda params: rpc_json.results(self._block(params)),
            "commit": self.commit,
            "validators": self.validators,
            "abci_info": self.abci_info,
        }

    def application(self) -> web.Application:
        """Return the HTTP application."""
        made = web.Application(client_max_size=MOST_BODY_BYTES)
        made.router.add_get("/{method}", self._by_address)
        made.router.add_get("/", self._listing)
        made.router.add_post("/", self._by_post)
        return made

    def _block(self, params: Params) -> Block:
        height, newest = _height(params), self._node.height
        if height is None:
            height = newest
        if height < 1:
            raise RpcError(INTERNAL, f"height must be greater than 0, but got {height}")
        if height > newest:
            text = f"height {height} must be less than or equal to the current blockchain height {newest}"
            raise RpcError(INTERNAL, text)
        return self._node.block(height)

    def _newest(self) -> Block:
        return self._node.block(self._node.height)

    def commit(self, params: Params) -> dict[str, Any]:
        """Return a header with its commit: the one that the next block carries, or the newest's own."""
        block = self._block(params)
        canonical = block.height < self._node.height
        carried = self._node.block(block.height + 1).message.last_commit if canonical else self._own_commit(block)
        signed = {"header": rpc_json.header(block.message.header), "commit": rpc_json.commit(carried)}
        return {"signed_header": signed, "canonical": canonical}

    def _own_commit(self, block: Block) -> Any:
        return headers.commit(block.height, block.block_id, self._node.validator.address, block.stored)

    def validators(self, params: Params) -> dict[str, Any]:
        """Return the validators at a height."""
        height, newest = _height(params), self._node.height
        if height is not None and height > newest + 1:
            text = f"height {height} must be less than or equal to the current blockchain height {newest + 1}"
            raise RpcError(INTERNAL, text)
        if height is not None:
            self._block({"height": min(height, newest)})
        shown = {"block_height": str(height or newest), "validators": [{**self._validator(), "proposer_priority": "0"}]}
        return {**shown, "count": "1", "total": "1"}

    def _validator(self) -> dict[str, Any]:
        key = rpc_json.in_base64(self._node.validator.public_key)
        return {
            "address": rpc_json.in_hex(self._node.validator.address),
            "pub_key": {"type": "tendermint/PubKeyEd25519", "value": key},
            "voting_power": str(POWER),
        }

    def abci_info(self, _params: Params) -> dict[str, Any]:
        """Return the application's name and height."""
        last = self._newest()
        shown = {"data": "inferenced", "last_block_height": str(last.height)}
        return {"response": {**shown, "last_block_app_hash": rpc_json.in_base64(last.results.app_hash)}}

    def status(self, _params: Params) -> dict[str, Any]:
        """Return what the node says of itself."""
        listen, rpc = self._addresses()
        info = {
            "protocol_version": {"p2p": "8", "block": str(headers.BLOCK_PROTOCOL), "app": "0"},
            "id": node_id(self._node),
            "listen_addr": f"tcp://{listen}",
            "network": self._node.chain_id,
            "version": COMET_VERSION,
            "channels": rpc_json.in_hex(CHANNELS),
            "moniker": "devnet",
            "other": {"tx_index": tx_index(self._node), "rpc_address": f"tcp://{rpc}"},
        }
        return {"node_info": info, "sync_info": self._sync_info(), "validator_info": self._validator()}

    def _sync_info(self) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for name, block in (("latest", self._newest()), ("earliest", self._node.block(self._node.faults.earliest))):
            head = rpc_json.header(block.message.header)
            shown[f"{name}_block_hash"] = rpc_json.in_hex(block.block_id.hash)
            shown[f"{name}_app_hash"] = head["app_hash"]
            shown[f"{name}_block_height"] = head["height"]
            shown[f"{name}_block_time"] = head["time"]
        return {**shown, "catching_up": False}

    def _call(self, method: str, params: Params) -> Any:
        if self._node.height == 0:
            raise RpcError(INTERNAL, "the first block is not there yet")
        try:
            return self._methods[method](params)
        except QueryError as error:
            raise RpcError(INTERNAL, error.details) from error

    async def _listing(self, request: web.Request) -> web.Response:
        links = "".join(f"//{request.host}/{name}\n" for name in sorted(self._methods))
        return web.Response(text=f"Available endpoints:\n{links}")

    async def _by_address(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if method not in self._methods:
            return web.Response(status=404, text="404 page not found\n")
        try:
            result = self._call(method, request.query)
        except RpcError as error:
            return _answer(BY_ADDRESS_ID, {"error": _error(error)}, status=500)
        return _answer(BY_ADDRESS_ID, {"result": result})

    async def _by_post(self, request: web.Request) -> web.Response:
        try:
            asked = json.loads(await request.read())
        except ValueError as error:
            return _answer(None, {"error": _error(RpcError(BAD_JSON, str(error)))}, status=500)
        if isinstance(asked, list):
            answers = [self._one(single) for single in asked]
            return web.Response(text=_json(answers), content_type="application/json")
        return web.Response(text=_json(self._one(asked)), content_type="application/json")

    def _one(self, asked: Any) -> dict[str, Any]:
        """Answer one JSON-RPC request."""
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            return _envelope(None, {"error": _error(RpcError(BAD_REQUEST, "no method"))})
        name, params = asked["method"], asked.get("params") or {}
        try:
            if name not in self._methods:
                raise RpcError(NO_METHOD, "")
            if isinstance(params, list):
                params = dict(zip(("height",), params, strict=False))
            return _envelope(asked.get("id"), {"result": self._call(name, params)})
        except RpcError as error:
            return _envelope(asked.get("id"), {"error": _error(error)})


def _error(error: RpcError) -> dict[str, Any]:
    shown = {"code": error.code, "message": TITLES[error.code]}
    return {**shown, "data": error.data} if error.data else shown


def _envelope(request_id: Any, body: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, **body}


def _json(answer: Any) -> str:
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False)


def _answer(request_id: Any, body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(status=status, text=_json(_envelope(request_id, body)), content_type="application/json")


async def start(rpc: Rpc, host: str, port: int) -> tuple[web.AppRunner, int]:
    """Listen; return what is to be cleaned up and the port."""
    runner = web.AppRunner(rpc.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except (OSError, asyncio.CancelledError):
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])
