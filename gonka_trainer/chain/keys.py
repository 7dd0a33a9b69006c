"""Account keys: secp256k1, kept in a file that only its owner can read; never in logs, arguments or tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gonka_trainer.chain import keyfiles, keystore
from gonka_trainer.chain.ripemd160 import ripemd160
from gonka_trainer.errors import ConfigError
from gonka_trainer.types import Address, sha256

_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_KEY_BYTES: Final = 32


class AccountKey:
    """A secp256k1 key of an account. Its text form shows the address alone."""

    def __init__(self, secret: ec.EllipticCurvePrivateKey) -> None:
        self._secret = secret

    @classmethod
    def from_bytes(cls, secret: bytes) -> AccountKey:
        """Read the 32 big-endian bytes of the secret; ConfigError (which never shows them) when they are no key."""
        number = int.from_bytes(secret, "big")
        if len(secret) != _KEY_BYTES or not 0 < number < _ORDER:
            raise ConfigError("these bytes are no secp256k1 key", "use a key of 32 bytes, between 1 and the order - 1")
        return cls(ec.derive_private_key(number, ec.SECP256K1()))

    @property
    def public_key(self) -> bytes:
        """The compressed public key, 33 bytes."""
        return self._secret.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)

    @property
    def address(self) -> Address:
        """The account's address: RIPEMD-160 of SHA-256 of the compressed public key."""
        return Address(ripemd160(sha256(self.public_key)))

    @property
    def public(self) -> keystore.Public:
        """What everybody may know of the key."""
        return keystore.Public(self.address, self.public_key)

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature r || s of SHA-256 of the message: RFC 6979, s in the lower half.

        Chains refuse a high s.
        """
        der = self._secret.sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        return r.to_bytes(32, "big") + min(s, _ORDER - s).to_bytes(32, "big")

    def file_content(self, passphrase: bytes | None, cost: keystore.Cost = keystore.DEFAULT_COST) -> bytes:
        """Return what a key file holds: the encrypted document, or without a passphrase the secret's 64 hex digits."""
        secret = self._secret.private_numbers().private_value.to_bytes(_KEY_BYTES, "big")
        if passphrase is None:
            return secret.hex().encode() + b"\n"
        return keystore.seal(secret, self.public, passphrase, cost)

    def __repr__(self) -> str:
        return f"AccountKey(address={self.address.hex()})"

    def __reduce__(self) -> str:
        raise TypeError("an account key is not to be copied or serialised")


def new_key() -> AccountKey:
    """Return a fresh key that is nowhere on disk."""
    return AccountKey(ec.generate_private_key(ec.SECP256K1()))


def create_key(path: Path, passphrase: bytes | None = None) -> AccountKey:
    """Make a new key in a new file of mode 0600, encrypted if a passphrase is given; ConfigError when it exists."""
    key = new_key()
    keyfiles.write_secret(path, key.file_content(passphrase))
    return key


def load_key(path: Path, passphrase: Callable[[], bytes] | None = None) -> AccountKey:
    """Read a key file: 64 hex digits, or an encrypted one (told apart by content), which `passphrase` is asked for.

    ConfigError when it is missing, readable by others, holds anything else, or the passphrase does not open it.
    """
    content = keyfiles.read_secret(path, "key file")
    if not keystore.is_sealed(content):
        return _from_hex(content.strip(), f"key file {path}")
    if passphrase is None:
        raise ConfigError(f"key file {path} is encrypted", "give its passphrase: keys.passphrase_file, or a terminal")
    keystore.sealed_public(content, f"key file {path}")  # what is no key file is said before anybody is asked
    secret, public = keystore.open_sealed(content, passphrase(), f"key file {path}")
    key = AccountKey.from_bytes(secret)
    if key.public != public:
        raise ConfigError(f"key file {path} holds another key than it says", "restore it from a backup")
    return key


def describe_key(path: Path) -> tuple[keystore.Public, bool]:
    """Return what a key file says without its passphrase, and whether it is encrypted; ConfigError as in `load_key`."""
    content = keyfiles.read_secret(path, "key file")
    if keystore.is_sealed(content):
        return keystore.sealed_public(content, f"key file {path}"), True
    return _from_hex(content.strip(), f"key file {path}").public, False


def parse_hex_key(text: bytes) -> AccountKey:
    """Read a key of 64 hexadecimal digits; ConfigError, which shows none of them, when it is none."""
    return _from_hex(text, "what was given")


def _from_hex(text: bytes, where: str) -> AccountKey:
    error = ConfigError(f"{where} does not hold a key", "a key is 64 hexadecimal digits and nothing else")
    if len(text) != 2 * _KEY_BYTES:
        raise error
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise error from None
    return AccountKey.from_bytes(secret)


def check_curve() -> None:
    """ConfigError when the installed OpenSSL cannot sign deterministically on secp256k1."""
    try:
        AccountKey.from_bytes(b"\x01" * _KEY_BYTES).sign(b"")
    except UnsupportedAlgorithm as error:
        raise ConfigError(f"this OpenSSL cannot sign: {error}", "use a `cryptography` wheel from PyPI") from error
