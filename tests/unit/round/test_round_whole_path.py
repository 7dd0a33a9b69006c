"""Whole rounds, driven by the commands alone, and the examples at the end of docs/protocol.md 3."""

from __future__ import annotations

from round_world import World, address, params

from gonka_trainer.round.summary import Outcome, Phase


def test_three_hosts_all_well_run_to_the_end() -> None:
    world = World(params(3, rounds=4), (1, 2, 3))
    world.until(lambda: all(h.state.phase is Phase.ENDED for h in world.hosts.values()))
    first = world.hosts[1]
    assert [s.outcome for s in first.summaries] == [Outcome.FINAL] * 4
    for host in world.hosts.values():
        assert host.summaries == first.summaries
        assert host.state.final_root == first.summaries[-1].root
        assert host.state.final_root in host.state.own.states
        assert host.texts == []
    for told in first.summaries:
        assert told.included == (address(1), address(2), address(3))
        assert told.closed is not None
        assert told.closed < told.deadline + 4
