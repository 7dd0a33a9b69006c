"""The exchange's limits: what either side accepts, and how long it waits. Sizes are part of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PIECE_BYTES: Final = 1 << 20
"""Data in one message: all pieces but a chunk's or index's last have exactly this much."""

CONTROL_BYTES: Final = 64 << 10
"""A request: refused before it is parsed when longer."""

MESSAGE_BYTES: Final = PIECE_BYTES + CONTROL_BYTES
"""An answer's message."""

CHUNK_BYTES: Final = 4 << 20
PREAMBLE_BYTES: Final = 64 << 10
DOCUMENT_BYTES: Final = 1 << 20
CHUNKS_PER_REQUEST: Final = 1024


@dataclass(frozen=True)
class Limits:
    """How much and how long. The defaults suit hosts on the ordinary internet; tests shorten them.

    A chunk or a piece of an index must be there within `transfer_seconds`: 1 MiB in 30 s is a minimum rate of
    35 kB/s for an index, 140 kB/s for chunks of 4 MiB. A client has at most `calls_per_peer` calls on one peer and
    waits with more; a server refuses beyond `streams_per_peer`. `keepalive_seconds` must be of one order on both
    sides: a server takes pings every half of it.

    A server asks its callers to connect anew after `connection_seconds` and closes what is still open
    `connection_grace_seconds` later: the only way in grpc-python to be rid of a caller that does not read. Until then
    its streams count against `streams_per_peer`.
    """

    connect_seconds: float = 15.0
    answer_seconds: float = 30.0
    transfer_seconds: float = 30.0
    calls_per_peer: int = 4
    streams_per_peer: int = 16
    leaf_list_bytes: int = 64 << 20
    keepalive_seconds: float = 60.0
    connection_seconds: float = 3600.0
    connection_grace_seconds: float = 600.0
    grace_seconds: float = 1.0


DEFAULT_LIMITS: Final = Limits()


def channel_options(limits: Limits) -> list[tuple[str, int | str]]:
    """Return the gRPC options that both sides share: message sizes, keep-alive also while nothing is asked."""
    keepalive_ms = int(limits.keepalive_seconds * 1000)
    return [
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", max(keepalive_ms // 2, 5_000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_metadata_size", 16 << 10),
    ]


def server_options(limits: Limits) -> list[tuple[str, int | str]]:
    """Return the server's gRPC options: small requests, one owner of the port, bounded streams on a connection."""
    return [
        *channel_options(limits),
        ("grpc.max_receive_message_length", CONTROL_BYTES),
        ("grpc.max_send_message_length", MESSAGE_BYTES),
        ("grpc.max_concurrent_streams", 4 * limits.streams_per_peer),
        ("grpc.http2.min_ping_interval_without_data_ms", int(limits.keepalive_seconds * 500)),
        ("grpc.max_connection_age_ms", int(limits.connection_seconds * 1000)),
        ("grpc.max_connection_age_grace_ms", int(limits.connection_grace_seconds * 1000)),
        ("grpc.so_reuseport", 0),
    ]


def client_options(limits: Limits, server_name: str) -> list[tuple[str, int | str]]:
    """Return the client's gRPC options: pieces of bounded size, the pinned name, no proxy from the environment."""
    return [
        *channel_options(limits),
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.max_send_message_length", CONTROL_BYTES),
        ("grpc.ssl_target_name_override", server_name),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
