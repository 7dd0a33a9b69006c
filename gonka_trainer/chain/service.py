"""Accounts and transactions at a node: looking up, simulating, handing over, searching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import grpc
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import Message

from gonka_trainer._pb.gonka_trainer.chain.v1 import node_pb2
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.transport import Calls, NodeAnswerError
from gonka_trainer.errors import ChainError, DecodeError
from gonka_trainer.text import printable
from gonka_trainer.types import Address, Height

_TX: Final = "/cosmos.tx.v1beta1.Service/"
_PAGE: Final = 100
_Answer = TypeVar("_Answer", bound=Message)
_ACCOUNT_LAYERS: Final = 4  # vesting and module accounts hold the base account in their first field, in layers


@dataclass(frozen=True, slots=True)
class Account:
    """An account's number and next sequence as of the last block."""

    number: int
    sequence: int


@dataclass(frozen=True, slots=True)
class TxAnswer:
    """What the node says of a transaction by its hash, or of one that was handed to it (`height` 0)."""

    tx_hash: str
    height: int
    code: int
    codespace: str
    log: bytes
    gas_used: int


class TxService:
    """A node's account and transaction services; errors as in `GrpcNode.call`."""

    def __init__(self, node: Calls, prefix: str) -> None:
        self._grpc = node
        self.prefix = prefix

    async def ask(self, path: str, request: Message, answer: type[_Answer]) -> _Answer:
        """Call a query of another module as of the latest block."""
        return await self._grpc.call(path, request, answer)

    async def account(self, address: Address) -> Account:
        """Return the account; ChainError when the chain has none at this address."""
        text = encode_address(address, self.prefix)
        request = node_pb2.QueryAccountRequest(address=text)
        try:
            path = "/cosmos.auth.v1beta1.Query/Account"
            answer = await self._grpc.call(path, request, node_pb2.QueryAccountResponse)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.NOT_FOUND:
                raise ChainError(f"account {text} is not on chain", f"send {text} some coins to open it") from error
            raise
        value = answer.account.value
        for _ in range(_ACCOUNT_LAYERS):
            try:
                base = node_pb2.BaseAccount.FromString(value)
                decode_address(base.address, self.prefix)
                return Account(base.account_number, base.sequence)
            except DecodeError:
                value = base.address
            except WireError:
                break
        raise ChainError(f"account {text} is of a kind that is not known: {printable(answer.account.type_url)}")

    async def balance(self, address: Address, denom: str) -> int:
        """Return what the account holds, in the denomination's smallest unit."""
        request = node_pb2.QueryBalanceRequest(address=encode_address(address, self.prefix), denom=denom)
        answer = await self._grpc.call("/cosmos.bank.v1beta1.Query/Balance", request, node_pb2.QueryBalanceResponse)
        return int(answer.balance.amount or b"0")

    async def simulate(self, transaction: bytes) -> int:
        """Return the gas that the transaction would use now; NodeAnswerError when it would fail."""
        request = node_pb2.SimulateRequest(tx_bytes=transaction)
        answer = await self._grpc.call(_TX + "Simulate", request, node_pb2.SimulateResponse)
        return answer.gas_info.gas_used

    async def broadcast(self, transaction: bytes) -> TxAnswer:
        """Hand the transaction to the node; the answer is CheckTx's, and code 0 is no success yet."""
        request = node_pb2.BroadcastTxRequest(tx_bytes=transaction, mode=node_pb2.BROADCAST_MODE_SYNC)
        answer = await self._grpc.call(_TX + "BroadcastTx", request, node_pb2.BroadcastTxResponse)
        return _answer(answer.tx_response)

    async def find_transaction(self, tx_hash: str) -> TxAnswer | None:
        """Look a transaction up by its hash; None when the index does not have it (it lags) or is off."""
        try:
            answer = await self._grpc.call(_TX + "GetTx", node_pb2.GetTxRequest(hash=tx_hash), node_pb2.GetTxResponse)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.NOT_FOUND or "indexing is disabled" in error.details:
                return None
            raise
        return _answer(answer.tx_response)

    async def search_heights(self, query: str, pages: int = 50) -> set[Height] | None:
        """Return heights at which the index finds the query, as a hint; None when it has too many or is off."""
        found: set[Height] = set()
        for page in range(1, pages + 1):
            request = node_pb2.GetTxsEventRequest(order_by=node_pb2.ORDER_BY_ASC, page=page, limit=_PAGE, query=query)
            try:
                answer = await self._grpc.call(_TX + "GetTxsEvent", request, node_pb2.GetTxsEventResponse)
            except NodeAnswerError:
                return None
            found |= {Height(response.height) for response in answer.tx_responses}
            if page * _PAGE >= answer.total:
                return found
        return None


def _answer(response: node_pb2.TxResponse) -> TxAnswer:
    return TxAnswer(
        tx_hash=response.txhash.decode("ascii", "replace"),
        height=response.height,
        code=response.code,
        codespace=response.codespace.decode("ascii", "replace"),
        log=response.raw_log,
        gas_used=response.gas_used,
    )
