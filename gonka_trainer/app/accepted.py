"""Which runs this host is in: agreed to by `gonka-trainer join`, or taken from a requester on the operator's list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gonka_trainer.errors import StorageError
from gonka_trainer.manifest import Manifest, manifest_hash, parse_manifest
from gonka_trainer.ports import FoundRun
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.types import Address, Digest, Height


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
    """The folder of manifests, with the marks of runs that the operator left, and of runs taken from a requester.

    A taken run has what was found of it in HASH.from: the list is asked about it again at every start.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "accepted"

    def add(self, run: Accepted) -> None:
        """Agree to a run (again)."""
        self._make()
        write_atomic(self._document(run.hash), run.document)
        self._agree(run.hash)

    def take(self, run: Accepted, found: FoundRun) -> None:
        """Keep a run that was found for its requester's sake; the list is asked again at every start."""
        self._make()
        write_atomic(self._origin(run.hash), _render(found))
        write_atomic(self._document(run.hash), run.document)

    def agree(self, run: Digest) -> None:
        """Agree to a run whose manifest is not here yet: the daemon gets it."""
        self._make()
        write_atomic(self._folder / f"{run.hex()}.wanted", b"")
        self._agree(run)

    def _agree(self, run: Digest) -> None:
        self._origin(run).unlink(missing_ok=True)
        self._left(run).unlink(missing_ok=True)

    def hashes(self) -> frozenset[Digest]:
        """Return the hashes of all runs agreed to and not left, with or without their manifests."""
        return frozenset(run for run in self._known() if not self.has_left(run) and not self._origin(run).exists())

    def taken(self) -> tuple[FoundRun, ...]:
        """Return the runs that were taken from a requester and not left since, as they were found."""
        return tuple(
            _parse(run, self._origin(run).read_bytes())
            for run in sorted(self._known())
            if self._origin(run).exists() and not self.has_left(run)
        )

    def _known(self) -> set[Digest]:
        names = {path.name.split(".")[0] for path in self._folder.glob("*.*")} if self._folder.exists() else set()
        return {Digest(bytes.fromhex(name)) for name in names if len(name) == 64}

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

    def _origin(self, run: Digest) -> Path:
        return self._folder / f"{run.hex()}.from"


def _render(found: FoundRun) -> bytes:
    named = None if found.named is None else sorted(each.hex() for each in found.named)
    values = {
        "url": found.url,
        "author": found.author.hex(),
        "height": found.height,
        "task_id": found.task_id,
        "named": named,
    }
    return json.dumps(values).encode() + b"\n"


def _parse(run: Digest, data: bytes) -> FoundRun:
    """Read what `_render` wrote: the file is this host's own."""
    values = json.loads(data)
    named = values["named"]
    return FoundRun(
        manifest_hash=run,
        url=values["url"],
        author=Address(bytes.fromhex(values["author"])),
        height=Height(values["height"]),
        task_id=values["task_id"],
        named=None if named is None else frozenset(Address(bytes.fromhex(each)) for each in named),
    )
