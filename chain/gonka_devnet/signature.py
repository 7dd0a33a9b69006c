"""secp256k1 signatures as the chain takes them: 64 bytes, r and s, s in the lower half."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
REMEMBERED = 20_000


def _ripemd160(data: bytes) -> bytes:
    try:
        return hashlib.new("ripemd160", data).digest()
    except ValueError:  # an OpenSSL without its old digests
        from cosmpy.crypto.hashfuncs import ripemd160

        return bytes(ripemd160(data))


@lru_cache(maxsize=4096)
def address_bytes(key: bytes) -> bytes:
    """Return the account bytes of a compressed public key: RIPEMD-160 of SHA-256."""
    return _ripemd160(hashlib.sha256(key).digest())


@lru_cache(maxsize=4096)
def _load(key: bytes) -> ec.EllipticCurvePublicKey | None:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), key)
    except ValueError:
        return None


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the signature is the key's over the message's SHA-256."""
    public = _load(key)
    if public is None or len(key) != 33 or len(signature) != 64:
        return False
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if not 0 < r < ORDER or not 0 < s <= ORDER // 2:
        return False
    try:
        public.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


class Verifier:
    """Verifies, and remembers what was good, so that a block need not check again what CheckTx did."""

    def __init__(self) -> None:
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def verify(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Return whether the signature is the key's over the message."""
        token = hashlib.sha256(key + signature + message).digest()
        if token in self._good:
            return True
        if not verify(key, message, signature):
            return False
        self._good[token] = None
        if len(self._good) > REMEMBERED:
            self._good.popitem(last=False)
        return True
