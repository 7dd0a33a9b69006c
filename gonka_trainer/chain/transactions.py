"""Building and signing transactions: pure. Cosmos SDK 0.53, SIGN_MODE_DIRECT, ordered and unordered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError as WireError

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, tasks_pb2, tx_pb2
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.errors import DecodeError
from gonka_trainer.types import sha256

SEND_TYPE: Final = b"/cosmos.bank.v1beta1.MsgSend"
EXEC_TYPE: Final = b"/cosmos.authz.v1beta1.MsgExec"
KV_TYPE: Final = b"/inference.inference.MsgSubmitTrainingKvRecord"
CREATE_TASK_TYPE: Final = b"/inference.inference.MsgCreateTrainingTask"
CLAIM_TASK_TYPE: Final = b"/inference.inference.MsgClaimTrainingTaskForAssignment"
ASSIGN_TASK_TYPE: Final = b"/inference.inference.MsgAssignTrainingTask"
_EXEC_RESPONSE_TYPE: Final = b"/cosmos.authz.v1beta1.MsgExecResponse"
_PUBLIC_KEY_TYPE: Final = b"/cosmos.crypto.secp256k1.PubKey"
_NANOSECONDS: Final = 1_000_000_000
_SIGNATURE_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a transaction: its type URL and its protobuf bytes."""

    type_url: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Fee:
    """What a transaction may cost: gas limit, amount in the smallest unit, and who pays ("" is the signer)."""

    gas_limit: int
    amount: int
    denom: str
    granter: str = ""


@dataclass(frozen=True, slots=True)
class Ordering:
    """How a transaction is kept from being replayed.

    Unordered: `timeout_ns` (nanoseconds since 1970) is unique for the signer and `sequence` 0. Ordered: `sequence`,
    and `timeout_height` is the last block that may hold it (0: no limit).
    """

    sequence: int = 0
    timeout_height: int = 0
    timeout_ns: int = 0

    @property
    def unordered(self) -> bool:
        """Whether the timestamp stands in for the sequence."""
        return self.timeout_ns != 0


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs: the key, the chain it is for and the account's number there."""

    key: AccountKey
    chain_id: str
    account_number: int


def send_message(sender: str, recipient: str, amount: int, denom: str) -> Message:
    """Return a bank send; addresses are bech32 text, the amount is in the smallest unit."""
    coin = tx_pb2.Coin(denom=denom.encode(), amount=str(amount).encode())
    send = tx_pb2.MsgSend(from_address=sender.encode(), to_address=recipient.encode(), amount=[coin])
    return Message(SEND_TYPE, send.SerializeToString())


def kv_message(creator: str, task_id: int, key: str, value: str) -> Message:
    """Return a record for the training module's key-value store; `creator` is the author."""
    record = inference_pb2.MsgSubmitTrainingKvRecord(
        creator=creator.encode(), task_id=task_id, participant=creator.encode(), key=key.encode(), value=value.encode()
    )
    return Message(KV_TYPE, record.SerializeToString())


def create_task_message(creator: str, train_uri: str, hardware: Sequence[tuple[str, int]] = ()) -> Message:
    """Return the creation of a training task whose training dataset is the URI; hardware is (type, count)."""
    resources = [inference_pb2.TrainingHardwareResources(type=kind.encode(), count=n) for kind, n in hardware]
    datasets = inference_pb2.TrainingDatasets(train=train_uri.encode())
    task = inference_pb2.MsgCreateTrainingTask(
        creator=creator.encode(),
        hardware_resources=resources,
        config=inference_pb2.TrainingConfig(datasets=datasets),
    )
    return Message(CREATE_TASK_TYPE, task.SerializeToString())


def claim_task_message(creator: str, task_id: int) -> Message:
    """Return the claim of a training task for assignment."""
    claim = tasks_pb2.MsgClaimTrainingTaskForAssignment(creator=creator.encode(), task_id=task_id)
    return Message(CLAIM_TASK_TYPE, claim.SerializeToString())


def assign_task_message(creator: str, task_id: int, assignees: Sequence[tuple[str, Sequence[str]]]) -> Message:
    """Return the assignment of a training task; assignees are (participant, its local node ids)."""
    named = [
        inference_pb2.TrainingTaskAssignee(participant=who.encode(), node_ids=[node.encode() for node in nodes])
        for who, nodes in assignees
    ]
    assign = tasks_pb2.MsgAssignTrainingTask(creator=creator.encode(), task_id=task_id, assignees=named)
    return Message(ASSIGN_TASK_TYPE, assign.SerializeToString())


def exec_message(grantee: str, messages: Sequence[Message]) -> Message:
    """Return an authz execution of the messages by `grantee`, for the accounts that they name."""
    inner = [tx_pb2.Any(type_url=message.type_url, value=message.value) for message in messages]
    return Message(EXEC_TYPE, tx_pb2.MsgExec(grantee=grantee.encode(), msgs=inner).SerializeToString())


def responses(data: bytes) -> tuple[bytes, ...]:
    """Return the messages' responses from a result's data, in the messages' order; DecodeError.

    A MsgExec is seen through: what it carried has its responses in `MsgExecResponse.results`, as bytes.
    """
    found: list[bytes] = []
    try:
        for response in tx_pb2.TxMsgData.FromString(data).msg_responses:
            if response.type_url == _EXEC_RESPONSE_TYPE:
                found.extend(tx_pb2.MsgExecResponse.FromString(response.value).results)
            else:
                found.append(response.value)
    except WireError as error:
        raise DecodeError("this is no result data of a transaction") from error
    return tuple(found)


def body_bytes(messages: Sequence[Message], memo: bytes, ordering: Ordering) -> bytes:
    """Return the transaction's body."""
    body = tx_pb2.TxBody(
        messages=[tx_pb2.Any(type_url=message.type_url, value=message.value) for message in messages],
        memo=memo,
        timeout_height=ordering.timeout_height,
        unordered=ordering.unordered,
    )
    if ordering.unordered:
        seconds, nanos = divmod(ordering.timeout_ns, _NANOSECONDS)
        body.timeout_timestamp.CopyFrom(tx_pb2.Timestamp(seconds=seconds, nanos=nanos))
    return body.SerializeToString()


def auth_info_bytes(public_key: bytes, fee: Fee, ordering: Ordering) -> bytes:
    """Return the signer information and the fee. The public key is always there: without it one node panicked."""
    key = tx_pb2.Any(type_url=_PUBLIC_KEY_TYPE, value=tx_pb2.PubKey(key=public_key).SerializeToString())
    mode = tx_pb2.ModeInfo(single=tx_pb2.ModeInfo.Single(mode=tx_pb2.SIGN_MODE_DIRECT))
    signer = tx_pb2.SignerInfo(public_key=key, mode_info=mode, sequence=ordering.sequence)
    coins = [tx_pb2.Coin(denom=fee.denom.encode(), amount=str(fee.amount).encode())] if fee.amount else []
    payment = tx_pb2.Fee(amount=coins, gas_limit=fee.gas_limit, granter=fee.granter.encode())
    return tx_pb2.AuthInfo(signer_infos=[signer], fee=payment).SerializeToString()


def sign_document(body: bytes, auth_info: bytes, signer: Signer) -> bytes:
    """Return what SIGN_MODE_DIRECT signs."""
    return tx_pb2.SignDoc(
        body_bytes=body, auth_info_bytes=auth_info, chain_id=signer.chain_id, account_number=signer.account_number
    ).SerializeToString()


def build(messages: Sequence[Message], memo: bytes, fee: Fee, ordering: Ordering, signer: Signer) -> bytes:
    """Return the signed transaction, ready for broadcast: the same bytes for the same arguments."""
    body = body_bytes(messages, memo, ordering)
    auth_info = auth_info_bytes(signer.key.public_key, fee, ordering)
    signature = signer.key.sign(sign_document(body, auth_info, signer))
    return tx_pb2.TxRaw(body_bytes=body, auth_info_bytes=auth_info, signatures=[signature]).SerializeToString()


def build_to_simulate(messages: Sequence[Message], memo: bytes, fee: Fee, ordering: Ordering, signer: Signer) -> bytes:
    """Return the transaction with zeros for its signature: a simulation takes it, no node can bring it into a block."""
    body = body_bytes(messages, memo, ordering)
    auth_info = auth_info_bytes(signer.key.public_key, fee, ordering)
    return tx_pb2.TxRaw(
        body_bytes=body, auth_info_bytes=auth_info, signatures=[bytes(_SIGNATURE_BYTES)]
    ).SerializeToString()


def gas_limit(transaction: bytes) -> int:
    """Return the gas limit of a transaction that `build` made."""
    auth_info = tx_pb2.TxRaw.FromString(transaction).auth_info_bytes
    return tx_pb2.AuthInfo.FromString(auth_info).fee.gas_limit


def tx_hash(transaction: bytes) -> str:
    """Return the transaction's hash as the chain writes it: SHA-256 in upper-case hex."""
    return sha256(transaction).hex().upper()
