"""A run that is over is still served, to those too who come only then: who is in it goes on changing."""

from __future__ import annotations

from round_world import World, address, block_hash, join, params

from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.records import Commit, Leave, PlacedRecord, Record
from gonka_trainer.round.summary import Phase
from gonka_trainer.types import Digest, Height, Role


def test_joins_and_leaves_count_after_the_end_and_nothing_else_does() -> None:
    world = World(params(3, rounds=1), (1, 2, 3))
    world.until(lambda: all(h.state.phase is Phase.ENDED for h in world.hosts.values()))
    host = world.hosts[1]
    before, height = host.state, Height(host.state.height + 1)
    observer = join(address(9), height, Role.OBSERVER)
    records: list[tuple[int, Record]] = [
        (9, observer),
        (2, Leave(address(2), height)),
        (3, Commit(1, Digest(bytes(32)))),
    ]
    placed = tuple(PlacedRecord(i, 0, address(n), record) for i, (n, record) in enumerate(records))
    host.tell(BlockSeen(height, block_hash(height), placed))
    assert host.state.membership.join_of(address(9)) == observer
    assert host.state.membership.join_of(address(2)) is None
    assert host.state.membership.members() == [address(1), address(3)]
    assert (host.state.phase, host.state.round, host.state.current) == (Phase.ENDED, 1, None)
    assert (host.state.final, host.state.own) == (before.final, before.own)
