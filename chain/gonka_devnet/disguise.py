"""Another history than the node's own: the same transactions under headers, hashes and commits of their own.

Everything stays consistent: each header names the one before, the commits are signed by the validator over the shown
blocks and the shown chain id, times are those of the commits. State and results are the node's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gonka_devnet import headers
from gonka_devnet.blocks import Block, Validator

ASIDE_NS = 1


class Disguise:
    """Shows blocks from a height on as those of another chain id, or of a fork that begins there."""

    def __init__(self, validator: Validator, real: Callable[[int], Block], first: int, chain_id: str) -> None:
        self._validator = validator
        self._real = real
        self._first = max(first, 1)
        self._chain_id = chain_id
        self._shown: dict[int, Block] = {}

    def block(self, height: int) -> Block:
        """Return the block as it is shown; the ones before `first` are the node's own."""
        if height < self._first:
            return self._real(height)
        for each in range(self._first + len(self._shown), height + 1):
            self._shown[each] = self._made(each)
        return self._shown[height]

    def _made(self, height: int) -> Block:
        real, message = self._real(height), type(self._real(height).message)()
        message.CopyFrom(real.message)
        message.header.chain_id = self._chain_id
        if height > 1:
            self._link(message, height)
        else:
            _set(message.header.time, real.at.time_ns + ASIDE_NS)
        identity, moment = headers.block_id(message), real.stored.commit_time_ns + ASIDE_NS
        stored = replace(
            real.stored,
            block=message.SerializeToString(),
            block_id=identity.SerializeToString(),
            commit_time_ns=moment,
            commit_signature=self._signature(height, identity, moment),
        )
        return Block(stored)

    def _signature(self, height: int, identity: Any, moment: int) -> bytes:
        return self._validator.key.sign(headers.vote_bytes(self._chain_id, height, identity, moment))

    def _link(self, message: Any, height: int) -> None:
        """Name the shown block before, and commit it a nanosecond later than the node really did."""
        before, commit = self.block(height - 1), message.last_commit
        moment = self._real(height - 1).stored.commit_time_ns + ASIDE_NS
        message.header.last_block_id.CopyFrom(before.block_id)
        commit.block_id.CopyFrom(before.block_id)
        commit.signatures[0].signature = self._signature(height - 1, before.block_id, moment)
        _set(commit.signatures[0].timestamp, moment)
        message.header.last_commit_hash = headers.commit_hash(commit)
        _set(message.header.time, headers.nanoseconds(message.header.time) + ASIDE_NS)


def _set(moment: Any, time_ns: int) -> None:
    moment.CopyFrom(headers.timestamp(time_ns))
