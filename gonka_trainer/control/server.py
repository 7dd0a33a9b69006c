"""The control service's listeners: a Unix socket, and TCP when asked for; each with health and reflection."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from gonka_trainer.control.access import TcpSettings, TokenCheck, load_access
from gonka_trainer.control.service import REQUEST_BYTES, SERVICE, ControlService
from gonka_trainer.control.unix_socket import grpc_target, own_socket, remove
from gonka_trainer.errors import ConfigError, StorageError

_LOG: Final = logging.getLogger(__name__)
_GRACE_SECONDS: Final = 1.0
_LOOPBACK: Final = ("127.", "localhost:", "[::1]:")
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    ("grpc.so_reuseport", 0),
)


@asynccontextmanager
async def serve_control(service: ControlService, socket: Path, tcp: TcpSettings | None = None) -> AsyncIterator[int]:
    """Serve while entered and give TCP's port (0: no TCP).

    ConfigError when an address cannot be bound or a file cannot be used, StorageError when another daemon listens at
    the socket.
    """
    async with AsyncExitStack() as stack:
        unix = _server(service, ())
        with own_socket(socket):
            _bind_unix(unix, socket)
        stack.callback(remove, socket)
        await _start(unix, stack)
        _LOG.info("control service at %s", socket)
        port = 0 if tcp is None else await _serve_tcp(service, tcp, stack)
        yield port


async def _serve_tcp(service: ControlService, tcp: TcpSettings, stack: AsyncExitStack) -> int:
    access = load_access(tcp)
    server = _server(service, (TokenCheck(access.token),) if access.token else ())
    try:
        if access.tls is None:
            port = server.add_insecure_port(tcp.bind)
        else:
            port = server.add_secure_port(tcp.bind, access.tls)
    except RuntimeError as error:
        raise _not_bound(tcp.bind) from error
    if not port:
        raise _not_bound(tcp.bind)
    await _start(server, stack)
    if access.tls is None and not tcp.bind.startswith(_LOOPBACK):
        _LOG.warning("control.bind %s without TLS: whoever sees the traffic sees the token", tcp.bind)
    _LOG.info("control service on TCP port %d", port)
    return port


def _server(service: ControlService, interceptors: Sequence[grpc.aio.ServerInterceptor[Any, Any]]) -> grpc.aio.Server:
    server = grpc.aio.server(interceptors=interceptors, options=_OPTIONS, compression=grpc.Compression.NoCompression)
    server.add_generic_rpc_handlers((service.handlers(),))
    return server


async def _start(server: grpc.aio.Server, stack: AsyncExitStack) -> None:
    well = health.aio.HealthServicer()  # type: ignore[attr-defined]  # the stubs are older
    health_pb2_grpc.add_HealthServicer_to_server(well, server)
    names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    for name in (health.OVERALL_HEALTH, SERVICE):
        await well.set(name, health_pb2.HealthCheckResponse.SERVING)
    await server.start()
    stack.push_async_callback(server.stop, _GRACE_SECONDS)
    stack.push_async_callback(well.enter_graceful_shutdown)


def _bind_unix(server: grpc.aio.Server, socket: Path) -> None:
    try:
        server.add_insecure_port(grpc_target(socket))
        socket.chmod(0o600)
    except (RuntimeError, OSError) as error:
        raise StorageError(
            f"control.socket: {socket} cannot be made", "name a path in a folder that can be written"
        ) from error


def _not_bound(bind: str) -> ConfigError:
    return ConfigError(f"control.bind: {bind} cannot be bound", "choose a free address and port")
