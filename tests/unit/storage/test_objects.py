from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gonka_trainer.errors import StorageError
from gonka_trainer.round.commands import Keep
from gonka_trainer.storage import held as held_module
from gonka_trainer.storage.files import write_atomic
from gonka_trainer.storage.objects import BLOB, STATE, ObjectStore, payload_map, state_vectors
from gonka_trainer.types import GOOD, Digest, Verdict, sha256


@dataclass(frozen=True)
class Cut:
    """A checkable list of chunks of the lengths given; checking is the fetcher's part and not wanted here."""

    lengths: tuple[int, ...]
    preamble: bytes = b"preamble"
    leaf_list: bytes = b"leaves"

    @property
    def count(self) -> int:
        return len(self.lengths)

    def chunk_bytes(self, i: int) -> int:
        return self.lengths[i]

    def offset(self, i: int) -> int:
        return sum(self.lengths[:i])

    def check(self, i: int, data: bytes) -> Verdict:
        return GOOD


KEY = sha256(b"key")
CUT = Cut((5, 3, 4))
PAYLOAD = b"aaaaabbbcccc"


def _put(store: ObjectStore, kind: str, key: Digest, number: int = 0) -> None:
    with store.draft(len(PAYLOAD)) as draft:
        draft.append(PAYLOAD[:7])
        draft.append(PAYLOAD[7:])
        draft.publish(kind, key, number, CUT)


def test_a_published_blob_is_there_and_complete(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        _put(store, BLOB, KEY, 7)
        stored = store.blob(7, KEY)
        assert stored is not None
        assert (stored.preamble, stored.leaf_list) == (CUT.preamble, CUT.leaf_list)
        assert bytes(payload_map(stored)) == PAYLOAD
        assert [store.read(stored, i) for i in range(4)] == [b"aaaaa", b"bbb", b"cccc", None]
        assert [store.has(stored, i) for i in (-1, 0, 2, 3)] == [False, True, True, False]
        assert store.complete(BLOB, KEY, 7)
        assert store.blob(8, KEY) is None
        assert store.state(KEY) is None
    with ObjectStore(tmp_path) as again:
        assert again.blob(7, KEY) == stored


def test_nothing_of_an_unpublished_draft_stays(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        with store.draft(12) as draft:
            draft.append(PAYLOAD)
        assert not list((tmp_path / "temporary").iterdir())
        with pytest.raises(ValueError, match="12 bytes"), store.draft(12) as draft:
            draft.append(PAYLOAD + b"x")
        with pytest.raises(ValueError, match="index of 12"), store.draft(13) as draft:
            draft.publish(BLOB, KEY, 1, CUT)
        assert store.blob(1, KEY) is None


def test_publishing_twice_keeps_the_first(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        _put(store, STATE, KEY)
        before = (tmp_path / "states" / KEY.hex() / "payload").stat().st_ino
        _put(store, STATE, KEY)
        assert (tmp_path / "states" / KEY.hex() / "payload").stat().st_ino == before


def test_a_state_is_one_payload_of_parameters_and_momentum(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        with store.draft(24) as draft:
            both = np.memmap(draft.payload, dtype="<f4", mode="r+")
            both[:] = np.arange(6)
            del both
            draft.publish(STATE, KEY, 0, Cut((8, 4, 8, 4)))
        stored = store.state(KEY)
        assert stored is not None
        parameters, momentum = state_vectors(stored)
        assert parameters.tolist() == [0, 1, 2]
        assert momentum.tolist() == [3, 4, 5]


def test_a_part_goes_on_after_a_restart(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        filling = store.begin(STATE, KEY, 0, CUT)
        filling.write(1, b"bbb")
        assert filling.missing() == (0, 2)
        assert store.state(KEY) is None
        stored = store.held(STATE, KEY, 0)
        assert stored is not None
        assert [store.read(stored, i) for i in range(3)] == [None, b"bbb", None]
        with pytest.raises(ValueError, match="2 chunks are missing"):
            filling.finish()
    with ObjectStore(tmp_path) as store:
        filling = store.begin(STATE, KEY, 0, CUT)
        assert filling.missing() == (0, 2)
        filling.write(0, b"aaaaa")
        filling.write(1, b"bbb")
        filling.write(2, b"cccc")
        assert filling.finish() == filling.finish() == store.state(KEY)
    with ObjectStore(tmp_path) as store:
        stored = store.state(KEY)
        assert stored is not None
        assert stored.payload.read_bytes() == PAYLOAD


def test_a_crash_between_payload_and_mark_only_costs_the_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ObjectStore(tmp_path) as store:
        filling = store.begin(STATE, KEY, 0, CUT)
        filling.write(0, b"aaaaa")
        order = _record_order(monkeypatch)
        filling.write(1, b"bbb")
        assert order == ["payload", "synced", "chunks"]
        marks = tmp_path / "states" / KEY.hex() / "chunks"
        marks.write_bytes(b"\1\0\0")  # as if the mark had not come to disk
    with ObjectStore(tmp_path) as store:
        assert store.begin(STATE, KEY, 0, CUT).missing() == (1, 2)


def _record_order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    order: list[str] = []
    write, sync = held_module.write_all_at, os.fdatasync

    def note_write(descriptor: int, data: bytes, offset: int) -> None:
        order.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        write(descriptor, data, offset)

    def note_sync(descriptor: int) -> None:
        order.append("synced")
        sync(descriptor)

    monkeypatch.setattr(held_module, "write_all_at", note_write)
    monkeypatch.setattr(os, "fdatasync", note_sync)
    return order


def test_chunks_of_a_wrong_length_are_not_written(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        filling = store.begin(BLOB, KEY, 1, CUT)
        with pytest.raises(ValueError, match="3 bytes, not 4"):
            filling.write(1, b"bbbb")
        with pytest.raises(IndexError):
            filling.write(3, b"")


def test_a_part_of_another_index_is_begun_anew(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        store.begin(BLOB, KEY, 1, CUT).write(1, b"bbb")
        assert store.begin(BLOB, KEY, 1, Cut((5, 3, 4), leaf_list=b"other")).missing() == (0, 1, 2)


def test_pruning_deletes_the_rest_and_nothing_that_is_listed(tmp_path: Path) -> None:
    roots = [sha256(bytes([i])) for i in range(4)]
    with ObjectStore(tmp_path) as store:
        for i, root in enumerate(roots):
            _put(store, STATE, root)
            _put(store, BLOB, root, i)
        mapped = store.state(roots[0])
        assert mapped is not None
        view = payload_map(mapped)
        (tmp_path / "states" / "somebody's").mkdir()
        gone = store.prune(Keep((roots[1], roots[3]), 2))
        assert len(gone) == 4
        assert [store.state(root) is not None for root in roots] == [False, True, False, True]
        assert [store.blob(i, root) is not None for i, root in enumerate(roots)] == [False, False, True, True]
        assert store.read(mapped, 0) is None
        assert bytes(view) == PAYLOAD  # a map of what is gone still reads
        assert (tmp_path / "states" / "somebody's").is_dir()
        assert not list((tmp_path / "temporary").iterdir())


def test_pruning_spares_a_state_that_is_being_fetched(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        filling = store.begin(STATE, KEY, 0, CUT)
        assert store.prune(Keep((), 0)) == ()
        filling.write(0, b"aaaaa")
    with ObjectStore(tmp_path) as store:
        assert len(store.prune(Keep((), 0))) == 1


def test_leftovers_of_a_crash_are_deleted_at_start(tmp_path: Path) -> None:
    (tmp_path / "temporary" / "half").mkdir(parents=True)
    (tmp_path / "temporary" / "half" / "payload").write_bytes(b"x")
    with ObjectStore(tmp_path):
        assert not list((tmp_path / "temporary").iterdir())


def test_no_room_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        with pytest.raises(StorageError, match=rf"{tmp_path}.*full: 1,125,899,906,842,624 bytes are needed"):
            store.draft(1 << 50).__enter__()
        with pytest.raises(StorageError, match="bytes are needed"):
            store.begin(STATE, KEY, 0, Cut((1 << 50,)))
        assert store.held(STATE, KEY, 0) is None
        assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("name", ["index", "payload", "chunks"])
def test_damaged_files_are_a_clear_error(tmp_path: Path, name: str) -> None:
    with ObjectStore(tmp_path) as store:
        store.begin(STATE, KEY, 0, CUT)
    path = tmp_path / "states" / KEY.hex() / name
    path.write_bytes(path.read_bytes()[:-1])
    with ObjectStore(tmp_path) as store, pytest.raises(StorageError, match=r"delete .*fetched again"):
        store.held(STATE, KEY, 0)


@pytest.mark.parametrize(("kind", "key"), [("blob", b"../../etc"), ("blob", b""), ("file", KEY), ("state", KEY + b"x")])
def test_only_digests_become_names(tmp_path: Path, kind: str, key: bytes) -> None:
    with ObjectStore(tmp_path) as store, pytest.raises(ValueError, match="no object"):
        store.held(kind, key, 0)


def test_documents(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        assert store.document(KEY) is None
        store.put_document(KEY, b"text")
        assert store.document(KEY) == b"text"
        with pytest.raises(StorageError, match="at most 1,048,576"):
            store.put_document(KEY, bytes((1 << 20) + 1))
        assert store.document(KEY) == b"text"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_atomic(path, b"old")
    write_atomic(path, b"new", mode=0o600)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").touch()
    with pytest.raises(StorageError, match="folder"):
        write_atomic(tmp_path / "folder", b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "status.json"]
