"""Write records.json: every record kind by `struct` alone, from the layout in docs/protocol.md 2, not by the codec.

python tests/vectors/records/make.py
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

ABOUT = (
    "Each record's canonical bytes (hex) and its text in a memo or KV value. Bytes among the fields are hex. Every "
    "text under `reject` (hex of its bytes) is no record."
)
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
GREATEST = 2**64 - 1

accepted: list[dict[str, Any]] = []
rejected: list[dict[str, Any]] = []


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def short(value: bytes) -> bytes:
    return bytes([len(value)]) + value


PERSON = bytes(range(1, 21))


def add(name: str, kind: str, number: int, body: bytes, **fields: int | bytes) -> bytes:
    raw = bytes([1, number]) + body
    shown = {k: v.hex() if isinstance(v, bytes) else v for k, v in fields.items()}
    text = base64.b64encode(raw).decode()
    accepted.append({"name": name, "kind": kind, "fields": shown, "hex": raw.hex(), "text": text})
    return raw


def announce(name: str, url: bytes) -> None:
    manifest = digest("manifest")
    add(name, "Announce", 1, manifest + short(url), manifest_hash=manifest, url=url)


def join(name: str, role: int, host: bytes, port: int, software: bytes, written: int) -> bytes:
    spki = digest("spki")
    body = PERSON + bytes([role]) + spki + short(host) + struct.pack(">H", port) + short(software)
    values = {"participant": PERSON, "role": role, "spki": spki, "host": host, "port": port, "software": software}
    return add(name, "Join", 4, body + struct.pack(">Q", written), **values, written=written)


def attest(name: str, bitmap: bytes) -> None:
    names, proof = digest("L")[:16], digest("P")[:16]
    body = struct.pack(">I", 7) + names + proof + short(bitmap)
    add(name, "Attest", 7, body, round=7, list_digest=names, possession=proof, bitmap=bitmap)


def accept_all() -> tuple[bytes, bytes, bytes, bytes]:
    """Fill `accepted`; return a commit, a join, a secret and a heartbeat to spoil."""
    announce("announce with an address", b"https://example.org/run.json")
    announce("announce without an address", b"")
    announce("announce, longest", b"https://" + b"a" * 112)
    for kind, number in (("Delegate", 2), ("Revoke", 3)):
        add(kind.lower(), kind, number, PERSON + struct.pack(">Q", 123456), key=PERSON, written=123456)
    add("delegate, greatest height", "Delegate", 2, PERSON + b"\xff" * 8, key=PERSON, written=GREATEST)
    joined = join("join as member", 0, b"host.example.org", 7000, b"0.1.0", 77)
    join("join as validator", 1, b"192.0.2.7", 1, b"", 78)
    join("join as observer", 2, b"", 0, b"x", 79)
    join("join, longest", 0, b"h" * 64, 65535, b"s" * 24, GREATEST)
    add("leave", "Leave", 5, PERSON + struct.pack(">Q", 80), participant=PERSON, written=80)
    made = digest("C")
    commit = add("commit", "Commit", 6, struct.pack(">I", 7) + made, round=7, commitment=made)
    add("commit, greatest round", "Commit", 6, b"\xff" * 4 + made, round=2**32 - 1, commitment=made)
    attest("attest three of three", b"\xe0")
    attest("attest, nobody committed", b"")
    attest("attest, longest: 1,024 committers", b"\xff" * 128)
    root, environment, roster = digest("R"), digest("E"), digest("S")
    body = struct.pack(">I", 7) + root + environment + roster
    add("state", "StateRoot", 8, body, round=7, root=root, environment=environment, roster=roster)
    add("missing", "Missing", 9, struct.pack(">I", 7) + short(b"\x40"), round=7, bitmap=b"\x40")
    about = {"subject": PERSON, "round": 7, "segment": 3}
    add("challenge", "Challenge", 10, PERSON + struct.pack(">II", 7, 3), **about)
    evidence = digest("V")
    body = PERSON + struct.pack(">IIB", 7, 3, 2) + evidence
    add("verdict", "VerdictRecord", 11, body, **about, outcome=2, evidence=evidence)
    value = digest("X")
    add("secret, its hash", "Secret", 12, struct.pack(">IB", 7, 0) + value, round=7, revealed=0, value=value)
    secret = add("secret, itself", "Secret", 12, struct.pack(">IB", 7, 1) + value, round=7, revealed=1, value=value)
    heartbeat = add("heartbeat", "Heartbeat", 13, struct.pack(">II", 7, 21), round=7, inner_step=21)
    return commit, joined, secret, heartbeat


def no_text(name: str, text: bytes, why: str) -> None:
    rejected.append({"name": name, "text": text.hex(), "why": why})


def no(name: str, raw: bytes, why: str) -> None:
    no_text(name, base64.b64encode(raw), why)


def reject_bytes(commit: bytes, joined: bytes, secret: bytes) -> None:
    no("empty", b"", "no version")
    no("version alone", commit[:1], "no kind")
    no("version 0", b"\x00" + commit[1:], "unknown version")
    no("version 2", b"\x02" + commit[1:], "unknown version")
    for kind in (0, 14, 255):
        no(f"kind {kind}", commit[:1] + bytes([kind]) + commit[2:], "unknown kind")
    for vector in accepted:
        raw = bytes.fromhex(vector["hex"])
        no(vector["name"] + ", a byte short", raw[:-1], "ends too early")
        no(vector["name"] + ", a byte too long", raw + b"\x00", "spare bytes")
    head, tail = joined[:55], joined[55 + 1 + 16 :]  # before and after the host "host.example.org"
    no("join, role 3", joined[:22] + b"\x03" + joined[23:], "unknown role")
    no("join, host of 65 bytes", head + short(b"h" * 65) + tail, "field too long")
    no("join, host longer than the record", head + bytes([64]) + joined[56:], "ends too early")
    no("join, software of 25 bytes", head + short(b"h") + b"\x00\x01" + short(b"s" * 25) + bytes(8), "field too long")
    no("announce, address of 121 bytes", bytes([1, 1]) + digest("manifest") + short(b"a" * 121), "field too long")
    no("attest, bitmap of 129 bytes", bytes([1, 7]) + bytes(36) + short(bytes(129)), "field too long")
    no("secret, flag 2", secret[:6] + b"\x02" + secret[7:], "flag is neither 0 nor 1")
    no("193 bytes", bytes([1, 1]) + digest("m") + short(b"a" * 158), "longer than 192 bytes")


def reject_texts(commit: bytes, heartbeat: bytes) -> None:
    text, padded = base64.b64encode(commit), base64.b64encode(heartbeat)
    bare = padded.rstrip(b"=")
    spare = bare[:-1] + ALPHABET[ALPHABET.index(bare[-1:]) | 1 :][:1] + padded[len(bare) :]
    no_text("a newline behind", text + b"\n", "not canonical")
    no_text("a space before", b" " + text, "not canonical")
    no_text("without padding", bare, "not canonical")
    no_text("padding too much", padded + b"=", "not canonical")
    no_text("spare bits set", spare, "not canonical")
    no_text("the URL alphabet", base64.urlsafe_b64encode(bytes([1, 6]) + b"\xff" * 36), "not base64")
    no_text("hex", commit.hex().encode(), "not a record")
    no_text("JSON", b'{"round": 7}', "not base64")
    no_text("text that is not UTF-8", b"\xff" * 256, "not base64")
    no_text("with a NUL", text[:8] + b"\x00" + text[8:], "not base64")
    no_text("a word of base64 letters", b"hello", "not canonical")


def main() -> None:
    commit, joined, secret, heartbeat = accept_all()
    reject_bytes(commit, joined, secret)
    reject_texts(commit, heartbeat)
    document = {"about": ABOUT, "accept": accepted, "reject": rejected}
    Path(__file__).with_name("records.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
