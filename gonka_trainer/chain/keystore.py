"""An account key under a passphrase: scrypt (RFC 7914) and ChaCha20-Poly1305 (RFC 8439), as a JSON document.

    {"format": "gonka-trainer-key/1", "address": HEX, "public_key": HEX, "kdf": {"name": "scrypt", "n": 131072, "r": 8,
     "p": 1, "salt": BASE64}, "cipher": {"name": "chacha20-poly1305", "nonce": BASE64}, "ciphertext": BASE64}

The plaintext is the secret's 32 big-endian bytes; the public key is compressed, 33 bytes. Everything but the ciphertext
is its associated data (as JSON with sorted keys and no blanks), so that neither address nor parameters can be changed.
Pure, but for fresh random bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import unicodedata
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from gonka_trainer.errors import ConfigError
from gonka_trainer.types import ADDRESS_BYTES, Address

FORMAT: Final = "gonka-trainer-key/1"
MAX_KEYSTORE_BYTES: Final = 4096
MIN_PASSPHRASE_LETTERS: Final = 8
_SECRET_BYTES: Final = 32
_PUBLIC_BYTES: Final = 33
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_REMEDY: Final = "restore the file from a backup, or import the key again (`gonka-trainer keys import`)"


@dataclass(frozen=True, slots=True)
class Cost:
    """What scrypt takes: 128 * n * r bytes of memory, p times. The default is 128 MiB and about half a second."""

    n: int = 1 << 17
    r: int = 8
    p: int = 1

    @property
    def bearable(self) -> bool:
        """Whether a file may ask for this: not so little that guessing is cheap, not so much that reading hurts."""
        sizes = 1 << 14 <= self.n <= 1 << 20 and self.n & (self.n - 1) == 0 and 1 <= self.r <= 32 and 1 <= self.p <= 4
        return sizes and 1 << 17 <= self.n * self.r <= 1 << 21


DEFAULT_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class Public:
    """What everybody may know of a key: its account's address and the compressed public key (33 bytes)."""

    address: Address
    key: bytes


class WrongPassphraseError(ConfigError):
    """The passphrase does not open the file."""


def passphrase_bytes(text: str) -> bytes:
    """Return what scrypt is given for a passphrase: UTF-8 of its compatibility form (NFKD), as BIP-39 does."""
    return unicodedata.normalize("NFKD", text).encode()


def seal(secret: bytes, public: Public, passphrase: bytes, cost: Cost = DEFAULT_COST) -> bytes:
    """Return the document that holds the secret (32 bytes) of these under the passphrase."""
    salt, nonce = secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(_NONCE_BYTES)
    head: dict[str, Any] = {
        "format": FORMAT,
        "address": public.address.hex(),
        "public_key": public.key.hex(),
        "kdf": {"name": "scrypt", "n": cost.n, "r": cost.r, "p": cost.p, "salt": _text(salt)},
        "cipher": {"name": "chacha20-poly1305", "nonce": _text(nonce)},
    }
    cipher = ChaCha20Poly1305(_derive(passphrase, salt, cost))
    sealed = cipher.encrypt(nonce, secret, _associated(head))
    return json.dumps({**head, "ciphertext": _text(sealed)}, indent=1).encode() + b"\n"


def open_sealed(document: bytes, passphrase: bytes, where: str) -> tuple[bytes, Public]:
    """Return the secret and what the document says in clear.

    ConfigError for a document that is not of this format or asks for too much; WrongPassphraseError when the
    passphrase does not open it (or the file was changed: the two cannot be told apart).
    """
    head, kdf, cipher = _read(document, where)
    cost = Cost(*(kdf[name] for name in ("n", "r", "p")))
    salt = _bytes(kdf["salt"], _SALT_BYTES, where)
    nonce = _bytes(cipher["nonce"], _NONCE_BYTES, where)
    sealed = _bytes(head.pop("ciphertext"), _SECRET_BYTES + _TAG_BYTES, where)
    key = _derive(passphrase, salt, cost)
    try:
        secret = ChaCha20Poly1305(key).decrypt(nonce, sealed, _associated(head))
    except InvalidTag:
        raise WrongPassphraseError(
            f"{where}: the passphrase is wrong (or the file was changed)", "give the passphrase it was encrypted with"
        ) from None
    return secret, _public(head)


def sealed_public(document: bytes, where: str) -> Public:
    """Return what the document says in clear, without opening it; ConfigError as in `open_sealed`."""
    return _public(_read(document, where)[0])


def is_sealed(content: bytes) -> bool:
    """Whether a key file's content is meant to be such a document."""
    return content.lstrip().startswith(b"{")


def _derive(passphrase: bytes, salt: bytes, cost: Cost) -> bytes:
    return Scrypt(salt=salt, length=32, n=cost.n, r=cost.r, p=cost.p).derive(passphrase)


def _associated(head: dict[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True, separators=(",", ":")).encode()


def _read(document: bytes, where: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the checked document, its kdf and its cipher."""
    head = _object(_parse(document, where), {"format", "address", "public_key", "kdf", "cipher", "ciphertext"}, where)
    if head["format"] != FORMAT:
        raise ConfigError(f"{where}: a key file of another format than {FORMAT}", "use the version that wrote it")
    kdf = _object(head["kdf"], {"name", "n", "r", "p", "salt"}, where)
    cipher = _object(head["cipher"], {"name", "nonce"}, where)
    if (kdf["name"], cipher["name"]) != ("scrypt", "chacha20-poly1305"):
        raise ConfigError(f"{where}: a key file with another kdf or cipher", "use the version that wrote it")
    numbers = [kdf[name] for name in ("n", "r", "p")]
    if any(type(number) is not int for number in numbers) or not Cost(*numbers).bearable:
        raise ConfigError(f"{where}: scrypt parameters out of bounds", _REMEDY)
    if not (_is_hex(head["address"], ADDRESS_BYTES) and _is_hex(head["public_key"], _PUBLIC_BYTES)):
        raise ConfigError(f"{where}: the address or the public key is not in lower-case hex", _REMEDY)
    return head, kdf, cipher


def _parse(document: bytes, where: str) -> object:
    try:
        return json.loads(document, object_pairs_hook=_unique) if len(document) <= MAX_KEYSTORE_BYTES else None
    except (ValueError, RecursionError):  # the error would quote the file
        raise ConfigError(f"{where}: not a key file: no JSON", _REMEDY) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _object(value: object, names: set[str], where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != names:
        raise ConfigError(f"{where}: not a key file: other fields than {FORMAT} has", _REMEDY)
    return value


def _public(head: dict[str, Any]) -> Public:
    return Public(Address(bytes.fromhex(head["address"])), bytes.fromhex(head["public_key"]))


def _is_hex(value: object, size: int) -> bool:
    digits = isinstance(value, str) and all(c in "0123456789abcdef" for c in value)
    return digits and len(str(value)) == 2 * size


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(value: object, size: int, where: str) -> bytes:
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (ValueError, binascii.Error):
        data = b""
    if len(data) != size or _text(data) != value:
        raise ConfigError(f"{where}: not a key file: salt, nonce or ciphertext is not {size} bytes in base64", _REMEDY)
    return data
