"""Blocks, headers and commits as CometBFT 0.38 hashes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from cosmpy.protos.tendermint.crypto.keys_pb2 import PublicKey
from cosmpy.protos.tendermint.types import block_pb2, types_pb2
from cosmpy.protos.tendermint.types.params_pb2 import HashedParams
from cosmpy.protos.tendermint.types.validator_pb2 import SimpleValidator
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import BytesValue, Int64Value, StringValue

from gonka_devnet import merkle
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.database import StoredBlock

BLOCK_PROTOCOL = 11
PART_BYTES = 65536
BLOCK_BYTES, BLOCK_GAS = 22020096, -1
EMPTY_HASH = merkle.root(())
CONSENSUS_HASH = hashlib.sha256(
    HashedParams(block_max_bytes=BLOCK_BYTES, block_max_gas=BLOCK_GAS).SerializeToString()
).digest()
COMMITTED = 2
PRECOMMIT = 2


def timestamp(time_ns: int) -> Timestamp:
    """Return the time as a message."""
    return Timestamp(seconds=time_ns // 10**9, nanos=time_ns % 10**9)


def nanoseconds(moment: Any) -> int:
    """Return a Timestamp's nanoseconds since 1970."""
    return int(moment.seconds) * 10**9 + int(moment.nanos)


def _wrapped(value: bytes | int | str) -> bytes:
    """Return a header field as cdcEncode does: nothing for what is empty."""
    if not value:
        return b""
    if isinstance(value, bytes):
        return BytesValue(value=value).SerializeToString()
    return (Int64Value(value=value) if isinstance(value, int) else StringValue(value=value)).SerializeToString()


def header_hash(header: Any) -> bytes:
    """Return the hash of a Header: the Merkle root of its fields."""
    fields = [
        header.version,
        header.chain_id,
        header.height,
        header.time,
        header.last_block_id,
        header.last_commit_hash,
    ]
    fields += [header.data_hash, header.validators_hash, header.next_validators_hash, header.consensus_hash]
    fields += [header.app_hash, header.last_results_hash, header.evidence_hash, header.proposer_address]
    plain = (bytes, int, str)
    return merkle.root([_wrapped(f) if isinstance(f, plain) else bytes(f.SerializeToString()) for f in fields])


def data_hash(txs: Sequence[bytes]) -> bytes:
    """Return the root over the transactions' hashes."""
    return merkle.root([hashlib.sha256(tx).digest() for tx in txs])


def results_hash(results: Sequence[wire.ExecTxResult]) -> bytes:
    """Return the root over code, data, gas wanted and gas used of each result."""
    return merkle.root(
        [
            wire.DeterministicResult(
                code=result.code, data=result.data, gas_wanted=result.gas_wanted, gas_used=result.gas_used
            ).SerializeToString()
            for result in results
        ]
    )


def commit_hash(commit: Any) -> bytes:
    """Return the root over a Commit's signatures."""
    return merkle.root([bytes(signature.SerializeToString()) for signature in commit.signatures])


def validators_hash(public_key: bytes, power: int) -> bytes:
    """Return the hash of a set of one ed25519 validator."""
    validator = SimpleValidator(pub_key=PublicKey(ed25519=public_key), voting_power=power)
    return merkle.root([bytes(validator.SerializeToString())])


def block_id(block: Any) -> Any:
    """Return a Block's id: the header's hash and its parts."""
    data = block.SerializeToString()
    parts = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    header = types_pb2.PartSetHeader(total=len(parts), hash=merkle.root(parts))
    return types_pb2.BlockID(hash=header_hash(block.header), part_set_header=header)


def make_block(header: Any, txs: Sequence[bytes], last_commit: Any) -> Any:
    """Return the Block, with what is never left out on the wire."""
    block = block_pb2.Block(header=header, data=types_pb2.Data(txs=txs), last_commit=last_commit)
    block.evidence.SetInParent()
    return block


def commit(height: int, block: Any, validator: bytes, stored: StoredBlock) -> Any:
    """Return a block's commit by its one validator."""
    signature = types_pb2.CommitSig(
        block_id_flag=COMMITTED,
        validator_address=validator,
        timestamp=timestamp(stored.commit_time_ns),
        signature=stored.commit_signature,
    )
    return types_pb2.Commit(height=height, block_id=block, signatures=[signature])


def empty_commit() -> Any:
    """Return the commit in the first block."""
    commit = types_pb2.Commit()
    commit.block_id.part_set_header.SetInParent()
    return commit


def vote_bytes(chain_id: str, height: int, block: Any, time_ns: int) -> bytes:
    """Return what a validator signs to commit a block: a CanonicalVote with its length."""
    parts = wire.CanonicalPartSetHeader(total=block.part_set_header.total, hash=block.part_set_header.hash)
    vote = wire.CanonicalVote(
        type=PRECOMMIT,
        height=height,
        block_id=wire.CanonicalBlockId(hash=block.hash, part_set_header=parts),
        timestamp=wire.Time(seconds=time_ns // 10**9, nanos=time_ns % 10**9),
        chain_id=chain_id,
    )
    data = vote.SerializeToString()
    length = len(data)
    return (bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])) + data
