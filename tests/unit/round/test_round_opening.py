"""Which environment an opening reads, and how blocks wait for it (docs/protocol.md 3, Environment)."""

from __future__ import annotations

from dataclasses import replace

from round_world import Reader, address, block_hash, digest, join, params

from gonka_trainer.round.commands import ReadEnvironment
from gonka_trainer.round.environment import NO_EPOCHS, Environment, EpochSchedule, environment_digest
from gonka_trainer.round.events import BlockSeen, EnvironmentRead
from gonka_trainer.round.records import StateRoot
from gonka_trainer.round.summary import Phase
from gonka_trainer.types import Height


def _weights(*weights: int) -> Environment:
    return Environment(NO_EPOCHS, tuple((address(n), w) for n, w in enumerate(weights, 1) if w))


def _chain(*weights: int, **changes: int) -> Reader:
    reader = Reader(params(None, **{"min_weight": 10, **changes}))
    reader.environment = _weights(*weights)
    return reader


def test_round_zero_reads_the_block_before_the_opening_and_queues_what_follows() -> None:
    reader = Reader(params(2))
    reader.hold = True
    reader.block((address(1), join(address(1), 1)), (address(2), join(address(2), 1)))
    reader.skip_to(3)
    assert reader.reads() == [ReadEnvironment(Height(3), None)]
    assert reader.state.phase is Phase.WAITING
    reader.block(*reader.commits(1))
    reader.block(*reader.commits(2))
    assert (reader.state.height, len(reader.state.queue)) == (3, 2)
    reader.tell(EnvironmentRead(Height(2), _weights(1, 1)))
    assert len(reader.state.queue) == 2
    reader.tell(EnvironmentRead(Height(3), _weights(1, 1)))
    assert (reader.state.height, reader.state.queue, reader.current.closed) == (5, (), 5)


def test_round_zero_with_chain_weights_looks_at_each_block() -> None:
    reader = _chain(4, 4)
    reader.block((address(1), join(address(1), 1)), (address(2), join(address(2), 1)))
    reader.skip_to(5)
    assert reader.state.current is None
    reader.environment = _weights(6, 4)
    reader.block()
    reader.environment = _weights(1, 1)
    assert (reader.current.opened, reader.current.roster.weight) == (7, 10)


def test_a_round_after_a_final_one_uses_the_environment_of_its_freeze() -> None:
    reader = _chain(6, 6, train_blocks=40)
    reader.open_with(1, 2)
    reader.block(*reader.commits(1, 2))
    reader.environment = _weights(20, 30)
    reader.block(*reader.attests((1, 2), 1, 2))
    reader.environment = _weights(1, 1)
    reader.block(*reader.roots("r", 1, 2))
    assert [s.weight for s in reader.current.roster.seats] == [20, 30]


def test_below_the_floor_the_opening_reads_the_block_before_it_for_that_round_only() -> None:
    reader = _chain(6, 6)
    reader.open_with(1, 2)
    reader.block(*reader.commits(1, 2))
    reader.environment = _weights(3, 3)
    reader.block(*reader.attests((1, 2), 1, 2))
    reader.environment = _weights(8, 9)
    reader.block(*reader.roots("r", 1, 2))
    assert [s.weight for s in reader.current.roster.seats] == [8, 9]
    reader.environment = _weights(7, 7)
    reader.skip_to(reader.current.deadline + reader.params.commit_blocks)
    assert reader.state.round == 2
    assert [s.weight for s in reader.current.roster.seats] == [7, 7]


def test_void_keeps_the_former_environment() -> None:
    reader = _chain(6, 6)
    reader.open_with(1, 2)
    reader.play(1, 2)
    reader.environment = _weights(50, 50)
    reader.play(1)
    assert reader.state.round == 2
    assert [s.weight for s in reader.current.roster.seats] == [6, 6]


def test_before_any_final_round_each_opening_reads_anew() -> None:
    reader = _chain(6, 6)
    reader.open_with(1, 2)
    reader.environment = _weights(7, 8)
    reader.play(1)
    assert (reader.state.round, [s.weight for s in reader.current.roster.seats]) == (1, [7, 8])


def test_an_environment_that_is_not_the_final_one_is_ignored() -> None:
    reader = _chain(6, 6)
    reader.open_with(1, 2)
    reader.block(*reader.commits(1, 2))
    reader.hold = True
    reader.block(*reader.attests((1, 2), 1, 2))
    frozen = reader.current.frozen
    assert frozen == 5
    assert reader.reads() == [ReadEnvironment(frozen, None)]
    reader.tell(EnvironmentRead(frozen, _weights(1, 1)))  # this host's node tells lies
    assert reader.reads() == []
    reader.block(*reader.roots("r", 1, 2))
    true = environment_digest(_weights(6, 6))
    assert reader.reads() == [ReadEnvironment(frozen, true)]
    reader.tell(EnvironmentRead(frozen, _weights(1, 1)))
    assert reader.state.phase is Phase.WAITING
    reader.tell(EnvironmentRead(frozen, _weights(6, 6)))
    assert (reader.state.phase, reader.current.opened) == (Phase.TRAIN, 7)


def test_an_environment_that_is_not_canonical_is_ignored() -> None:
    reader = _chain(6, 6)
    reader.hold = True
    reader.block((address(1), join(address(1), 1)), (address(2), join(address(2), 1)))
    reader.skip_to(3)
    good = _weights(6, 6)
    for bad in (
        Environment(NO_EPOCHS, good.weights[::-1]),
        Environment(NO_EPOCHS, ((address(1), 0), (address(2), 6))),
        Environment(NO_EPOCHS, ((address(1), 1 << 64), (address(2), 6))),
        Environment(replace(NO_EPOCHS, poc_start=Height(-1)), good.weights),
    ):
        reader.tell(EnvironmentRead(Height(3), bad))
        assert reader.state.phase is Phase.WAITING
    reader.tell(EnvironmentRead(Height(3), good))
    assert reader.state.phase is Phase.TRAIN


def test_the_deadline_follows_the_rounds_environment() -> None:
    reader = Reader(params(2, train_blocks=10, margin_blocks=1))
    reader.environment = Environment(EpochSchedule(1, Height(6), 50, 4, 1, 5), ())
    assert reader.open_with(1, 2).deadline == 4 + 10 + 11


def test_blocks_out_of_order_change_nothing_but_a_note() -> None:
    reader = Reader(params(2))
    reader.open_with(1, 2)
    before = reader.state
    for height in (5, 3, 2, 0, -1, 100):
        reader.tell(BlockSeen(Height(height), block_hash(height), ()))
        assert len(reader.state.notes) == 1
        assert replace(reader.state, notes=()) == replace(before, notes=())
    reader.block()
    assert reader.state.height == 4


def test_the_first_block_is_at_or_before_the_announcement() -> None:
    rules = params(2, log_height=50)
    for height, taken in ((51, False), (50, True), (20, True), (0, False)):
        reader = Reader(rules)
        reader.tell(BlockSeen(Height(height), block_hash(height), ()))
        assert (reader.state.height, not reader.state.notes) == ((height, True) if taken else (0, False))


def test_records_before_the_announcement_do_not_count() -> None:
    reader = Reader(params(2, log_height=3))
    reader.block((address(1), join(address(1), 1)))
    reader.skip_to(2)
    reader.block((address(2), join(address(2), 3)))
    assert reader.state.membership.members() == [address(2)]


def test_a_final_environment_read_late_lets_the_queue_go_on() -> None:
    reader = _chain(6, 6)
    reader.open_with(1, 2)
    reader.block(*reader.commits(1, 2))
    reader.hold = True
    reader.block(*reader.attests((1, 2), 1, 2))
    record = StateRoot(0, digest("r"), environment_digest(_weights(6, 6)), reader.current.roster.digest)
    reader.block((address(1), record), (address(2), record))
    reader.block(*reader.commits(1))
    reader.block(*reader.commits(2))
    assert len(reader.state.queue) == 2
    reader.tell(EnvironmentRead(Height(5), _weights(6, 6)))
    assert (reader.current.number, reader.current.closed, reader.state.height) == (1, 8, 8)
