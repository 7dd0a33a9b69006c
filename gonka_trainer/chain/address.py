"""Account addresses as text: bech32 (BIP-173) of 20 bytes under the chain's prefix."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Final

from gonka_trainer.errors import DecodeError
from gonka_trainer.types import ADDRESS_BYTES, Address

_ALPHABET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_DIGITS: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM_LETTERS: Final = 6
_ADDRESS_LETTERS: Final = 32  # 160 bits are 32 letters of 5 bits, with nothing to pad


def _combined(top: int) -> int:
    combined = 0
    for i, term in enumerate(_GENERATOR):
        combined ^= term if top >> i & 1 else 0
    return combined


_COMBINED: Final = tuple(_combined(top) for top in range(32))


def _polymod(values: Iterable[int], state: int = 1) -> int:
    for value in values:
        state = (state & 0x1FFFFFF) << 5 ^ value ^ _COMBINED[state >> 25]
    return state


@functools.lru_cache(maxsize=8)
def _after_prefix(prefix: str) -> int:
    return _polymod(_expanded(prefix))


def _expanded(prefix: str) -> list[int]:
    return [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]


def _fives(data: bytes) -> Iterator[int]:
    bits = int.from_bytes(data, "big")
    count = len(data) * 8 // 5
    return (bits >> 5 * (count - 1 - i) & 31 for i in range(count))


def encode_address(address: Address, prefix: str) -> str:
    """Return the address as bech32 text; ValueError unless it has 20 bytes."""
    if len(address) != ADDRESS_BYTES:
        raise ValueError(f"address of {len(address)} bytes, {ADDRESS_BYTES} wanted")
    digits = list(_fives(address))
    check = _polymod([*digits, *([0] * _CHECKSUM_LETTERS)], _after_prefix(prefix)) ^ 1
    digits += [check >> 5 * (_CHECKSUM_LETTERS - 1 - i) & 31 for i in range(_CHECKSUM_LETTERS)]
    return f"{prefix}1{''.join(_ALPHABET[digit] for digit in digits)}"


def decode_address(text: str | bytes, prefix: str) -> Address:
    """Return the 20 bytes of a bech32 address under the prefix; DecodeError for anything else.

    Strict: lower case only (the form that every wallet and the chain itself write), exactly 20 bytes, no blanks.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("ascii")
        except UnicodeDecodeError as error:
            raise DecodeError("address is not ASCII") from error
    head, letters = text[: len(prefix) + 1], text[len(prefix) + 1 :]
    if head != f"{prefix}1" or len(letters) != _ADDRESS_LETTERS + _CHECKSUM_LETTERS:
        raise DecodeError(f"not an address of 20 bytes with prefix {prefix}")
    digits = [_DIGITS.get(letter, -1) for letter in letters]
    if -1 in digits:
        raise DecodeError("letter that bech32 does not have")
    if _polymod(digits, _after_prefix(prefix)) != 1:
        raise DecodeError("checksum does not match")
    bits = 0
    for digit in digits[:_ADDRESS_LETTERS]:
        bits = bits << 5 | digit
    return Address(bits.to_bytes(ADDRESS_BYTES, "big"))
