"""The result so far of a round whose training was interrupted: what is committed if the GPUs stay away."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gonka_trainer.errors import DecodeError
from gonka_trainer.jobs import Done, decode_line, encode_line
from gonka_trainer.ports import Trained
from gonka_trainer.storage.files import storage_error, sync_directory, write_atomic


class UnfinishedRound:
    """At most one round's, in a folder that exists: `unfinished.f32`, and `unfinished.json` that vouches for it."""

    def __init__(self, folder: Path) -> None:
        self._values = folder / "unfinished.f32"
        self._facts = folder / "unfinished.json"

    def keep(self, trained: Trained, base_root: str) -> Trained:
        """Take the result in hand, in place of any other, and return it with the file where it now is."""
        done = replace(trained.done, output=str(self._values))
        facts: dict[str, Any] = {"base_root": base_root, "hardware": trained.hardware}
        facts["done"] = encode_line(done).decode()
        try:
            self._facts.unlink(missing_ok=True)  # first: it must never vouch for another's values
            Path(trained.done.output).replace(self._values)
            sync_directory(self._values.parent)
            facts["size_bytes"] = self._values.stat().st_size
        except OSError as error:
            raise storage_error(error, self._values, 0) from error
        write_atomic(self._facts, json.dumps(facts).encode())
        return Trained(done, trained.hardware)

    def of(self, round_number: int, base_root: str) -> Trained | None:
        """Return what is kept of the round from this base; what cannot be read is not there."""
        try:
            facts: Any = json.loads(self._facts.read_bytes())
            done = decode_line(facts["done"].encode())
            here = self._values.stat().st_size == facts["size_bytes"]
            match = facts["base_root"] == base_root and isinstance(done, Done) and done.round == round_number
            return Trained(done, str(facts["hardware"])) if here and match and isinstance(done, Done) else None
        except (OSError, ValueError, DecodeError, KeyError, TypeError, AttributeError):
            return None

    def clear(self) -> None:
        """Forget it."""
        for path in (self._facts, self._values):
            path.unlink(missing_ok=True)
