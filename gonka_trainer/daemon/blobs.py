"""Reading stored blobs chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gonka_trainer.daemon.kit import Kit
from gonka_trainer.daemon.states import blob_index, check_bytes
from gonka_trainer.errors import StorageError
from gonka_trainer.gradient.blob import BlobIndex
from gonka_trainer.gradient.possession import possession
from gonka_trainer.round.state import Round
from gonka_trainer.types import Address, Digest


def proof(kit: Kit, current: Round, attester: Address, authors: Sequence[Address]) -> bytes:
    """Return the possession proof of `attester` over the blobs of `authors`, all of which must be here.

    `authors` are in the order of their addresses. StorageError when a blob is not whole, or its bytes changed on disk.
    """
    blobs = []
    for author in authors:
        commitment, _ = current.commits[author]
        index, stored = blob_index(kit.run, kit.store, current.number, author, commitment, current.base_root)
        blobs.append((commitment, index.count, _chunk_reader(index, stored.payload)))
    return possession(attester, Digest(current.close_hash), blobs)


def _chunk_reader(index: BlobIndex, payload: Path) -> Callable[[int], bytes]:
    def read(i: int) -> bytes:
        try:
            with payload.open("rb") as file:
                file.seek(index.offset(i))
                data = file.read(index.chunk_bytes(i))
        except OSError as error:
            raise StorageError(f"{payload}: cannot be read: {error.strerror}", "look at the disk") from error
        check_bytes(index, i, data)
        return data

    return read
