"""Account keys: secp256k1, kept in a file that only its owner can read; never in logs, arguments or tracebacks."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

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

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature r || s of SHA-256 of the message: RFC 6979, s in the lower half.

        Chains refuse a high s.
        """
        der = self._secret.sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        return r.to_bytes(32, "big") + min(s, _ORDER - s).to_bytes(32, "big")

    def __repr__(self) -> str:
        return f"AccountKey(address={self.address.hex()})"

    def __reduce__(self) -> str:
        raise TypeError("an account key is not to be copied or serialised")


def create_key(path: Path) -> AccountKey:
    """Make a new key and write it, as hex, to a new file of mode 0600; ConfigError when the file exists."""
    secret = ec.generate_private_key(ec.SECP256K1())
    number = secret.private_numbers().private_value
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already", "name another file; a key is never overwritten") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", "name a file in a writable folder") from error
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{number:064x}\n")
        file.flush()
        os.fsync(file.fileno())
    return AccountKey(secret)


def load_key(path: Path) -> AccountKey:
    """Read a key file; ConfigError when it is missing, readable by others, or holds anything but 64 hex digits."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(2 * _KEY_BYTES + 3)
    except OSError as error:
        raise ConfigError(f"key file {path}: {error.strerror}", "name an existing key file, or create one") from error
    if mode & 0o077:
        raise ConfigError(f"key file {path} can be read by others (mode {mode:04o})", f"chmod 600 {path}")
    return _from_hex(path, text.strip())


def _from_hex(path: Path, text: bytes) -> AccountKey:
    remedy = "the file holds one key as 64 hexadecimal digits and nothing else"
    if len(text) != 2 * _KEY_BYTES:
        raise ConfigError(f"key file {path} does not hold a key", remedy)
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise ConfigError(f"key file {path} does not hold a key", remedy) from None
    return AccountKey.from_bytes(secret)


def check_curve() -> None:
    """ConfigError when the installed OpenSSL cannot sign deterministically on secp256k1."""
    try:
        AccountKey.from_bytes(b"\x01" * _KEY_BYTES).sign(b"")
    except UnsupportedAlgorithm as error:
        raise ConfigError(f"this OpenSSL cannot sign: {error}", "use a `cryptography` wheel from PyPI") from error
