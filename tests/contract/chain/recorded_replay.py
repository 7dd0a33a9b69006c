"""Asks a devnet what was asked of a real node: the recorded requests, signed anew for the new chain."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
from cosmpy.protos.cosmos.tx.v1beta1 import service_pb2 as service
from devnet_process import NAMES, TM, TX, Devnet, Key, eventually, golden_key
from gonka_devnet import signature
from gonka_devnet._pb.wire import wire_pb2 as wire
from google.protobuf.message import DecodeError
from recorded_outline import FREE_TEXT, of_answer, of_rpc, outline, words

DATA = Path(__file__).parents[2] / "data" / "golden"
GRANT = b"/cosmos.authz.v1beta1.MsgGrant"
BLOCK_WITH_TXS, BLOCK_BY_HEIGHT = TX + "GetBlockWithTxs", TM + "GetBlockByHeight"
LOOK_UPS = {TX + "GetTx", TX + "GetTxsEvent", BLOCK_WITH_TXS, BLOCK_BY_HEIGHT}
# A node of the training generation panics on it, a plain one accepts it: the one difference between the recordings.
LEFT_OUT = {"no_public_key_in_signer_info", "no_public_key_in_signer_info_tx", "unknown_service"}
# Asked when what had been sent before was in a block.
ALONE = {"sequence_n", "two_messages"}
# Its signature is good, for another account: signed anew it would be right.
AS_IT_WAS = "account_number_wrong"
FUTURE = 10**6
PATIENCE_SECONDS = 10
FIRST_HEIGHT = 3
MOST_ACCOUNTS = 12
Case = dict[str, Any]


def cases(folder: str, topic: str, first: str | None = None, last: str | None = None) -> list[Case]:
    """The cases of a topic in their order, from one name to another."""
    listed: list[Case] = json.loads((DATA / folder / f"{topic}.json").read_text())
    names = [case["name"] for case in listed]
    return listed[names.index(first) if first else 0 : names.index(last) + 1 if last else None]


def request_bytes(case: Case) -> bytes:
    """The recorded request."""
    return base64.b64decode(case["request_base64"])


def recorded_places(folder: str) -> Iterator[tuple[str, int]]:
    """Hash and height of every transaction that the recording tells of."""
    for path in sorted((DATA / folder).glob("*.json")):
        for case in json.loads(path.read_text()):
            for raw in [base64.b64decode(case["answer_base64"])] if case.get("answer_base64") else []:
                yield from _places(case["method"], raw)


def _places(method: str, raw: bytes) -> Iterator[tuple[str, int]]:
    kinds = {TX + "GetTx": wire.GetTxResponse, TX + "GetTxsEvent": wire.GetTxsEventResponse}
    if method in kinds:
        found = kinds[method].FromString(raw)
        for said in [found.tx_response] if isinstance(found, wire.GetTxResponse) else found.tx_responses:
            yield said.txhash.decode(), said.height


@dataclass
class Replay:
    """The replay of one set of cases on a fresh chain."""

    net: Devnet
    folder: str
    hashes: dict[str, str] = field(default_factory=dict)
    sent: dict[bytes, bytes] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    gas: dict[int, int] = field(default_factory=dict)
    now_ns: int = 0
    height: int = 0
    accepted: bytes = b""
    differences: list[str] = field(default_factory=list)
    asked: int = 0

    def __post_init__(self) -> None:
        chain = cases(self.folder, "chain")
        # Some topics were asked again later, on another chain.
        texts = [path.read_text() for path in sorted((DATA / self.folder).glob("*.json"))]
        self.chain_ids = {name for text in texts for name in re.findall(r'"chain_id": "([^"]*)"', text)}
        self.prefix = str(chain[0]["prefix"])
        self.denom = str(chain[0]["denom"])
        self.keys = {golden_key(name).public: golden_key(name) for name in NAMES}
        self.places: dict[int, list[str]] = {}
        for digest, height in recorded_places(self.folder):
            self.places.setdefault(height, []).append(digest)

    def _clock(self, text: str, height: str) -> None:
        """Remember how far the recording has come."""
        stamp = re.sub(r"(\.\d{6})\d*", r"\1", text)
        self.now_ns = int(datetime.fromisoformat(stamp).timestamp() * 10**9)
        self.height = int(height)

    def run(self, listed: list[Case]) -> None:
        """Ask all of these and note what differs."""
        stamped = [stamp for case in listed if (stamp := _stamp(case))]
        if stamped and not self.now_ns:
            self._clock(*stamped[0])
        eventually(lambda: self.net.height() >= FIRST_HEIGHT or None)
        for place, case in enumerate(listed):
            if case["name"] == "sequence_n":
                self._again(wire.BroadcastTxRequest.FromString(request_bytes(listed[place + 1])).tx_bytes)
            if case["name"] in LEFT_OUT or ("method" not in case and "path" not in case):
                continue
            self.asked += 1
            wanted = self._recorded(case)
            found = self._ask(case, wanted)
            if found != wanted:
                self.differences.append(f"{case['name']}{parting(wanted, found)}")

    def _recorded(self, case: Case) -> Any:
        free = case["name"] in FREE_TEXT
        if "path" in case:
            return of_rpc(case["rpc_answer"])
        if "error" in case:
            return "error", case["error"]["code"], "" if free else words(case["error"]["details"])
        if stamp := _stamp(case):
            self._clock(*stamp)
        if "answer_base64" not in case:
            return "answer", outline(case["answer"])
        return "answer", _known(case["method"], base64.b64decode(case["answer_base64"]), free)

    def _ask(self, case: Case, wanted: Any) -> Any:
        """Ask; what reads back is asked again for some seconds, since the index comes after the block."""
        if "path" in case:
            return of_rpc(self.net.get(self._heights_in_path(case)))
        raw = self._request(case)
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self._call(case, raw)
            patient = case["method"] in LOOK_UPS or case["name"] == "grants_after_expiry"
            if found == wanted or not patient or time.monotonic() > end:
                return found
            time.sleep(0.05)

    def _call(self, case: Case, raw: bytes) -> Any:
        free = case["name"] in FREE_TEXT
        try:
            answer = self.net.call(case["method"], raw, tuple((case.get("metadata") or {}).items()))
        except grpc.RpcError as error:
            return "error", error.code().name, "" if free else words(error.details() or "")
        if case["method"] == TX + "BroadcastTx" and not wire.BroadcastTxResponse.FromString(answer).tx_response.code:
            self.accepted = wire.BroadcastTxRequest.FromString(raw).tx_bytes
        if case["method"] == TX + "Simulate":
            recorded = wire.SimulateResponse.FromString(base64.b64decode(case["answer_base64"]))
            self.gas[recorded.gas_info.gas_used] = wire.SimulateResponse.FromString(answer).gas_info.gas_used
        return "answer", _known(case["method"], answer, free)

    def _request(self, case: Case) -> bytes:
        """The recorded request with its transaction signed anew, hashes and heights replaced by the new chain's."""
        raw, method = request_bytes(case), case["method"]
        if method == TX + "BroadcastTx":
            asked = wire.BroadcastTxRequest.FromString(raw)
            new = asked.tx_bytes if case["name"] == AS_IT_WAS else self._again(asked.tx_bytes)
            if case["name"] in ALONE and self.accepted:
                eventually(lambda: self.net.find(self.accepted))
                self.net.next_block()
            return wire.BroadcastTxRequest(tx_bytes=new, mode=asked.mode).SerializeToString()
        if method == TX + "Simulate":
            asked_too = wire.SimulateRequest.FromString(raw)
            return wire.SimulateRequest(tx_bytes=self._again(asked_too.tx_bytes)).SerializeToString()
        if method == TX + "GetTx":
            digest = wire.GetTxRequest.FromString(raw).hash.decode()
            return wire.GetTxRequest(hash=self._hashes_in(digest).encode()).SerializeToString()
        if method == TX + "GetTxsEvent":
            search = service.GetTxsEventRequest.FromString(raw)
            search.query = self._heights_in(self._hashes_in(search.query))
            return search.SerializeToString()
        if method in {BLOCK_WITH_TXS, BLOCK_BY_HEIGHT}:
            return self._block_request(case, raw)
        return raw

    def _block_request(self, case: Case, raw: bytes) -> bytes:
        try:
            asked = wire.GetBlockWithTxsRequest.FromString(raw)
        except DecodeError:
            return raw
        if asked.height > 2:
            asked.height = self._empty_block() if case["name"] == "empty_block" else self._new_height(asked.height)
        return asked.SerializeToString()

    def _again(self, recorded: bytes) -> bytes:
        """A recorded transaction for this chain: the same one for the same bytes."""
        if recorded not in self.sent:
            self.sent[recorded] = new = self._signed_anew(recorded)
            self.hashes[_hash(recorded)] = _hash(new)
        return self.sent[recorded]

    def _signed_anew(self, recorded: bytes) -> bytes:
        try:
            parts = wire.TxRaw.FromString(recorded)
            auth = wire.AuthInfo.FromString(parts.auth_info_bytes)
        except DecodeError:
            return recorded
        key = (
            self.keys.get(wire.PubKey.FromString(auth.signer_infos[0].public_key.value).key)
            if auth.signer_infos
            else None
        )
        number = None if key is None else _signed_for(parts, key, self.chain_ids)
        if key is None or number is None:
            return recorded
        parts.body_bytes = self._body_again(parts.body_bytes)
        if auth.fee.gas_limit in self.gas:
            auth.fee.gas_limit = self.gas[auth.fee.gas_limit]
            parts.auth_info_bytes = auth.SerializeToString()
        high_s = int.from_bytes(parts.signatures[0][32:], "big") > signature.ORDER // 2
        document = _document(parts, self.net.chain_id, self._number(key, number))
        parts.signatures[0] = key.sign(document, high_s)
        return parts.SerializeToString()

    def _number(self, key: Key, recorded: int) -> int:
        try:
            return int(self.net.account(key.address(self.prefix)).account_number)
        except grpc.RpcError:
            return recorded

    def _body_again(self, recorded: bytes) -> bytes:
        """A body with its timeouts and expirations moved to the new height and time; otherwise byte for byte."""
        body = wire.TxBody.FromString(recorded)
        moved = wire.TxBody.FromString(recorded)
        if body.HasField("timeout_timestamp"):
            self._move(moved.timeout_timestamp)
        if body.timeout_height > self.height:
            moved.timeout_height += self.net.height() - self.height
        for message in moved.messages:
            if message.type_url == GRANT:
                grant = wire.MsgGrant.FromString(message.value)
                self._move(grant.grant.expiration)
                message.value = grant.SerializeToString()
        return recorded if moved == body else moved.SerializeToString()

    def _move(self, moment: wire.Time) -> None:
        recorded = moment.seconds * 10**9 + moment.nanos
        if recorded not in self.times:
            self.times[recorded] = recorded - self.now_ns + time.time_ns()
        moment.seconds, moment.nanos = divmod(self.times[recorded], 10**9)

    def _hashes_in(self, text: str) -> str:
        for recorded, new in self.hashes.items():
            text = text.replace(recorded, new).replace(recorded.lower(), new.lower())
        return text

    def _new_height(self, recorded: int) -> int:
        """The height of the block that holds what the recorded one held."""
        digests = [self.hashes[digest] for digest in self.places.get(recorded, []) if digest in self.hashes]
        if not digests:
            return FUTURE
        return int(eventually(lambda: next(filter(None, map(self.net.find_hash, digests)), None)).height)

    def _heights_in(self, query: str) -> str:
        return re.sub(r"(tx\.height\s*[<>=]+)(\d+)", lambda m: m[1] + str(self._new_height(int(m[2]))), query)

    def _heights_in_path(self, case: Case) -> str:
        """An RPC path; the header after a block is at the height after it."""
        path: str = case["path"]

        if path.startswith("header"):
            recorded = int(path.rpartition("=")[2])
            wanted = self._new_height(recorded - 1) + 1
            eventually(lambda: self.net.height() >= wanted or None)
            return f"header?height={wanted}"
        if case["name"] == "block_results_empty":
            return f"block_results?height={self._empty_block()}"
        return re.sub(r"(height=)([1-9]\d*)", lambda m: m[1] + str(self._new_height(int(m[2]))), path)

    def _empty_block(self) -> int:
        """A block without transactions."""
        self.net.next_block()
        for height in range(self.net.next_block(), 1, -1):
            if not self.net.get(f"block?height={height}")["result"]["block"]["data"]["txs"]:
                return height
        raise AssertionError("every block has transactions")


def _stamp(case: Case) -> tuple[str, str] | None:
    """Time and height that the recorded answer tells, if it does."""
    answer = case.get("answer") or {}
    said = answer.get("tx_response") or {}
    if case["name"] == "latest_block":
        header = answer["block"]["header"]
        return header["time"], header["height"]
    return (said["timestamp"], said["height"]) if "timestamp" in said else None


def parting(recorded: Any, now: Any, path: str = "") -> str:
    """Where two outlines part first."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        pairs = [(key, recorded.get(key), now.get(key)) for key in sorted(recorded.keys() | now.keys())]
    elif isinstance(recorded, list | tuple) and isinstance(now, list | tuple) and len(recorded) == len(now):
        pairs = [(str(place), *pair) for place, pair in enumerate(zip(recorded, now, strict=True))]
    else:
        return f"{path}: recorded {str(recorded)[:300]}, now {str(now)[:300]}"
    name, one, other = next(pair for pair in pairs if pair[1] != pair[2])
    return parting(one, other, f"{path}.{name}")


def _known(method: str, raw: bytes, free: bool) -> Any:
    """The outline of an answer; for a service whose fields client libraries lack, that there is one."""
    return "there" if ".base.node." in method else of_answer(method, raw, free)


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest().upper()


def _document(parts: wire.TxRaw, chain_id: str, number: int) -> bytes:
    return wire.SignDoc(
        body_bytes=parts.body_bytes,
        auth_info_bytes=parts.auth_info_bytes,
        chain_id=chain_id.encode(),
        account_number=number,
    ).SerializeToString()


def _signed_for(parts: wire.TxRaw, key: Key, chain_ids: set[str]) -> int | None:
    """The account number for which the recorded signature is good, either half of s; None when it is not."""
    if not parts.signatures or len(parts.signatures[0]) != 64:
        return None
    r, s = parts.signatures[0][:32], int.from_bytes(parts.signatures[0][32:], "big")
    low = r + min(s, signature.ORDER - s).to_bytes(32, "big")
    for chain_id in chain_ids:
        for number in range(MOST_ACCOUNTS):
            if signature.verify(key.public, _document(parts, chain_id, number), low):
                return number
    return None
