"""An https server on this machine with a certificate of its own authority, that remembers what it was asked for."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ADDRESS = "127.0.0.1"


@dataclass
class HttpsServer:
    """`files`: path -> body; a body that is text is a redirection to it. `asked` has the paths in order."""

    authority: Path
    url: str = ""
    files: dict[str, bytes | str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        body = self.files.get(request.path)
        if body is None:
            return web.Response(status=404)
        if isinstance(body, str):
            return web.Response(status=302, headers={"Location": body})
        return web.Response(body=body)


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for this machine, which is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's authority")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(ADDRESS))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    where = folder / "authority.pem", folder / "server.key"
    where[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    where[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return where


@asynccontextmanager
async def https_server(folder: Path) -> AsyncIterator[HttpsServer]:
    """Serve until the end of the block. Who is to trust it has SSL_CERT_FILE set to `authority`."""
    certificate, key = write_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HttpsServer(certificate)
    runner = web.ServerRunner(web.Server(server.answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, ADDRESS, 0, ssl_context=context).start()
        port = runner.addresses[0][1]
        server.url = f"https://{ADDRESS}:{port}"
        yield server
    finally:
        await runner.cleanup()
