"""Account keys from words: BIP-39 (words, checksum, seed) and BIP-32 / BIP-44 (the key at a path)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mnemonic import Mnemonic

from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.errors import ConfigError

GONKA_COIN: Final = 1200
"""Gonka's coin type: its keys are at m/44'/1200'/ACCOUNT'/0/INDEX."""

NEW_BITS: Final = 256
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_HARDENED: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class KeyPath:
    """Which of a seed's keys: m/44'/COIN'/ACCOUNT'/0/INDEX."""

    account: int = 0
    index: int = 0
    coin: int = GONKA_COIN

    @property
    def steps(self) -> tuple[int, ...]:
        """The child numbers from the master key down; ConfigError when one is out of range."""
        if not all(0 <= number < _HARDENED for number in (self.account, self.index, self.coin)):
            raise ConfigError("account, index and coin type are 0 to 2147483647", "the usual key is account 0, index 0")
        return 44 | _HARDENED, self.coin | _HARDENED, self.account | _HARDENED, 0, self.index


def new_words() -> str:
    """Return 24 fresh English words of 256 random bits."""
    return str(Mnemonic("english").generate(NEW_BITS))


def key_from_words(text: str, passphrase: str = "", path: KeyPath = KeyPath()) -> AccountKey:
    """Return the key at the path; ConfigError (which shows no word) for words that BIP-39 does not have.

    English words, 12 to 24, any blanks between them; `passphrase` is BIP-39's own, not a file's.
    """
    words = " ".join(text.lower().split())
    maker = Mnemonic("english")
    known = [word in set(maker.wordlist) for word in words.split()]
    if len(known) not in {12, 15, 18, 21, 24}:
        raise ConfigError(f"a phrase of {len(known)} words", "a phrase has 12, 15, 18, 21 or 24 words")
    if not all(known):
        raise ConfigError(
            f"word {known.index(False) + 1} is not in BIP-39's English list", "look for a slip of the pen"
        )
    if not maker.check(words):
        raise ConfigError("the phrase's checksum does not match", "a word is wrong, or two have changed places")
    return AccountKey.from_bytes(derive(Mnemonic.to_seed(words, passphrase), path.steps))


def derive(seed: bytes, steps: tuple[int, ...]) -> bytes:
    """Return the private key (32 bytes) below a seed at these child numbers, those from 2^31 on hardened (BIP-32).

    ConfigError for the one in 2^127 that BIP-32 calls invalid.
    """
    key, chain = _split(hmac.digest(b"Bitcoin seed", seed, hashlib.sha512))
    for step in steps:
        parent = b"\0" + key.to_bytes(32, "big") if step & _HARDENED else _public(_checked(key))
        offset, chain = _split(hmac.digest(chain, parent + step.to_bytes(4, "big"), hashlib.sha512))
        if offset >= _ORDER:
            _checked(0)
        key = (key + offset) % _ORDER
    return _checked(key).to_bytes(32, "big")


def _split(digest: bytes) -> tuple[int, bytes]:
    return int.from_bytes(digest[:32], "big"), digest[32:]


def _checked(key: int) -> int:
    if not 0 < key < _ORDER:
        raise ConfigError("this phrase has no key at this path", "use another index")
    return key


def _public(key: int) -> bytes:
    public = ec.derive_private_key(key, ec.SECP256K1()).public_key()
    return public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
