"""Which chunks are asked of whom: each is asked for, none twice unless a peer drips, none is lost."""

from __future__ import annotations

from gonka_trainer.exchange.schedule import STRIKES, Schedule
from gonka_trainer.ports import Endpoint
from gonka_trainer.types import ZERO_DIGEST, Address


def peer(number: int) -> Endpoint:
    return Endpoint(Address(bytes([number]) * 20), "127.0.0.1", number, ZERO_DIGEST)


A, B, C = peer(1), peer(2), peer(3)


def test_all_chunks_are_asked_for_once_over_the_peers() -> None:
    schedule = Schedule(range(10), [A, B, C])
    requests = schedule.ready()
    assert sorted(chunk for request in requests for chunk in request.chunks) == list(range(10))
    assert {request.endpoint for request in requests} == {A, B, C}


def test_what_a_dripping_peer_holds_back_is_asked_of_an_idle_one_and_then_done() -> None:
    schedule = Schedule(range(4), [A, B])
    slow, fast = schedule.ready()
    schedule.settle(fast, fast.chunks, banned=False, failed=False)
    (again,) = schedule.again()
    assert (again.endpoint, set(again.chunks)) == (fast.endpoint, set(slow.chunks))
    assert schedule.again() == []
    schedule.settle(again, again.chunks, banned=False, failed=False)
    assert schedule.pending == 0


def test_a_doubled_chunk_is_not_handed_out_a_third_time_when_one_of_both_fails() -> None:
    schedule = Schedule(range(2), [A, B])
    slow, fast = schedule.ready()
    schedule.settle(fast, fast.chunks, banned=False, failed=False)
    (again,) = schedule.again()
    schedule.settle(again, (), banned=False, failed=True)
    assert schedule.ready() == []
    schedule.settle(slow, slow.chunks, banned=False, failed=False)
    assert schedule.pending == 0


def test_chunks_of_a_failed_request_come_back_and_a_peer_that_never_brings_any_goes() -> None:
    schedule = Schedule(range(3), [A])
    for _ in range(STRIKES):
        (request,) = schedule.ready()
        assert request.chunks == (0, 1, 2)
        schedule.settle(request, (), banned=False, failed=True)
    assert schedule.ready() == []
    assert schedule.pending == 3
