"""What two nodes must answer alike: the outline of an answer, without what differs from run to run."""

from __future__ import annotations

import re
from typing import Any

from cosmpy.protos.cosmos.auth.v1beta1 import query_pb2 as auth  # noqa: F401
from cosmpy.protos.cosmos.authz.v1beta1 import authz_pb2, query_pb2, tx_pb2  # noqa: F401  (types inside an Any)
from cosmpy.protos.cosmos.bank.v1beta1 import query_pb2 as bank  # noqa: F401
from cosmpy.protos.cosmos.bank.v1beta1 import tx_pb2 as bank_tx  # noqa: F401
from cosmpy.protos.cosmos.base.tendermint.v1beta1 import query_pb2 as tendermint  # noqa: F401
from cosmpy.protos.cosmos.crypto.ed25519 import keys_pb2 as ed25519  # noqa: F401
from cosmpy.protos.cosmos.crypto.secp256k1 import keys_pb2 as secp256k1  # noqa: F401
from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2  # noqa: F401
from cosmpy.protos.cosmos.feegrant.v1beta1 import query_pb2 as fee_query  # noqa: F401
from cosmpy.protos.cosmos.feegrant.v1beta1 import tx_pb2 as fee_tx  # noqa: F401
from cosmpy.protos.cosmos.tx.v1beta1 import service_pb2  # noqa: F401
from gonka_devnet._pb.wire import wire_pb2 as wire
from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

WORDS = (
    (re.compile(r"\b(?:gonka|cosmos)(?:valoper|valcons)?1[02-9ac-hj-np-z]{38,58}\b"), "ADDRESS"),
    (re.compile(r"\[[^\[\]]*\.go:\d+\]"), ""),
    (re.compile(r"\b[0-9A-F]{64}\b"), "HASH"),
    (re.compile(r"\b(?:gonka-golden|gonka-devnet|chain-\w{6})\b"), "CHAIN"),
    (re.compile(r"out of gas in location: \w+"), "out of gas"),
    (re.compile(r"(?:\d+)?(?:ngonka|stake)\b"), "COIN"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"\s+"), " "),
)
# Texts that a parser of the node's own language makes; of these only codes count.
FREE_TEXT = {
    "query_bad_syntax", "query_unbalanced", "or", "double_quotes", "garbage", "garbage_request", "critical_extension",
    "unknown_field_in_message", "non_critical_extension", "unknown_body_field", "exec_inner_fails_tx", "bad_checksum",
    "malformed", "with_0x", "not_a_number",
}  # fmt: skip
# Differ between any two runs, or are the net's own settings: only that they are there counts.
THERE = {
    "height", "timestamp", "gas_used", "gas_wanted", "gas_limit", "data", "signatures", "signature", "key", "hash",
    "app_hash", "time", "block_height", "voting_power", "chain_id", "txs", "expiration", "balances",
    "timeout_timestamp", "timeout_height", "data_hash", "last_results_hash", "last_commit_hash", "amount", "memo",
    "validators_hash", "next_validators_hash", "consensus_hash", "evidence_hash", "proposer_address",
    "validator_address", "default_node_info", "application_version",
}  # fmt: skip
EXACT = {"code", "codespace", "@type", "type_url", "mode", "sequence", "total"}
RESULTS_IN = {"BroadcastTxResponse": 1, "GetTxResponse": 2, "GetTxsEventResponse": 2}


def words(text: str) -> str:
    """A text with addresses, hashes, coins and numbers blanked."""
    for pattern, word in WORDS:
        text = pattern.sub(word, text)
    return text.strip()


def outline(value: Any, name: str = "") -> Any:
    """Names, list lengths, codes, event types and attribute keys, texts with the numbers blanked."""
    if isinstance(value, dict) and name in THERE:
        return "there"
    if isinstance(value, dict):
        if "key" in value and set(value) <= {"key", "value", "index"}:
            return value["key"]
        return {key: outline(inner, key) for key, inner in value.items() if key != "account_number"}
    if isinstance(value, list):
        if name in THERE and not any(isinstance(inner, dict) for inner in value):
            return len(value)
        return [outline(inner, name) for inner in value]
    if name in EXACT or not isinstance(value, str | bool):
        return value
    return "there" if name in THERE or isinstance(value, bool) else words(value)


def answer_type(method: str) -> Any:
    """The class of a method's answer."""
    service, _, name = method.strip("/").partition("/")
    found = descriptor_pool.Default().FindServiceByName(service)
    return message_factory.GetMessageClass(found.methods_by_name[name].output_type)


def results(kind: str, raw: bytes) -> list[tuple[int, str]]:
    """Code and codespace of each result in an answer, however its texts look."""
    message = getattr(wire, kind).FromString(raw)
    listed = message.tx_responses if kind == "GetTxsEventResponse" else [message.tx_response]
    return [(result.code, result.codespace.decode()) for result in listed]


def of_answer(method: str, raw: bytes, free_text: bool) -> Any:
    """The outline of an answer's bytes; one that a strict decoder refuses counts by its codes."""
    kind = answer_type(method)
    try:
        message = kind.FromString(raw)
    except DecodeError:
        name = kind.DESCRIPTOR.name
        return "not UTF-8", results(name, raw) if name in RESULTS_IN else None
    try:
        plain = json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (json_format.Error, DecodeError):
        return "not UTF-8 inside", results(kind.DESCRIPTOR.name, raw)
    if free_text and "tx_response" in plain:
        plain["tx_response"].pop("raw_log", None)
    return outline(plain)


def of_rpc(answer: Any) -> Any:
    """The outline of what CometBFT's RPC says."""
    if not isinstance(answer, dict):
        return answer
    if "error" in answer:
        return outline({**answer["error"], "data": words(answer["error"]["data"])}, "error")
    result = answer["result"]
    if "txs_results" in result:
        listed = result["txs_results"]
        return sorted(result), None if listed is None else [outline(one) for one in listed]
    return outline({key: value for key, value in result.items() if key not in {"node_info", "validator_info"}})
