"""Being shown a server's certificate, to pin it: a plain TLS handshake whose only outcome is the certificate."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding

from gonka_trainer.exchange.identity import MAX_CERTIFICATE_BYTES, SERVER_NAME, spki_digest
from gonka_trainer.ports import Endpoint
from gonka_trainer.types import Fault, Verdict

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*\.?")


def target(endpoint: Endpoint) -> str | Verdict:
    """Return the gRPC target, with its scheme: so that a host from a record is never read as a scheme of its own."""
    if not 0 < endpoint.port < 1 << 16:
        return Verdict(Fault.PROTOCOL, f"port {endpoint.port}")
    try:
        address = ipaddress.ip_address(endpoint.host)
    except ValueError:
        if not _HOST_NAME.fullmatch(endpoint.host):
            return Verdict(Fault.PROTOCOL, f"host {endpoint.host!r} is neither a name nor an address")
        return f"dns:///{endpoint.host}:{endpoint.port}"
    return f"ipv4:{address}:{endpoint.port}" if address.version == 4 else f"ipv6:[{address}]:{endpoint.port}"


async def server_certificate(endpoint: Endpoint, seconds: float) -> bytes | Verdict:
    """Return the server's certificate in PEM, when its key is the endpoint's; nothing is sent to the server.

    UNREACHABLE: no answer or no TLS. PROTOCOL: another key than the join record's.
    """
    try:
        async with asyncio.timeout(seconds):
            shown = await _handshake(endpoint.host, endpoint.port)
    except (OSError, ValueError) as error:
        return Verdict(Fault.UNREACHABLE, f"{endpoint.host}:{endpoint.port}: {type(error).__name__}: {error}")
    return _checked(shown, endpoint)


async def _handshake(host: str, port: int) -> bytes:
    # TLS 1.3: the server's certificate is here before the server misses ours.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=SERVER_NAME)
    try:
        return writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
    finally:
        writer.transport.abort()


def _checked(shown: bytes, endpoint: Endpoint) -> bytes | Verdict:
    try:
        certificate = x509.load_der_x509_certificate(shown[:MAX_CERTIFICATE_BYTES])
        digest = spki_digest(certificate)
    except (ValueError, UnsupportedAlgorithm) as error:
        return Verdict(Fault.PROTOCOL, f"a certificate that cannot be used: {error}")
    if digest != endpoint.spki:
        return Verdict(Fault.PROTOCOL, f"the key {digest.hex()} is not that of the join record, {endpoint.spki.hex()}")
    return certificate.public_bytes(Encoding.PEM)
