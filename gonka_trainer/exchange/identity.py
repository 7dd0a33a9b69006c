"""A daemon's TLS identity, and how two daemons that know only each other's SPKI digest trust a connection.

Decision. The key is the identity: a join record carries the SHA-256 of its SubjectPublicKeyInfo, 32 bytes, and not the
certificate. grpc-python, however, has no certificate verifier of one's own: each side must be given the roots it trusts
as PEM before the handshake, and a server can either not ask for a client's certificate or verify it against its roots.

* Dialling. The client first makes a plain TLS 1.3 handshake without verification (`pin.server_certificate`), only to be
  shown the server's self-signed certificate; it compares the SPKI digest with the record's and closes. It then opens
  the gRPC channel with that certificate as the only root. The handshake proves that the server has the key; whoever
  shows another's certificate in the first step fails in the second.
* Serving. The client shows a second certificate of the same key, signed by the *introducer*, a key that everybody has:
  it is computed from a public string. Servers have the introducer's certificate as their only root. Its signature
  proves nothing and is not meant to; it makes the TLS library accept the certificate, and the handshake then proves
  that the caller has the key in it. Who the caller is, and what it may have, is decided on every call by the SPKI
  digest of that certificate against the run's joins (`ports.Gate`): so a revoked key is refused on a connection that is
  already open, and a new one is known as soon as its join is on chain.

Why not a roster of the members' certificates as the server's roots: the server would have to dial every member (and
could not reach an observer behind NAT) or offer a second, unauthenticated way to bring certificates in, keep up to
1,024 of them, and refuse everybody whose certificate it had not got yet. Strangers can now open a connection, and get
PERMISSION_DENIED on every call before their request is parsed; with an introduction service they could as well.

Both certificates are P-256 (Ed25519 and secp256k1 do not work as TLS keys in grpc-python), have a subject of their own
(the SPKI digest), one fixed SAN, are no authorities, and never expire: nothing here may depend on a host's clock.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import secrets
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from gonka_trainer.errors import StorageError
from gonka_trainer.types import Digest, sha256

SERVER_NAME: Final = "gonka-trainer"
"""The SAN of every certificate: peers are told apart by key, not by name."""

MAX_CERTIFICATE_BYTES: Final = 4096

_INTRODUCER: Final = "gonka-trainer introducer"
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BEGIN: Final = datetime.datetime(2000, 1, 1)
_END: Final = datetime.datetime(9999, 12, 31, 23, 59, 59)  # RFC 5280: no expiry


@dataclass(frozen=True)
class Identity:
    """One daemon's key and its certificates, in PEM: `certificate` is shown when serving, `caller` when dialling."""

    key: bytes
    certificate: bytes
    caller: bytes
    spki: Digest

    def __repr__(self) -> str:
        return f"Identity(spki={self.spki.hex()})"


def load_or_create_identity(path: Path) -> Identity:
    """Return the identity in the PEM file (key, then its self-signed certificate), made at the first start, mode 0600.

    StorageError when the file is not that, can be read by others, or cannot be written.
    """
    try:
        if not path.exists():
            _create(path)
        if path.stat().st_mode & 0o077:
            raise StorageError(f"{path}: others can read the TLS key", f"chmod 600 {path}")
        return _read(path)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", "check the data directory's owner and mode") from error


def next_path(path: Path) -> Path:
    """Return where the identity that is to replace the one at `path` waits until the run knows it."""
    return path.with_name(f"{path.name}.next")


def next_identity(path: Path) -> Identity | None:
    """Return the identity that is to replace the one at `path`, if there is one; StorageError as above."""
    waiting = next_path(path)
    return load_or_create_identity(waiting) if waiting.exists() else None


def promote_identity(path: Path) -> None:
    """Put the waiting identity in the place of the one at `path`, which is gone then; StorageError when it cannot."""
    try:
        next_path(path).replace(path)
        _sync(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", "check the data directory's owner and mode") from error


def new_identity() -> Identity:
    """Return a fresh identity that is nowhere on disk, for somebody who only looks on for a while."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _identity(key, _self_signed(key))


def spki_digest(certificate: x509.Certificate) -> Digest:
    """Return SHA-256 of the certificate's SubjectPublicKeyInfo (DER): what a join record carries."""
    return _key_digest(certificate.public_key())


def spki_of_pem(pem: bytes) -> Digest | None:
    """Return the SPKI digest of a certificate in PEM, or None when it is no certificate with a usable key."""
    return _spki_of_pem(pem) if len(pem) <= MAX_CERTIFICATE_BYTES else None


@lru_cache(maxsize=2048)
def _spki_of_pem(pem: bytes) -> Digest | None:
    try:
        return spki_digest(x509.load_pem_x509_certificate(pem))
    except (ValueError, UnsupportedAlgorithm):
        return None


@lru_cache(maxsize=1)
def introducer_certificate() -> bytes:
    """Return the PEM that servers take as root for callers: its key is public, see above."""
    key = _introducer_key()
    builder = _builder(_INTRODUCER, _INTRODUCER, key, authority=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _introducer_key() -> ec.EllipticCurvePrivateKey:
    number = int.from_bytes(hashlib.sha256(b"gonka-trainer/introducer/1").digest(), "big")
    return ec.derive_private_key(number % (_P256_ORDER - 1) + 1, ec.SECP256R1())


def _identity(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Identity:
    name = _key_digest(key.public_key()).hex()
    caller = _builder(name, _INTRODUCER, key, authority=False).sign(_introducer_key(), hashes.SHA256())
    return Identity(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        certificate.public_bytes(Encoding.PEM),
        caller.public_bytes(Encoding.PEM),
        spki_digest(certificate),
    )


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _key_digest(key.public_key()).hex()
    return _builder(name, name, key, authority=False).sign(key, hashes.SHA256())


def _key_digest(key: object) -> Digest:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("not an elliptic-curve key")
    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _create(path: Path) -> None:
    """Write a new identity; when two processes do so at once, the first one's stands."""
    fresh = new_identity()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(fresh.key + fresh.certificate)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink()
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> Identity:
    data = path.read_bytes()
    remedy = "restore the file, or delete it and join again: the join record then names the new key"
    try:
        key = load_pem_private_key(data, password=None)
        certificate = x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise StorageError(f"{path}: not a key and its certificate in PEM", remedy) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise StorageError(f"{path}: the key is not P-256", remedy)
    if spki_digest(certificate) != _key_digest(key.public_key()):
        raise StorageError(f"{path}: the certificate is of another key", remedy)
    return _identity(key, certificate)
