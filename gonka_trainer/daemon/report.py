"""What the host tells people: a status file, one line a round, one line a transaction, and the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gonka_trainer import jobs
from gonka_trainer.daemon.roots import late_roots, other_roots
from gonka_trainer.ports import Block
from gonka_trainer.round import events
from gonka_trainer.round.records import PlacedRecord
from gonka_trainer.round.state import CoreState
from gonka_trainer.round.summary import Note, RoundSummary
from gonka_trainer.types import Address, sha256

_LOG: Final = logging.getLogger(__name__)
_NOTABLE_CLIP: Final = 0.5  # honest updates differ in length, but hardly by a factor of two


class Reporter:
    """Writes `status.json`, `rounds.jsonl` and `transactions.jsonl` in the run's folder. `name` renders addresses.

    Nothing here decides anything, and a report that is lost in a crash is not missed: the journal has the facts.
    """

    def __init__(self, folder: Path, name: Callable[[Address], str], host: str, run: str, key: Address) -> None:
        self._folder = folder
        self._name = name
        self._keys = {key}
        self._status: dict[str, Any] = {"host": host, "run": run, "transactions": 0, "got_bytes": 0}
        self._own: dict[int, dict[str, Any]] = {}
        self._replaying = True
        self.tell: Callable[[str, Mapping[str, Any]], None] = _unheard
        """Called with what happens, by kind and details, for those who read along (control.proto, Event)."""

    @property
    def status(self) -> Mapping[str, Any]:
        """What `status.json` says now."""
        return self._status

    def also(self, key: Address) -> None:
        """Count this key's records as this host's own, too."""
        self._keys.add(key)

    def live(self) -> None:
        """The journal is replayed: from now on steps are news."""
        self._replaying = False
        self._write_status()

    def stepped(self, former: CoreState, state: CoreState, event: events.Event) -> None:
        """Take note of a step of the core."""
        if self._replaying:
            return
        self._say(logging.INFO, state.notes)
        if (former.round, former.phase) != (state.round, state.phase):
            _LOG.info("round %d: %s at block %d", state.round, state.phase, state.height)
            self.tell("phase", {"round": state.round, "phase": str(state.phase), "height": state.height})
        if state.last is not None and state.last != former.last:
            self._round_ended(state.last)
        if isinstance(event, events.BlockSeen):
            self._say(logging.WARNING, late_roots(former.last, former.membership, event.height, event.records))
            self.update(height=state.height, phase=str(state.phase), round=state.round)

    def update(self, **values: Any) -> None:
        """Change some of the status and write it."""
        self._status.update(values)
        self._write_status()

    def count(self, **amounts: int) -> None:
        """Add to counters of the status."""
        self.update(**{name: self._status.get(name, 0) + amount for name, amount in amounts.items()})

    def progress(self, made: jobs.Progress) -> None:
        """One inner step was made."""
        self.update(training_round=made.round, inner_step=made.inner_step, loss=made.loss)

    def own(self, round_number: int, **facts: Any) -> None:
        """Keep facts of this host's own part in a round for the round's line."""
        self._own.setdefault(round_number, {}).update(facts)

    def block(self, block: Block, records: Sequence[PlacedRecord]) -> None:
        """Take note of this host's own records in a block that was read."""
        for placed in records:
            if placed.author not in self._keys:
                continue
            transaction = block.transactions[placed.transaction]
            kind, round_number = type(placed.record).__name__, getattr(placed.record, "round", None)
            tx_hash = sha256(transaction).hex().upper()
            line = {"record": kind, "round": round_number, "hash": tx_hash, "height": block.height}
            self._append("transactions.jsonl", {**line, "bytes": len(transaction)})
            self.tell("transaction", line)
            self.count(transactions=1)
            what = kind if round_number is None else f"{kind} of round {round_number}"
            _LOG.info("%s is in block %d: %s", what, block.height, tx_hash)

    def clipped(self, round_number: int, clips: Mapping[Address, float]) -> None:
        """Some included updates were made smaller by these factors: name those that stand out."""
        for participant, factor in clips.items():
            if factor < _NOTABLE_CLIP:
                text = "round %d: the update of %s is %.1f times as long as the median: clipped to it"
                _LOG.warning(text, round_number, self._name(participant), 1 / factor if factor else float("inf"))

    def evaluated(self, label: str, loss: float) -> None:
        """The outer model of a state was evaluated on the held-out split."""
        self._append("evaluations.jsonl", {"label": label, "loss": loss})
        self.update(validation_loss=loss)
        _LOG.info("validation loss of %s: %.4f nats a token", label, loss)

    def _say(self, level: int, notes: Iterable[Note]) -> None:
        for note in notes:
            author = "" if note.author is None else f"{self._name(note.author)}: "
            _LOG.log(level, "block %d: %s%s", note.height, author, note.text)

    def _round_ended(self, summary: RoundSummary) -> None:
        _LOG.info("round %d is %s: %s", summary.round, summary.outcome, summary.reason or f"{len(summary.included)} in")
        self._say(logging.WARNING, other_roots(summary))
        own = self._own.pop(summary.round, {})
        self._append("rounds.jsonl", {**summary_document(summary, self._name), "own": own})
        if summary.root is None:
            self.tell("round_void", {"round": summary.round, "reason": summary.reason})
        else:
            facts = {"round": summary.round, "root": summary.root.hex(), "included": len(summary.included)}
            self.tell("round_final", facts)

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        try:
            with (self._folder / name).open("a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            _LOG.warning("%s cannot be written: %s", self._folder / name, error.strerror)

    def _write_status(self) -> None:
        if self._replaying:
            return
        temporary = self._folder / "status.json.new"
        try:
            temporary.write_text(json.dumps(self._status))
            temporary.replace(self._folder / "status.json")
        except OSError as error:
            _LOG.warning("%s cannot be written: %s", temporary, error.strerror)


def _unheard(_kind: str, _details: Mapping[str, Any]) -> None:
    """Nobody reads along."""


def summary_document(summary: RoundSummary, name: Callable[[Address], str]) -> dict[str, Any]:
    """Return a round's summary as plain JSON values."""
    return {
        "round": summary.round,
        "outcome": str(summary.outcome),
        "reason": summary.reason,
        "heights": {
            "opened": summary.opened,
            "deadline": summary.deadline,
            "closed": summary.closed,
            "frozen": summary.frozen,
            "ended": summary.ended,
        },
        "base_root": summary.base_root.hex(),
        "root": None if summary.root is None else summary.root.hex(),
        "roster": [{"participant": name(s.participant), "weight": s.weight, "voice": s.voice} for s in summary.roster],
        "commitments": {name(who): {"commitment": c.hex(), "height": height} for who, c, height in summary.commitments},
        "attestations": {name(who): [name(author) for author in held] for who, held in summary.attestations},
        "included": [name(who) for who in summary.included],
        "states": {
            name(post.participant): {
                "root": post.root.hex(),
                "environment": post.environment.hex(),
                "roster": post.roster.hex(),
                "height": post.height,
            }
            for post in summary.posts
        },
    }
