"""Bech32 (BIP 173) addresses, with the refusals that a chain node gives word by word."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
SHORTEST, LONGEST = 8, 1023
REMEMBERED = 16_384


class Bech32Error(ValueError):
    """An address that cannot be read; the text is the chain's."""


class PrefixError(ValueError):
    """An address of another prefix than the chain's."""


def _polymod(values: Iterable[int]) -> int:
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for bit in range(5):
            checksum ^= GENERATOR[bit] if top >> bit & 1 else 0
    return checksum


def _expand(prefix: str) -> list[int]:
    return [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]


def _checksum(prefix: str, data: list[int]) -> str:
    value = _polymod([*_expand(prefix), *data, 0, 0, 0, 0, 0, 0]) ^ 1
    return "".join(CHARSET[value >> 5 * (5 - place) & 31] for place in range(6))


def _regroup(data: Iterable[int], width: int, target: int, pad: bool) -> list[int]:
    bits = count = 0
    groups = []
    for value in data:
        bits, count = (bits << width | value) & 0xFFFFFF, count + width
        while count >= target:
            count -= target
            groups.append(bits >> count & (1 << target) - 1)
    if pad and count:
        groups.append(bits << target - count & (1 << target) - 1)
    elif not pad and (count >= width or bits & (1 << count) - 1):
        raise Bech32Error("invalid incomplete group")
    return groups


@lru_cache(REMEMBERED)
def encode(prefix: str, raw: bytes) -> str:
    """Return the address of these bytes."""
    data = _regroup(raw, 8, 5, True)
    return prefix + "1" + "".join(CHARSET[value] for value in data) + _checksum(prefix, data)


def _check_letters(address: str) -> None:
    if not SHORTEST <= len(address) <= LONGEST:
        raise Bech32Error(f"invalid bech32 string length {len(address)}")
    for letter in address:
        if not 33 <= ord(letter) <= 126:
            raise Bech32Error(f"invalid character in string: '{letter}'")
    if address not in (address.lower(), address.upper()):
        raise Bech32Error("string not all lowercase or all uppercase")


@lru_cache(REMEMBERED)
def decode(address: str) -> tuple[str, bytes]:
    """Return prefix and bytes; raise Bech32Error."""
    _check_letters(address)
    address = address.lower()
    one = address.rfind("1")
    if one < 1 or one + 7 > len(address):
        raise Bech32Error(f"invalid separator index {one}")
    prefix, letters = address[:one], address[one + 1 :]
    for letter in letters:
        if letter not in CHARSET:
            raise Bech32Error(f"invalid character not part of charset: {ord(letter)}")
    data = [CHARSET.index(letter) for letter in letters]
    if _polymod(_expand(prefix) + data) != 1:
        raise Bech32Error(f"invalid checksum (expected {_checksum(prefix, data[:-6])} got {letters[-6:]})")
    return prefix, bytes(_regroup(data[:-6], 5, 8, False))


def account_bytes(address: str, prefix: str) -> bytes:
    """Return an account's bytes; raise Bech32Error (`decoding bech32 failed: ...`) or PrefixError."""
    if not address.strip():
        raise Bech32Error("empty address string is not allowed")
    try:
        found, raw = decode(address)
    except Bech32Error as error:
        raise Bech32Error(f"decoding bech32 failed: {error}") from error
    if found != prefix:
        raise PrefixError(f"hrp does not match bech32 prefix: expected '{prefix}' got '{found}'")
    return raw


def module_account(name: str) -> bytes:
    """Return the bytes of a module's account, such as fee_collector."""
    return hashlib.sha256(name.encode()).digest()[:20]
