"""Write digests.json: preimages put together by `struct` alone, as docs and docstrings give them, not by the core.

python tests/vectors/round/make.py
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

ABOUT = (
    "List digests, environment and roster digests with their preimages, and bitmaps (PROTOCOL 3 and 4). The roster: "
    "round 5, opened after block 900, the last final round 3; participants 01.. and 02.. in R, 02.. without a voice; "
    "03.. a stranger that delegated; see the fields."
)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def person(n: int) -> bytes:
    return bytes([n]) * 20


def u32(*values: int) -> bytes:
    return b"".join(struct.pack(">I", v) for v in values)


def u64(*values: int) -> bytes:
    return b"".join(struct.pack(">Q", v) for v in values)


def place(height: int, transaction: int = 0, message: int = 0) -> bytes:
    return u64(height) + u32(transaction, message)


def some(address: bytes) -> bytes:
    return b"\x01" + address


NONE = b"\x00"
NOWHERE = place(0)


def list_digest(name: str, close_hash: bytes, committers: list[bytes]) -> dict[str, Any]:
    preimage = b"gonka-trainer/committers/1" + close_hash + b"".join(sorted(committers))
    return {
        "name": name,
        "close_hash": close_hash.hex(),
        "committers": [c.hex() for c in committers],
        "list_digest": hashlib.sha256(preimage).digest()[:16].hex(),
    }


def environment(name: str, schedule: list[int], weights: list[tuple[bytes, int]]) -> dict[str, Any]:
    preimage = u64(*schedule) + u32(len(weights)) + b"".join(a + u64(w) for a, w in weights)
    return {
        "name": name,
        "schedule": schedule,
        "weights": [[a.hex(), w] for a, w in weights],
        "preimage": preimage.hex(),
        "digest": hashlib.sha256(b"gonka-trainer/environment/1" + preimage).hexdigest(),
    }


def spoiled(good: bytes) -> list[dict[str, str]]:
    """Ways in which the bytes of an environment with two weights are none."""
    head, first, second = good[:52], good[52:80], good[80:]
    bad = {
        "empty": b"",
        "a byte short": good[:-1],
        "a byte too long": good + b"\x00",
        "weights unsorted": head + second + first,
        "the same address twice": head + first + first,
        "weight 0": head + first[:20] + bytes(8) + second,
        "count too great": good[:48] + u32(3) + first + second,
        "count 2^32 - 1": good[:48] + u32(2**32 - 1) + first + second,
    }
    return [{"name": name, "preimage": raw.hex()} for name, raw in bad.items()]


def join(participant: bytes, role: int, host: str, written: int) -> bytes:
    """A join record behind its length."""
    name, software = host.encode(), b"vector 1"
    record = b"\x01\x04" + participant + bytes([role]) + digest("spki") + bytes([len(name)]) + name
    record += struct.pack(">H", 9000) + bytes([len(software)]) + software + u64(written)
    return bytes([len(record)]) + record


def roster() -> dict[str, Any]:
    """One roster with something in every list, in the order of `roster_bytes.encode_roster`."""
    about = person(2) + u32(4, 6)
    drawn_from = environment("of the roster", [0] * 6, [(person(1), 70), (person(2), 30)])["digest"]
    lists = [
        [person(1) + u64(70) + b"\x01", person(2) + u64(30) + b"\x00"],
        [
            person(1) + u64(11) + join(person(1), 0, "one.example", 11) + place(12, 3, 1),
            person(2) + u64(21) + b"\x00" + NOWHERE,
            person(9) + u64(31) + join(person(2), 1, "", 30) + place(32, 5),
        ],
        [
            person(1) + some(person(1)) + NONE + u64(0) + NOWHERE * 3 + u64(0) + u32(1) + NONE,
            person(2)
            + some(person(9))
            + some(person(9))
            + u64(29)
            + place(30, 1)
            + place(27)
            + place(22, 0, 7)
            + u64(800)
            + u32(3)
            + b"\x01"
            + u32(6),
            person(3) + NONE + some(person(8)) + u64(40) + place(41) + NOWHERE * 2 + u64(0) + u32(0) + NONE,
        ],
        [person(1), person(2)],
        [person(1) + about + b"\x02" + digest("evidence")],
        [about + b"\x02"],
        [person(1) + about + u64(700)],
    ]
    head = u32(5) + u64(900) + bytes.fromhex(drawn_from) + b"\x01" + u32(3) + digest("root") + digest("environment")
    preimage = head + b"".join(u32(len(items)) + b"".join(items) for items in lists)
    return {
        "preimage": preimage.hex(),
        "digest": hashlib.sha256(b"gonka-trainer/roster/1" + preimage).hexdigest(),
    }


def spoiled_roster(good: bytes) -> list[dict[str, str]]:
    """Ways in which the bytes of the roster above are none."""
    head, first, second, rest = good[:117], good[117:146], good[146:175], good[175:]
    speaker = some(person(9)) * 2 + u64(29)
    bad = {
        "empty": b"",
        "a byte short": good[:-1],
        "a byte too long": good + b"\x00",
        "seats unsorted": head + second + first + rest,
        "the same seat twice": head + first + first + rest,
        "a voice that is neither 0 nor 1": head + first[:-1] + b"\x02" + second + rest,
        "count 2^32 - 1": good[:113] + u32(2**32 - 1) + good[117:],
        "a record that is no join in a join's place": good.replace(b"\x01\x04" + person(1), b"\x01\x05" + person(1)),
        "a speaker that never joined": good.replace(speaker, some(person(7)) + some(person(9)) + u64(29)),
        "a speaker whose last join names another": good.replace(speaker, some(person(1)) + some(person(9)) + u64(29)),
    }
    assert good[113:117] == u32(2)
    assert all(raw != good for raw in bad.values())
    return [{"name": name, "preimage": raw.hex()} for name, raw in bad.items()]


def main() -> None:
    block, names = digest("block"), [person(9), person(1), person(4)]
    epoch = environment("a test net's epoch", [7, 1000, 50, 4, 1, 5], [(person(1), 10), (person(4), 2**64 - 1)])
    packed = [([], 0, ""), ([], 1, "00"), ([0], 1, "80"), ([0, 1, 2], 3, "e0")]
    packed += [([7], 8, "01"), ([0, 8], 9, "8080"), ([9], 10, "0040")]
    wrong = [("", 1, "too short"), ("00", 0, "too long"), ("40", 1, "spare bit"), ("0001", 15, "spare bit")]
    wrong += [("e000", 3, "too long")]
    document = {
        "about": ABOUT,
        "list_digests": [
            list_digest("nobody", block, []),
            list_digest("one", block, names[:1]),
            list_digest("three, given unsorted", block, names),
            list_digest("three, another block", digest("another"), sorted(names)),
        ],
        "environments": [environment("no epochs, no weights", [0] * 6, []), epoch],
        "environments_rejected": spoiled(bytes.fromhex(epoch["preimage"])),
        "roster": roster(),
        "rosters_rejected": spoiled_roster(bytes.fromhex(roster()["preimage"])),
        "bitmaps": [{"positions": p, "count": n, "hex": x} for p, n, x in packed],
        "bitmaps_rejected": [{"hex": x, "count": n, "why": w} for x, n, w in wrong],
    }
    Path(__file__).with_name("digests.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
