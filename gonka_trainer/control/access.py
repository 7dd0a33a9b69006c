"""Who may call over TCP: those with a certificate of the operator's authority, those with the token, or both."""

from __future__ import annotations

import hmac
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from gonka_trainer.errors import ConfigError

_CREDENTIAL: Final = "credential:"
_LEAST_TOKEN_BYTES: Final = 16
_SCHEME: Final = "Bearer "


@dataclass(frozen=True)
class TcpSettings:
    """Where TCP listens (`host:port`), and the names of the files that say who may call; empty names are not asked."""

    bind: str
    token_file: str = ""
    certificate: str = ""
    key: str = ""
    client_ca: str = ""


@dataclass(frozen=True, repr=False)
class Access:
    """What TCP asks of a caller: `token` (empty: none) and the server's TLS credentials (None: plain text)."""

    token: str
    tls: grpc.ServerCredentials | None


def load_access(settings: TcpSettings) -> Access:
    """Read the files that the settings name; ConfigError says which one cannot be used."""
    token = _read_token(settings.token_file) if settings.token_file else ""
    if not settings.certificate:
        if not token:
            raise ConfigError("control.bind needs a token or TLS", "set control.token_file, or the three TLS files")
        return Access(token, None)
    key = _secret(settings.key, "control.tls_key")
    certificate = _file(settings.certificate, "control.tls_certificate")
    authority = _file(settings.client_ca, "control.tls_client_ca")
    return Access(token, grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True))


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Refuses every call, of any service, that does not show the token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Pass the call on, or answer UNAUTHENTICATED before its request is read."""
        shown = [value for key, value in details.invocation_metadata or () if key == "authorization"]
        if len(shown) == 1 and hmac.compare_digest(_bytes(shown[0]), _SCHEME.encode() + self._token):
            return await continuation(details)
        return grpc.stream_stream_rpc_method_handler(_refuse)


async def _refuse(_requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> None:
    text = "the token is missing or wrong -> send the metadata `authorization: Bearer TOKEN` of control.token_file"
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _read_token(name: str) -> str:
    text = _secret(name, "control.token_file").decode("ascii", "replace").strip()
    if len(text) < _LEAST_TOKEN_BYTES or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            f"control.token_file: {name}: not one word of {_LEAST_TOKEN_BYTES} or more ASCII characters",
            "`openssl rand -hex 32` makes a good one",
        )
    return text


def _secret(name: str, key: str) -> bytes:
    """Read a file that nobody else may read; `credential:NAME` is systemd's, which systemd protects."""
    path = Path(name)
    if name.startswith(_CREDENTIAL):
        path = Path(os.environ.get("CREDENTIALS_DIRECTORY", "")) / name.removeprefix(_CREDENTIAL)
    elif path.exists() and path.stat().st_mode & 0o077:
        raise ConfigError(f"{key}: {path}: others can read it", f"chmod 600 {path}")
    return _file(str(path), key)


def _file(name: str, key: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"{key}: {name}: {error.strerror}", "name a file that this user can read") from error
