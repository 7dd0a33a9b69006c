"""What a run taken from a requester may cost: fees are counted on disk, and above `runs.max_fee` nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gonka_trainer.app.accepted import AcceptedRuns
from gonka_trainer.config import Config
from gonka_trainer.errors import ChainError
from gonka_trainer.ports import Block, Receipt, RunLog
from gonka_trainer.round.records import PlacedRecord, Record
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.types import Digest


class MeteredLog:
    """A run's log that refuses to publish once the run has cost `limit` (in the smallest unit of money).

    The one that crosses the limit still goes out: a transaction's fee is known when it is in a block, and is
    chain.fee_cap at most. One that lands after a crash, before it is counted, is not counted.
    """

    def __init__(self, log: RunLog, path: Path, limit: int) -> None:
        self._log = log
        self._path = path
        self._limit = limit

    def records(self, block: Block) -> tuple[PlacedRecord, ...]:
        """Return the run's records of the block in order."""
        return self._log.records(block)

    async def publish(self, records: Sequence[Record]) -> Receipt:
        """Publish unless the limit is reached; ChainError then."""
        spent = self.spent()
        if spent >= self._limit:
            raise ChainError(
                f"this run has cost {spent} in fees, runs.max_fee is {self._limit}: nothing more is sent",
                "raise runs.max_fee, or leave the run (`gonka-trainer leave HASH`)",
            )
        receipt = await self._log.publish(records)
        write_atomic(self._path, str(self.spent() + receipt.fee).encode())
        return receipt

    def spent(self) -> int:
        """Return what was counted so far."""
        return int(self._path.read_text()) if self._path.exists() else 0


def metered(config: Config, run: Digest, run_id: Digest, log: RunLog) -> RunLog:
    """Return the log, counted where the run (by manifest hash) was taken from a requester and there is a limit."""
    taken = any(each.manifest_hash == run for each in AcceptedRuns(config.data_path).taken())
    if not taken or not config.runs.max_fee:
        return log
    folder = config.data_path / "runs" / run_id.hex()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return MeteredLog(log, folder / "spent", config.runs.max_fee)
