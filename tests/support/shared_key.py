"""A process that publishes heartbeats under a task by grant, with a key that other processes use at the same time.

    python -m tests.support.shared_key GRPC RPC CHAIN_ID KEY_HEX PARTICIPANT TASK FIRST COUNT FOLDER

Prints one JSON object: how many were published, how many warnings the sender gave (refused or lost, and sent again).
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

from gonka_trainer.chain import sender as sender_module
from gonka_trainer.chain.address import decode_address
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.keys import AccountKey
from gonka_trainer.chain.runlog import KvRunLog, MemoRunLog
from gonka_trainer.chain.sender import Sender, SendSettings
from gonka_trainer.chain.sentlog import FileSentLog
from gonka_trainer.round.records import Heartbeat
from gonka_trainer.types import Address

AT_ONCE = 12
PREFIX = "gonka"


class Counter(logging.Handler):
    """Counts warnings of the sender."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


async def main(arguments: list[str]) -> None:
    grpc, rpc, chain_id, secret, participant, where, first, count, folder = arguments
    counter = Counter()
    logging.getLogger(sender_module.__name__).addHandler(counter)
    acts_for = decode_address(participant, PREFIX) if participant else None
    async with ChainClient(NodeAddress(grpc, rpc), chain_id=chain_id, prefix=PREFIX) as chain:
        key = AccountKey.from_bytes(bytes.fromhex(secret))
        settings = SendSettings(poll_seconds=0.05)
        sender = Sender(chain, key, FileSentLog(Path(folder)), settings, acts_for=acts_for)
        log = KvRunLog(sender, int(where), PREFIX) if acts_for else MemoRunLog(sender, topic(where), PREFIX)
        few = asyncio.Semaphore(AT_ONCE)

        async def publish(step: int) -> str:
            async with few:
                return (await log.publish([Heartbeat(0, step)])).tx_hash

        hashes = await asyncio.gather(*(publish(step) for step in range(int(first), int(first) + int(count))))
    print(json.dumps({"published": len(set(hashes)), "again": counter.said}))


def topic(text: str) -> Address:
    return decode_address(text, PREFIX)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
