"""Single records that a person sends by hand: leave, delegate, revoke."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.opening import make_sender, open_client, open_run_log
from gonka_trainer.app.reading import RunReader
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.config import ChainConfig
from gonka_trainer.ports import Receipt
from gonka_trainer.round.records import Record
from gonka_trainer.types import Address, Height


async def publish_record(
    chain: ChainConfig,
    folder: Path,
    key: AccountKey,
    run: Accepted,
    record: Callable[[Height], Record],
    acts_for: Address | None = None,
) -> Receipt:
    """Put one delegate, revoke or leave of a run on chain; `record` is given the height at which it is written.

    That is above all that its author has written in the run, else the record would be nothing. `folder` remembers what
    was sent, so that a second try after a crash sends nothing twice; not the daemon's own.
    """
    async with open_client(chain) as client:
        reader = RunReader(client, run)
        async for _ in reader.to_tip():
            pass
        members, author = reader.state.membership, acts_for or key.address
        last = max(members.standing(author).written, members.keys[author].written if author in members.keys else 0)
        height = Height(max(reader.state.height, last + 1))
        sender = make_sender(client, chain, key, folder, acts_for)
        log = await open_run_log(client, sender, run.manifest, run.hash)
        return await log.publish([record(height)])
