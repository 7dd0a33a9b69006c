"""Whether worker.data is the corpus that a run's manifest pins: asked before the run starts, not when it trains."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from gonka_trainer.manifest import DataSpec


class Corpus:
    """The host's corpus file. Its digest is computed once for each state of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._digest = ""

    async def fault(self, wanted: DataSpec) -> str:
        """Return what is wrong with the file for a run that pins `wanted`, "" when nothing is."""
        try:
            facts = self._path.stat()
            if facts.st_size != wanted.size_bytes:
                return f"worker.data has {facts.st_size} bytes, its manifest pins a corpus of {wanted.size_bytes}"
            seen = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
            if seen != self._seen:
                self._digest = await asyncio.to_thread(_digest, self._path)
                self._seen = seen
        except OSError as error:
            return f"worker.data {self._path}: {error.strerror}"
        if self._digest != wanted.sha256:
            return f"worker.data has SHA-256 {self._digest}, its manifest pins {wanted.sha256}"
        return ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
