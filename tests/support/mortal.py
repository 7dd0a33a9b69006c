"""A host that dies: the real daemon, which kills itself: `python mortal.py --config FILE --at POINT --since N`.

Nothing is cleaned up: it is SIGKILL, at the first time that the point is reached in round N or later.

    train       in the middle of the inner steps
    encoded     the blob is on disk, nothing is journalled
    torn        half of the journal's entry of the update is on disk
    journalled  the commitment is journalled, nothing was sent
    sent        the commit's transaction is in the sent log, and not at the node
    broadcast   the commit's transaction is at the node
    fetching    one chunk of another's blob is on disk
    proved      the attestation is journalled, nothing was sent
    attested    the attestation's transaction is at the node
    applying    the new state is half written
    computed    the new state's root is journalled, nothing was sent
    posted      the state record's transaction is at the node
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from gonka_trainer.app.daemon import run_daemon
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.chain.service import TxService
from gonka_trainer.config_file import load_config
from gonka_trainer.daemon import states
from gonka_trainer.daemon.applying import Applying
from gonka_trainer.daemon.publishing import Publishing
from gonka_trainer.daemon.report import Reporter
from gonka_trainer.daemon.training import Training
from gonka_trainer.round.events import UpdateReady
from gonka_trainer.storage.held import Held
from gonka_trainer.storage.journal import Journal

BEFORE: Final = {"Commit": "journalled", "Attest": "proved", "StateRoot": "computed"}
AFTER: Final = {"Commit": "broadcast", "Attest": "attested", "StateRoot": "posted"}
SENDING: ContextVar[Any] = ContextVar("sending", default=None)
APPLYING: ContextVar[int] = ContextVar("applying", default=-1)
MORTAL: dict[str, Any] = {"at": "", "since": 0}


def reach(point: str, round_number: int) -> None:
    """Die if this is the point."""
    if point == MORTAL["at"] and round_number >= MORTAL["since"]:
        os.write(2, f"dying at {point} in round {round_number}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def reach_sent(points: dict[str, str]) -> None:
    record = SENDING.get()
    if record is not None:
        reach(points.get(type(record).__name__, ""), getattr(record, "round", -1))


def die_in_training() -> None:
    progress, encode = Reporter.progress, Training._encode

    def mortal_progress(self: Reporter, made: Any) -> None:
        progress(self, made)
        if made.inner_step >= 2:
            reach("train", made.round)

    def mortal_encode(self: Training, command: Any, *rest: Any) -> Any:
        index = encode(self, command, *rest)
        reach("encoded", command.round)
        return index

    Reporter.progress = mortal_progress  # type: ignore[method-assign]
    Training._encode = mortal_encode  # type: ignore[method-assign, assignment]


def die_in_journal() -> None:
    append = Journal.append

    def mortal_append(self: Journal, event: Any) -> None:
        if MORTAL["at"] == "torn" and isinstance(event, UpdateReady):
            write = self._write

            def half(frame: bytes) -> None:
                write(frame[: len(frame) // 2])
                reach("torn", event.round)
                write(frame[len(frame) // 2 :])

            self._write = half  # type: ignore[method-assign]
            try:
                append(self, event)
            finally:
                del self._write
        else:
            append(self, event)

    Journal.append = mortal_append  # type: ignore[method-assign]


def die_in_sending() -> None:
    publish, put, broadcast = Publishing.publish, FileSentLog.put, TxService.broadcast

    async def mortal_publish(self: Publishing, wanted: Any) -> None:
        SENDING.set(wanted.command.record)
        reach_sent(BEFORE)
        await publish(self, wanted)

    def mortal_put(self: FileSentLog, pending: Any) -> None:
        put(self, pending)
        reach_sent({"Commit": "sent"})

    async def mortal_broadcast(self: TxService, transaction: bytes) -> Any:
        answer = await broadcast(self, transaction)
        reach_sent(AFTER)
        return answer

    Publishing.publish = mortal_publish  # type: ignore[method-assign]
    FileSentLog.put = mortal_put  # type: ignore[method-assign]
    TxService.broadcast = mortal_broadcast  # type: ignore[method-assign]


def die_with_bytes() -> None:
    write, apply, step = Held.write, Applying.apply, states.outer_step  # type: ignore[attr-defined]

    def mortal_write(self: Held, *arguments: Any) -> None:
        write(self, *arguments)
        name = self.folder.parent.name
        reach("fetching", int(name) if name.isdigit() else -1)

    async def mortal_apply(self: Applying, wanted: Any) -> None:
        APPLYING.set(wanted.command.round)
        await apply(self, wanted)

    def mortal_step(*arguments: Any) -> Any:
        done = step(*arguments)
        reach("applying", APPLYING.get())
        return done

    Held.write = mortal_write  # type: ignore[method-assign, assignment]
    Applying.apply = mortal_apply  # type: ignore[method-assign]
    states.outer_step = mortal_step  # type: ignore[attr-defined, assignment]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path)
    parser.add_argument("--at")
    parser.add_argument("--since", type=int)
    options = parser.parse_args()
    MORTAL.update(at=options.at, since=options.since)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for patch in (die_in_training, die_in_journal, die_in_sending, die_with_bytes):
        patch()
    asyncio.run(run_daemon(load_config(options.config)))


if __name__ == "__main__":
    main()
