"""Which runs the operator agreed to: manifests in the data directory, put there by `gonka-trainer join`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gonka_trainer.errors import StorageError
from gonka_trainer.manifest import Manifest, manifest_hash, parse_manifest
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.types import Digest


@dataclass(frozen=True)
class Accepted:
    """An agreed run: the manifest's document, what it says, and its hash."""

    document: bytes
    manifest: Manifest
    hash: Digest


def accept(document: bytes, where: str) -> Accepted:
    """Read a manifest's document; ConfigError when it is none."""
    return Accepted(document, parse_manifest(document, where), manifest_hash(document))


class AcceptedRuns:
    """The folder of agreed manifests, and the marks of runs that the operator left."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "accepted"

    def add(self, run: Accepted) -> None:
        """Agree to a run (again)."""
        self._make()
        write_atomic(self._document(run.hash), run.document)
        self._left(run.hash).unlink(missing_ok=True)

    def agree(self, run: Digest) -> None:
        """Agree to a run whose manifest is not here yet: the daemon gets it."""
        self._make()
        write_atomic(self._folder / f"{run.hex()}.wanted", b"")
        self._left(run).unlink(missing_ok=True)

    def hashes(self) -> frozenset[Digest]:
        """Return the hashes of all agreed runs that were not left, with or without their manifests."""
        names = {path.name.split(".")[0] for path in self._folder.glob("*.*")} if self._folder.exists() else set()
        found = (Digest(bytes.fromhex(name)) for name in names if len(name) == 64)
        return frozenset(run for run in found if not self.has_left(run))

    def leave(self, run: Digest) -> None:
        """Mark a run as left: the daemon joins it no more."""
        self._make()
        write_atomic(self._left(run), b"")

    def has_left(self, run: Digest) -> bool:
        """Whether the operator left the run."""
        return self._left(run).exists()

    def _make(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error.strerror}", "name a data_dir that can be written") from error

    def get(self, run: Digest) -> Accepted | None:
        """Return an agreed run by its hash."""
        path = self._document(run)
        return accept(path.read_bytes(), str(path)) if path.exists() else None

    def all(self) -> tuple[Accepted, ...]:
        """Return all agreed runs, those with the lowest start height first."""
        paths = sorted(self._folder.glob("*.json")) if self._folder.exists() else []
        runs = [accept(path.read_bytes(), str(path)) for path in paths]
        return tuple(sorted(runs, key=lambda run: (run.manifest.start_height, run.hash)))

    def _document(self, run: Digest) -> Path:
        return self._folder / f"{run.hex()}.json"

    def _left(self, run: Digest) -> Path:
        return self._folder / f"{run.hex()}.left"
