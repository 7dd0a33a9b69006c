"""The chain's clock: the system's, with what tests add to it."""

from __future__ import annotations

import time


class Clock:
    """Nanoseconds since 1970. `skipped_ns` grows when blocks are made faster than their times say."""

    def __init__(self) -> None:
        self.offset_ns = 0
        self.skipped_ns = 0

    def now_ns(self) -> int:
        """Return the chain's time now."""
        return time.time_ns() + self.offset_ns + self.skipped_ns

    def skip_to(self, moment_ns: int) -> None:
        """Go on from a moment that is still to come; the past is left alone."""
        self.skipped_ns += max(moment_ns - self.now_ns(), 0)
