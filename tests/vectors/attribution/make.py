"""Writes constructed.json: transactions encoded by another library (cosmpy's generated types), what each must give.

    python tests/vectors/attribution/make.py

recorded.json beside it holds transactions and results of a real Gonka v0.2.0 node and is not made here.
The file is committed: the vectors are what two implementations must agree on, so it changes only with the protocol.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from bech32 import bech32_encode, convertbits
from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgExec
from cosmpy.protos.cosmos.bank.v1beta1.tx_pb2 import MsgSend
from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import Coin
from cosmpy.protos.cosmos.tx.v1beta1.tx_pb2 import TxBody, TxRaw
from google.protobuf.any_pb2 import Any

HERE = Path(__file__).parent
PREFIX = "gonka"
TOPIC = bytes(range(20))
ALICE, BOB, CAROL = bytes([0xA1]) * 20, bytes([0xB0]) * 20, bytes([0xCA]) * 20
TASK = 7
COMMIT = bytes([1, 6]) + (5).to_bytes(4, "big") + bytes([0xC0]) * 32
BEAT = bytes([1, 13]) + (5).to_bytes(4, "big") + (250).to_bytes(4, "big")
ANNOUNCE = bytes([1, 1]) + bytes([0x3A]) * 32 + bytes([0])


def text(address: bytes, prefix: str = PREFIX) -> str:
    return bech32_encode(prefix, convertbits(address, 8, 5))


def b64(record: bytes) -> str:
    return base64.b64encode(record).decode()


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def send(author: str = text(ALICE), to: str = text(TOPIC), amounts: tuple[str, ...] = ("1",)) -> Any:
    coins = [Coin(denom="ngonka", amount=amount) for amount in amounts]
    message = MsgSend(from_address=author, to_address=to, amount=coins)
    return Any(type_url="/cosmos.bank.v1beta1.MsgSend", value=message.SerializeToString())


def kv(record: bytes | str, author: str = text(ALICE), task: int = TASK, **other: str) -> Any:
    value = record if isinstance(record, str) else b64(record)
    raw = field(1, author.encode()) + field(2, task)
    raw += field(3, other.get("participant", author).encode()) + field(4, other.get("key", "k").encode())
    return Any(type_url="/inference.inference.MsgSubmitTrainingKvRecord", value=raw + field(5, value.encode()))


def execute(*messages: Any, grantee: str = text(BOB)) -> Any:
    return Any(
        type_url="/cosmos.authz.v1beta1.MsgExec",
        value=MsgExec(grantee=grantee, msgs=messages).SerializeToString(),
    )


def body(*messages: Any, memo: str | bytes = b"") -> bytes:
    raw = TxBody(messages=messages).SerializeToString()
    memo = memo.encode() if isinstance(memo, str) else memo
    return raw + (field(2, memo) if memo else b"")


def transaction(raw_body: bytes) -> bytes:
    return TxRaw(body_bytes=raw_body, auth_info_bytes=b"\x12\x00", signatures=[bytes(64)]).SerializeToString()


def nested(message: Any, layers: int) -> Any:
    for _ in range(layers):
        message = execute(message)
    return message


CASES: list[tuple[str, str, bytes, int, list[tuple[int, bytes, bytes]]]] = []


def case(name: str, carrier: str, raw_body: bytes, *expected: tuple[int, bytes, bytes], code: int = 0) -> None:
    CASES.append((name, carrier, transaction(raw_body), code, list(expected)))


def memo_cases() -> None:
    one = (0, ALICE, COMMIT)
    case("a send to the topic", "memo", body(send(), memo=b64(COMMIT)), one)
    case("any amount", "memo", body(send(amounts=("999999999999",)), memo=b64(COMMIT)), one)
    case("no coins", "memo", body(send(amounts=()), memo=b64(COMMIT)), one)
    case("two denominations", "memo", body(send(amounts=("1", "2")), memo=b64(COMMIT)), one)
    case("failed in the block", "memo", body(send(), memo=b64(COMMIT)), code=5)
    case("to another address", "memo", body(send(to=text(BOB)), memo=b64(COMMIT)))
    case("to the topic under another prefix", "memo", body(send(to=text(TOPIC, "cosmos")), memo=b64(COMMIT)))
    case("to the topic in upper case", "memo", body(send(to=text(TOPIC).upper()), memo=b64(COMMIT)))
    case("author in upper case", "memo", body(send(author=text(ALICE).upper()), memo=b64(COMMIT)))
    case("author of 32 bytes", "memo", body(send(author=text(bytes(32))), memo=b64(COMMIT)))
    case("author with a wrong checksum", "memo", body(send(author=text(ALICE)[:-1] + "q"), memo=b64(COMMIT)))
    case("author of another prefix", "memo", body(send(author=text(ALICE, "cosmos")), memo=b64(COMMIT)))
    case("two sends", "memo", body(send(), send(), memo=b64(COMMIT)))
    case("a send and another message", "memo", body(send(), kv(COMMIT), memo=b64(COMMIT)))
    case("no message", "memo", body(memo=b64(COMMIT)))
    case("a send inside MsgExec", "memo", body(execute(send()), memo=b64(COMMIT)))
    case("a key-value record", "memo", body(kv(COMMIT), memo=b64(COMMIT)))
    other = Any(type_url="cosmos.bank.v1beta1.MsgSend", value=send().value)
    case("type URL without its slash", "memo", body(other, memo=b64(COMMIT)))
    case("send that does not decode", "memo", body(Any(type_url=send().type_url, value=b"\x0a\x05x"), memo=b64(COMMIT)))
    case("fields that are not known are skipped", "memo", body(send(), memo=b64(COMMIT)) + field(2047, b"x"), one)
    case("the last memo stands", "memo", body(send(), memo=b64(BEAT)) + field(2, b64(COMMIT).encode()), one)
    case("the last from_address stands", "memo", _twice(1, text(BOB)), (0, BOB, COMMIT))
    case("the last to_address stands", "memo", _twice(2, text(BOB)))
    memo_texts()


def _twice(number: int, value: str) -> bytes:
    message = Any(type_url=send().type_url, value=send().value + field(number, value.encode()))
    return body(message, memo=b64(COMMIT))


def memo_texts() -> None:
    good = b64(COMMIT)
    for name, memo in {
        "no memo": b"",
        "a blank after the record": good + " ",
        "a line end after the record": good + "\n",
        "a blank before the record": " " + good,
        "no padding": good.rstrip("="),
        "padding too much": good + "==",
        "loose last bits": b64(BEAT)[:-2] + chr(ord(b64(BEAT)[-2]) + 1) + "=",
        "url-safe letters": base64.urlsafe_b64encode(bytes([1, 6, 0xFF, 0xFB, 0xFF, 0xFE]) + bytes(32)).decode(),
        "hex": COMMIT.hex(),
        "bytes that are not UTF-8": b"\xff\xfe",
        "256 bytes of 0xff": b"\xff" * 256,
        "NUL": b"\x00",
        "a record and NUL": good.encode() + b"\x00",
        "escape sequences": b"\x1b[2J\x1b[H",
        "foreign base64": b64(bytes(range(64))),
        "one byte too many": b64(COMMIT + b"\x00"),
        "one byte too few": b64(COMMIT[:-1]),
        "unknown version": b64(b"\x02" + COMMIT[1:]),
        "unknown kind": b64(b"\x01\xee" + COMMIT[2:]),
    }.items():
        case(f"memo: {name}", "memo", body(send(), memo=memo))


def kv_cases() -> None:
    case("a record", "kv", body(kv(COMMIT)), (0, ALICE, COMMIT))
    case("a record and any memo", "kv", body(kv(COMMIT), memo=b"\xff\xfe"), (0, ALICE, COMMIT))
    case("a record as memo is none here", "kv", body(send(), memo=b64(COMMIT)))
    case("failed in the block", "kv", body(kv(COMMIT)), code=1120)
    case("another task", "kv", body(kv(COMMIT, task=TASK + 1)))
    case("task 0", "kv", body(kv(COMMIT, task=0)))
    other = {"participant": text(BOB), "key": "gt/9/x"}
    case("participant and key are not read", "kv", body(kv(COMMIT, **other)), (0, ALICE, COMMIT))
    both = [(0, ALICE, COMMIT), (1, BOB, BEAT)]
    case("two records of two authors", "kv", body(kv(COMMIT), kv(BEAT, text(BOB))), *both)
    case("the same record twice", "kv", body(kv(BEAT), kv(BEAT)), (0, ALICE, BEAT), (1, ALICE, BEAT))
    case("a bad one voids only itself", "kv", body(kv("x"), kv(BEAT)), (1, ALICE, BEAT))
    broken = Any(type_url=kv(BEAT).type_url, value=b"\x0a\x7f")
    case("one that does not decode voids only itself", "kv", body(broken, kv(BEAT)), (1, ALICE, BEAT))
    case("a bad author voids only itself", "kv", body(kv(BEAT, "gonka1x"), kv(BEAT)), (1, ALICE, BEAT))
    case("inside MsgExec: the author is the creator", "kv", body(execute(kv(COMMIT))), (0, ALICE, COMMIT))
    mixed = body(kv(BEAT), execute(kv(COMMIT), send(), kv(BEAT, text(CAROL))), kv(BEAT, text(BOB)))
    case("depth first", "kv", mixed, (0, ALICE, BEAT), (1, ALICE, COMMIT), (3, CAROL, BEAT), (4, BOB, BEAT))
    layered = body(execute(execute(kv(COMMIT), send()), kv(BEAT)), kv(BEAT))
    case("two layers", "kv", layered, (0, ALICE, COMMIT), (2, ALICE, BEAT), (3, ALICE, BEAT))
    case("an empty MsgExec takes no number", "kv", body(execute(), kv(BEAT)), (0, ALICE, BEAT))
    bad_exec = Any(type_url=execute().type_url, value=b"\x12\x7f")
    case("a MsgExec that does not decode is one leaf", "kv", body(bad_exec, kv(BEAT)), (1, ALICE, BEAT))
    case("16 layers", "kv", body(nested(kv(COMMIT), 16)), (0, ALICE, COMMIT))
    case("17 layers", "kv", body(nested(kv(COMMIT), 17), kv(BEAT)), (1, ALICE, BEAT))
    twice = Any(type_url=kv(BEAT).type_url, value=kv(BEAT).value + field(1, text(BOB).encode()))
    case("the last creator stands", "kv", body(twice), (0, BOB, BEAT))
    spare = Any(type_url=kv(BEAT).type_url, value=kv(BEAT).value + field(99, b"x"))
    case("fields that are not known are skipped", "kv", body(spare), (0, ALICE, BEAT))
    foreign = Any(type_url="/inference.inference.MsgSubmitTrainingKvRecords", value=kv(BEAT).value)
    case("another type URL", "kv", body(foreign, kv(ANNOUNCE)), (1, ALICE, ANNOUNCE))


def raw_cases() -> None:
    for carrier in ("memo", "kv"):
        for name, raw in {
            "nothing": b"",
            "not a transaction": b"\xff" * 40,
            "truncated": transaction(body(kv(COMMIT), memo=b64(COMMIT)))[:-90],
            "a body that does not decode": field(1, b"\x0a\x7f"),
            "a group": b"\x0b\x0c",
        }.items():
            CASES.append((f"raw: {name}", carrier, raw, 0, []))


def main() -> None:
    memo_cases()
    kv_cases()
    raw_cases()
    document = {
        "prefix": PREFIX,
        "topic": TOPIC.hex(),
        "task_id": TASK,
        "cases": [
            {
                "name": name,
                "carrier": carrier,
                "transaction": raw.hex(),
                "code": code,
                "records": [[index, author.hex(), record.hex()] for index, author, record in expected],
            }
            for name, carrier, raw, code, expected in CASES
        ],
    }
    (HERE / "constructed.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
