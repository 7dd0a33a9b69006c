"""How long the worker took to leave the GPUs, the last times: kept over restarts, for the scheduler's margin."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final

from gonka_trainer.errors import StorageError
from gonka_trainer.storage.files import write_atomic

_LOG: Final = logging.getLogger(__name__)
_KEPT_STOPS: Final = 16


class FileStops:
    """How long the last stops took, in a file; what cannot be read is as good as never measured.

    `bound_seconds` is when the worker is killed; before the first measurement a stop is expected to take that long.
    """

    def __init__(self, path: Path, bound_seconds: float) -> None:
        self._path = path
        self.bound_seconds = bound_seconds

    @property
    def seconds(self) -> float:
        """The longest of those kept; the bound when there is none."""
        return max(self._read(), default=self.bound_seconds)

    def add(self, seconds: float) -> None:
        """Keep one more; the oldest ones go."""
        kept = [*self._read(), round(seconds, 3)][-_KEPT_STOPS:]
        try:
            write_atomic(self._path, json.dumps({"stop_seconds": kept}).encode())
        except StorageError as error:
            _LOG.warning("the measured stop is not kept: %s", error)

    def _read(self) -> list[float]:
        try:
            kept: Any = json.loads(self._path.read_bytes())["stop_seconds"]
            return [float(each) for each in kept if 0 <= float(each) < 1e6]
        except (OSError, ValueError, TypeError, KeyError):
            return []
