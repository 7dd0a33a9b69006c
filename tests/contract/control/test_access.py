from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from control_world import World, call, refused
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from gonka_trainer.control.access import TcpSettings
from gonka_trainer.errors import ConfigError

TOKEN = "0123456789abcdef0123456789abcdef"
ANY = "127.0.0.1:0"


@dataclass
class Authority:
    """A certificate authority of a test's own."""

    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def issue(self, subject: str) -> tuple[bytes, bytes]:
        """Return key and certificate in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign(subject, self.name, key.public_key(), self.key, authority=False)
        return _pem(key), certificate.public_bytes(Encoding.PEM)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


def authority(name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    return Authority(name, key, _sign(name, name, key.public_key(), key, authority=True))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _sign(
    subject: str,
    issuer: str,
    public: ec.EllipticCurvePublicKey,
    key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(issuer))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2000, 1, 1))
        .not_valid_after(datetime(2100, 1, 1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def secret(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    path.chmod(0o600)
    return str(path)


def token_settings(folder: Path) -> TcpSettings:
    return TcpSettings(ANY, secret(folder / "token", f"{TOKEN}\n".encode()))


def tls_settings(folder: Path, own: Authority, token_file: str = "") -> TcpSettings:
    key, certificate = own.issue("trainer")
    return TcpSettings(
        ANY,
        token_file,
        secret(folder / "server.crt", certificate),
        secret(folder / "server.key", key),
        secret(folder / "ca.crt", own.pem),
    )


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def tls_channel(port: int, own: Authority, key: bytes | None, certificate: bytes | None) -> grpc.aio.Channel:
    credentials = grpc.ssl_channel_credentials(own.pem, key, certificate)
    options = (("grpc.ssl_target_name_override", "trainer"),)
    return grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options)


async def test_the_right_token_opens_tcp(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with (
        world.serving(token_settings(tmp_path)),
        grpc.aio.insecure_channel(f"127.0.0.1:{world.port}") as channel,
    ):
        assert (await call(channel, "Status", metadata=bearer(TOKEN))).standing == "waiting"


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        bearer(""),
        bearer(TOKEN[:-1]),
        bearer(TOKEN + "x"),
        bearer("f" * 32),
        (("authorization", TOKEN),),
        (*bearer(TOKEN), *bearer("f" * 32)),
    ],
)
async def test_a_wrong_token_opens_nothing(tmp_path: Path, metadata: Any) -> None:
    world = World(tmp_path)
    async with (
        world.serving(token_settings(tmp_path)),
        grpc.aio.insecure_channel(f"127.0.0.1:{world.port}") as channel,
    ):
        error = await refused(channel, "Pause", metadata=metadata)
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert TOKEN not in (error.details() or "")
        watch = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        assert await watch(timeout=30).code() is grpc.StatusCode.UNAUTHENTICATED
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await health(health_pb2.HealthCheckRequest().SerializeToString(), timeout=30)
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert not world.gpu.holds


async def test_the_unix_socket_needs_no_token(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.serving(token_settings(tmp_path)), world.channel() as channel:
        assert (await call(channel, "Status")).standing == "waiting"


async def test_mutual_tls_takes_certificates_of_its_authority_alone(tmp_path: Path) -> None:
    own, foreign, world = authority("own"), authority("foreign"), World(tmp_path)
    async with world.serving(tls_settings(tmp_path, own)):
        async with tls_channel(world.port, own, *own.issue("operator")) as channel:
            assert (await call(channel, "Status")).standing == "waiting"
        for key, certificate in ((None, None), foreign.issue("operator")):
            async with tls_channel(world.port, own, key, certificate) as channel:
                error = await refused(channel, "Status")
                assert error.code() is grpc.StatusCode.UNAVAILABLE  # refused in the handshake
        async with grpc.aio.insecure_channel(f"127.0.0.1:{world.port}") as channel:
            assert (await refused(channel, "Status")).code() is grpc.StatusCode.UNAVAILABLE


async def test_tls_and_token_together_need_both(tmp_path: Path) -> None:
    own, world = authority("own"), World(tmp_path)
    token_file = secret(tmp_path / "token", TOKEN.encode())
    async with (
        world.serving(tls_settings(tmp_path, own, token_file)),
        tls_channel(world.port, own, *own.issue("operator")) as channel,
    ):
        assert (await refused(channel, "Status")).code() is grpc.StatusCode.UNAUTHENTICATED
        assert (await call(channel, "Status", metadata=bearer(TOKEN))).standing == "waiting"


@pytest.mark.parametrize(
    ("content", "mode", "text"),
    [
        (TOKEN, 0o640, "others can read it"),
        ("short", 0o600, "16 or more"),
        ("two words in the file", 0o600, "not one word"),
        ("ä" * 20, 0o600, "ASCII"),
        (None, 0o600, "No such file"),
    ],
)
async def test_a_token_that_cannot_be_used_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | None, mode: int, text: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match=text) as raised:
        async with World(tmp_path).serving(TcpSettings(ANY, str(path))):
            pass
    assert "control.token_file" in str(raised.value)
    assert content is None or content not in str(raised.value) + caplog.text


async def test_a_tls_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    settings = tls_settings(tmp_path, authority("own"))
    Path(settings.key).chmod(0o644)
    with pytest.raises(ConfigError, match=r"control\.tls_key.*others can read it"):
        async with World(tmp_path).serving(settings):
            pass


async def test_tcp_without_any_check_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a token or TLS"):
        async with World(tmp_path).serving(TcpSettings(ANY)):
            pass


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    first, second = World(tmp_path), World(tmp_path / "second")
    second.folder.mkdir()
    settings = token_settings(tmp_path)
    async with first.serving(settings):
        taken = f"127.0.0.1:{first.port}"
        with pytest.raises(ConfigError, match=f"control.bind: {taken}"):
            async with second.serving(TcpSettings(taken, settings.token_file)):
                pass
    assert not second.socket.exists()
