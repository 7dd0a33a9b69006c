"""Times as a chain node writes them."""

from __future__ import annotations

from datetime import UTC, datetime

BILLION = 10**9
# The years 1 and 9999, which is what a Timestamp can hold.
EARLIEST_SECONDS, LATEST_SECONDS = -62_135_596_800, 253_402_300_799


def _split(time_ns: int) -> tuple[datetime, str]:
    seconds, nanos = divmod(time_ns, BILLION)
    seconds = min(max(seconds, EARLIEST_SECONDS), LATEST_SECONDS)
    return datetime.fromtimestamp(seconds, UTC), f".{nanos:09}".rstrip("0").rstrip(".")


def go_time(time_ns: int) -> str:
    """Return the time as Go's String does: 2026-11-30 15:08:12.5 +0000 UTC."""
    moment, fraction = _split(time_ns)
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"


def rfc3339_nano(time_ns: int) -> str:
    """Return the time with the nanoseconds that it has: 2026-11-30T15:08:12.5Z."""
    moment, fraction = _split(time_ns)
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def rfc3339(time_ns: int) -> str:
    """Return the time in whole seconds: 2026-11-30T15:08:12Z."""
    return f"{_split(time_ns)[0]:%Y-%m-%dT%H:%M:%S}Z"
