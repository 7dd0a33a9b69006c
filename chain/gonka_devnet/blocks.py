"""Making blocks: executes waiting transactions and writes block, results and state to disk at once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cosmpy.protos.tendermint.types import block_pb2, types_pb2
from cosmpy.protos.tendermint.version.types_pb2 import Consensus
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gonka_devnet import headers
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.app import App, At, wire_events
from gonka_devnet.clock import Clock
from gonka_devnet.database import Database, StoredBlock
from gonka_devnet.errors import SDK, sdk_error
from gonka_devnet.module import AbciError, Context, Store
from gonka_devnet.store import Layer
from gonka_devnet.transaction import Tx

POWER = 1_000_000
MOST_BLOCK_BYTES = 4 * 1024 * 1024
MILLISECOND_NS = 10**6


@dataclass(frozen=True)
class Validator:
    """The net's only validator."""

    key: Ed25519PrivateKey

    @cached_property
    def public_key(self) -> bytes:
        """32 bytes."""
        return self.key.public_key().public_bytes_raw()

    @cached_property
    def address(self) -> bytes:
        """20 bytes."""
        return hashlib.sha256(self.public_key).digest()[:20]

    @cached_property
    def set_hash(self) -> bytes:
        """The hash of the validator set."""
        return headers.validators_hash(self.public_key, POWER)


@dataclass(frozen=True)
class Block:
    """A block in memory with its results and the commit that came after it."""

    stored: StoredBlock

    @property
    def height(self) -> int:
        """Its height."""
        return self.stored.height

    @cached_property
    def message(self) -> Any:
        """The tendermint.types.Block."""
        return block_pb2.Block.FromString(self.stored.block)

    @cached_property
    def block_id(self) -> Any:
        """The tendermint.types.BlockID."""
        return types_pb2.BlockID.FromString(self.stored.block_id)

    @cached_property
    def results(self) -> wire.BlockResults:
        """The results by position."""
        return wire.BlockResults.FromString(self.stored.results)

    @cached_property
    def at(self) -> At:
        """Height and time."""
        return At(self.height, headers.nanoseconds(self.message.header.time))


@dataclass(frozen=True)
class Ordered:
    """What a test wants in the next block: bytes that stand in it whatever they are, and changes at its begin."""

    raw: Sequence[bytes] = ()
    changes: Sequence[Callable[[Context], None]] = ()


@dataclass(frozen=True)
class Made:
    """A new block, what it changed, and its transactions with their codes."""

    block: Block
    changes: Mapping[bytes, bytes | None]
    done: Sequence[tuple[Tx, int]]


class Maker:
    """Makes one block after another on the committed state."""

    def __init__(self, app: App, database: Database, validator: Validator, genesis_time_ns: int, clock: Clock) -> None:
        self._app = app
        self._database = database
        self._validator = validator
        self._genesis_time_ns = genesis_time_ns
        self._clock = clock

    def make(
        self, last: Block | None, waiting: Sequence[Tx], state: Store, most_seconds: float, ordered: Ordered
    ) -> Made:
        """Execute what waits, as much as fits, and write the block; `state` itself stays as it is."""
        at = self._next(last)
        layer, results, done = Layer(state), wire.BlockResults(), []
        for change in ordered.changes:
            change(self._app.context(layer, at))
        begun = self._app.begin_block(layer, at)
        for raw in ordered.raw:
            result, tx = self._deliver_raw(raw, layer, at)
            results.results.append(result)
            done += [(tx, result.code)] if tx else []
        fitting = self._deliver(waiting, layer, at, most_seconds, results)
        results.events.extend(wire_events(begun + self._app.end_block(layer, at)))
        results.app_hash = self._app_hash(last, layer.changes)
        stored = self._store(last, at, [*ordered.raw, *(tx.raw for tx, _ in fitting)], results)
        self._database.write_block(stored, layer.changes)
        return Made(Block(stored), layer.changes, done + fitting)

    def _deliver(
        self, waiting: Sequence[Tx], layer: Layer, at: At, most_seconds: float, results: wire.BlockResults
    ) -> list[tuple[Tx, int]]:
        """Execute transactions while there is room and time; return those with their codes."""
        done, room, deadline = [], MOST_BLOCK_BYTES, time.monotonic() + most_seconds
        for tx in waiting:
            room -= len(tx.raw)
            if room < 0 or time.monotonic() > deadline:
                break
            result = self._app.deliver(tx, layer, at)
            results.results.append(result)
            done.append((tx, result.code))
        return done

    def _deliver_raw(self, raw: bytes, layer: Layer, at: At) -> tuple[wire.ExecTxResult, Tx | None]:
        """Execute bytes that no CheckTx has seen; what cannot be decoded has a result without gas and events."""
        try:
            tx = self._app.decoder.decode(raw)
        except AbciError:
            failed = sdk_error(2)
            return wire.ExecTxResult(code=failed.code, codespace=SDK.encode(), log=failed.log.encode()), None
        return self._app.deliver(tx, layer, at), tx

    def _next(self, last: Block | None) -> At:
        """Return the next height and its time: when the block before was committed, and later than that block's."""
        if last is None:
            return At(1, self._genesis_time_ns)
        return At(last.height + 1, max(last.stored.commit_time_ns, last.at.time_ns + MILLISECOND_NS))

    def _app_hash(self, last: Block | None, changes: Mapping[bytes, bytes | None]) -> bytes:
        digest = hashlib.sha256(last.results.app_hash if last else headers.EMPTY_HASH)
        for key, value in sorted(changes.items()):
            digest.update(len(key).to_bytes(4, "big") + key + (b"\x00" if value is None else b"\x01" + value))
        return digest.digest()

    def _commit(self, last: Block | None) -> Any:
        if last is None:
            return headers.empty_commit()
        return headers.commit(last.height, last.block_id, self._validator.address, last.stored)

    def _header(self, last: Block | None, at: At, txs: Sequence[bytes], commit: Any) -> Any:
        header = types_pb2.Header(
            version=Consensus(block=headers.BLOCK_PROTOCOL),
            chain_id=self._app.chain.chain_id,
            height=at.height,
            time=headers.timestamp(at.time_ns),
            last_commit_hash=headers.commit_hash(commit),
            data_hash=headers.data_hash(txs),
            validators_hash=self._validator.set_hash,
            next_validators_hash=self._validator.set_hash,
            consensus_hash=headers.CONSENSUS_HASH,
            app_hash=last.results.app_hash if last else headers.EMPTY_HASH,
            last_results_hash=headers.results_hash(last.results.results if last else ()),
            evidence_hash=headers.EMPTY_HASH,
            proposer_address=self._validator.address,
        )
        header.last_block_id.part_set_header.SetInParent()
        if last is not None:
            header.last_block_id.CopyFrom(last.block_id)
        return header

    def _store(self, last: Block | None, at: At, txs: Sequence[bytes], results: wire.BlockResults) -> StoredBlock:
        commit = self._commit(last)
        block = headers.make_block(self._header(last, at, txs, commit), txs, commit)
        block_id, now = headers.block_id(block), self._clock.now_ns()
        vote = headers.vote_bytes(self._app.chain.chain_id, at.height, block_id, now)
        return StoredBlock(
            at.height,
            block_id.SerializeToString(),
            block.SerializeToString(),
            results.SerializeToString(),
            now,
            self._validator.key.sign(vote),
        )
