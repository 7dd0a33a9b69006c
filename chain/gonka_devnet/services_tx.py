"""cosmos.tx.v1beta1.Service: simulate, broadcast, look up, search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.blocks import Block
from gonka_devnet.errors import invalid_argument, raw_bytes, sdk_error, sdk_query_error, show
from gonka_devnet.grpc_server import Handler
from gonka_devnet.module import QueryError
from gonka_devnet.node import Node
from gonka_devnet.query_language import QuerySyntaxError, parse
from gonka_devnet.timestamps import rfc3339

SERVICE = "/cosmos.tx.v1beta1.Service/"
SYNC, ASYNC = 2, 3
DESCENDING = 2
MOST_PER_PAGE = 100
BEFORE_CHECK = {19, 20, 21}
NO_INDEX = "transaction indexing is disabled"
HEX = "0123456789abcdefABCDEF"


def decode_hex(text: str) -> bytes:
    """Return the bytes of hexadecimal text; raise QueryError in Go's words."""
    for letter in text:
        if letter not in HEX:
            shown = f"U+{ord(letter):04X} '{letter}'"
            raise QueryError(grpc.StatusCode.UNKNOWN, f"encoding/hex: invalid byte: {shown}")
    if len(text) % 2:
        raise QueryError(grpc.StatusCode.UNKNOWN, "encoding/hex: odd length hex string")
    return bytes.fromhex(text)


def as_tx(raw: bytes) -> wire.Tx:
    """Return the bytes of a TxRaw as the Tx that they are too."""
    return wire.Tx.FromString(raw)


def tx_response(block: Block, position: int) -> wire.TxResponse:
    """Return what the chain says of a transaction in a block."""
    raw, result = block.message.data.txs[position], block.results.results[position]
    return wire.TxResponse(
        height=block.height,
        txhash=hashlib.sha256(raw).hexdigest().upper().encode(),
        codespace=result.codespace,
        code=result.code,
        data=result.data.hex().upper().encode(),
        raw_log=result.log,
        gas_wanted=result.gas_wanted,
        gas_used=result.gas_used,
        tx=wire.AnyValue(type_url=b"/cosmos.tx.v1beta1.Tx", value=as_tx(raw).SerializeToString()),
        timestamp=rfc3339(block.at.time_ns).encode(),
        events=result.events,
    )


class Transactions:
    """The service over a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def handlers(self) -> dict[str, Handler]:
        """Return the methods by path."""
        calls: Sequence[tuple[str, Callable[[bytes], Any]]] = (
            ("Simulate", self.simulate),
            ("BroadcastTx", self.broadcast),
            ("GetTx", self.get_tx),
            ("GetTxsEvent", self.search),
            ("GetBlockWithTxs", self.block_with_txs),
        )
        return {SERVICE + name: _served(call) for name, call in calls}

    async def simulate(self, request: bytes) -> wire.SimulateResponse:
        """Answer Simulate."""
        asked = wire.SimulateRequest.FromString(request)
        raw = asked.tx_bytes or asked.tx
        if not raw:
            raise invalid_argument("empty txBytes is not allowed")
        return await self._node.simulate(raw)

    async def broadcast(self, request: bytes) -> wire.BroadcastTxResponse:
        """Answer BroadcastTx; an asynchronous one tells only what is known before the check."""
        asked = wire.BroadcastTxRequest.FromString(request)
        if not asked.tx_bytes:
            raise invalid_argument("invalid empty tx")
        if asked.mode not in {SYNC, ASYNC}:
            text = "unsupported return type unspecified; supported types: sync, async"
            raise QueryError(grpc.StatusCode.UNKNOWN, text)
        verdict = await self._node.broadcast(asked.tx_bytes)
        digest = hashlib.sha256(asked.tx_bytes).hexdigest().upper().encode()
        if asked.mode == ASYNC and verdict.code not in BEFORE_CHECK:
            return wire.BroadcastTxResponse(tx_response=wire.TxResponse(txhash=digest))
        answer = wire.TxResponse(txhash=digest, code=verdict.code, codespace=raw_bytes(verdict.codespace))
        answer.raw_log = raw_bytes(verdict.log)
        return wire.BroadcastTxResponse(tx_response=answer)

    async def get_tx(self, request: bytes) -> wire.GetTxResponse:
        """Answer GetTx from the index."""
        text = show(wire.GetTxRequest.FromString(request).hash)
        if not text:
            raise invalid_argument("tx hash cannot be empty")
        digest = decode_hex(text)
        if not self._node.faults.index:
            raise QueryError(grpc.StatusCode.UNKNOWN, NO_INDEX)
        found = self._node.index.find(digest)
        if found is None or found[0] > self._node.height:
            raise QueryError(grpc.StatusCode.NOT_FOUND, f"tx not found: {text}")
        block = self._node.block(found[0])
        try:
            response = tx_response(block, found[1])
        except DecodeError as error:
            raise QueryError(grpc.StatusCode.UNKNOWN, sdk_error(2).log) from error
        return wire.GetTxResponse(tx=as_tx(block.message.data.txs[found[1]]), tx_response=response)

    async def search(self, request: bytes) -> wire.GetTxsEventResponse:
        """Answer GetTxsEvent from the index."""
        asked = wire.GetTxsEventRequest.FromString(request)
        if not asked.query:
            raise QueryError(grpc.StatusCode.INTERNAL, "query cannot be empty")
        try:
            conditions = parse(show(asked.query))
        except QuerySyntaxError as error:
            raise QueryError(grpc.StatusCode.INTERNAL, f"failed to search for txs: {error}") from error
        if not self._node.faults.index:
            raise QueryError(grpc.StatusCode.INTERNAL, f"failed to search for txs: {NO_INDEX}")
        found = [place for place in self._node.index.search(conditions) if place[0] <= self._node.height]
        if asked.order_by == DESCENDING:
            found.reverse()
        answer = wire.GetTxsEventResponse(total=len(found))
        for height, position in _page(found, asked.page or 1, asked.limit):
            try:
                block = self._node.block(height)
                answer.tx_responses.append(tx_response(block, position))
            except QueryError as error:
                raise QueryError(grpc.StatusCode.INTERNAL, error.details) from error
            except DecodeError as error:
                raise QueryError(grpc.StatusCode.INTERNAL, sdk_error(2).log) from error
            answer.txs.append(as_tx(block.message.data.txs[position]))
        return answer

    async def block_with_txs(self, request: bytes) -> wire.GetBlockWithTxsResponse:
        """Answer GetBlockWithTxs."""
        asked, newest = wire.GetBlockWithTxsRequest.FromString(request), self._node.height
        if not 1 <= asked.height <= newest:
            limits = f"height must not be less than 1 or greater than the current height {newest}"
            raise sdk_query_error(26, f"requested height {asked.height} but {limits}")
        block = self._node.block(asked.height)
        txs, offset = block.message.data.txs, asked.pagination.offset
        limit = asked.pagination.limit or MOST_PER_PAGE
        if txs and offset >= len(txs):
            text = f"out of range: cannot paginate {len(txs)} txs with offset {offset} and limit {limit}"
            raise sdk_query_error(18, text)
        try:
            shown = [as_tx(raw) for raw in txs[offset : offset + limit]]
        except DecodeError as error:
            raise QueryError(grpc.StatusCode.UNKNOWN, str(error)) from error
        return wire.GetBlockWithTxsResponse(
            txs=shown,
            block_id=block.stored.block_id,
            block=block.stored.block,
            pagination=wire.PageResponse(total=len(txs)),
        )


def _page(found: list[tuple[int, int]], number: int, limit: int) -> list[tuple[int, int]]:
    """Return one page, at most 100 long; raise QueryError past the last."""
    size = min(limit or MOST_PER_PAGE, MOST_PER_PAGE)
    pages = max((len(found) + size - 1) // size, 1)
    if number > pages:
        text = f"failed to search for txs: page should be within [1, {pages}] range, given {number}"
        raise QueryError(grpc.StatusCode.INTERNAL, text)
    return found[(number - 1) * size : number * size]


def _served(call: Callable[[bytes], Any]) -> Handler:
    async def handler(request: bytes, _height: int) -> bytes:
        return bytes((await call(request)).SerializeToString())

    return handler
