"""Worlds made by hand: hosts that die, lie, come late or compute wrong, and what the others do about it."""

from __future__ import annotations

from collections.abc import Sequence

from .check import check
from .model import ModelRound
from .plan import Action, HostPlan, Noise, Plan, address, params
from .script import equal
from .world import World


def world_of(
    name: str,
    honest: int,
    liars: Sequence[frozenset[str]] = (),
    floor: int = 2,
    actions: Sequence[Action] = (),
    blocks: int = 120,
    calm: int = 90,
    **changes: object,
) -> tuple[World, list[ModelRound]]:
    hosts = [HostPlan(f"h{i}", address(f"{name}/h{i}"), address(f"{name}/h{i}")) for i in range(honest)]
    hosts += [HostPlan(f"l{i}", address(f"{name}/l{i}"), address(f"{name}/l{i}"), t) for i, t in enumerate(liars)]
    everybody = tuple(sorted(h.participant for h in hosts))
    rule = params(equal_members=everybody, min_weight=floor, **changes)
    epochs = equal(everybody)
    world = World(Plan(name, rule, epochs, tuple(hosts), blocks, calm, actions=tuple(actions))).run()
    found = check(world)
    assert not found.wrong, found.wrong
    return world, found.rounds


def test_roster_is_not_captured_when_liars_come_back_while_honest_hosts_lie_dead() -> None:
    liar = frozenset({"selfish", "junk root", "withhold"})
    quiet = [Action(12, "silence", 5, 130), Action(12, "silence", 6, 130)]
    deaths = [Action(50 + 30 * i, "crash", i, 200 - (50 + 30 * i)) for i in range(3)]
    world, rounds = world_of("capture", 5, [liar, liar], 5, quiet + deaths, blocks=230, calm=200, absent_rounds=2)
    assert any(len(r.silent) >= 1 for r in rounds)
    assert all(r.root != world.junk(r.number) for r in rounds)
    assert any(r.final and r.ended and r.ended > 200 for r in rounds)


def test_two_honest_deaths_in_turn_do_not_stop_the_run() -> None:
    deaths = [Action(20, "crash", 0, 400), Action(50, "crash", 1, 400)]
    world, rounds = deaths_world("two-deaths", deaths)
    gone = {world.hosts[0].participant, world.hosts[1].participant}
    assert {who for r in rounds for who in r.dropped} == gone
    last = [r for r in rounds if not gone & r.voices and r.ended is not None]
    assert len(last) >= 3
    assert all(r.final and r.silent and r.weight == 4 for r in last)


def deaths_world(name: str, deaths: Sequence[Action]) -> tuple[World, list[ModelRound]]:
    """Five honest, some for ever dead: the general promise of progress for all does not apply."""
    hosts = tuple(HostPlan(f"h{i}", address(f"{name}/{i}"), address(f"{name}/{i}")) for i in range(5))
    everybody = tuple(sorted(h.participant for h in hosts))
    rule = params(equal_members=everybody, min_weight=4, absent_rounds=2)
    plan = Plan(name, rule, equal(everybody), hosts, 140, 141, actions=tuple(deaths), expects_progress=False)
    world = World(plan).run()
    found = check(world)
    assert not found.wrong, found.wrong
    return world, found.rounds


def test_everything_is_void_until_one_returns() -> None:
    deaths = [Action(20, "crash", 0, 40), Action(21, "crash", 1, 79)]
    _, rounds = world_of("void", 3, floor=2, actions=deaths)
    dead = [r for r in rounds if 25 < r.opened < 50]
    assert len(dead) >= 2
    assert all(r.reason == "commit" for r in dead)
    assert any(r.final and r.opened > 60 and r.ended and r.ended < 100 for r in rounds)


def test_liar_of_three_that_attests_itself_and_posts_junk_changes_nothing() -> None:
    world, rounds = world_of("liar-of-three", 2, [frozenset({"selfish", "junk root", "withhold"})], floor=2)
    liar = world.hosts[2].participant
    with_liar = [r for r in rounds if r.final and liar in r.commits]
    assert len(with_liar) > 3
    assert all(liar not in r.included for r in with_liar)


def test_blob_of_bad_form_is_attested_by_nobody_honest() -> None:
    world, rounds = world_of("bad-form", 3, [frozenset({"bad form"})], floor=3)
    liar = world.hosts[3].participant
    bad = [r for r in rounds if liar in r.commits and not world.blobs[r.commits[liar][0]].form_good]
    assert len([r for r in bad if r.final]) > 2
    assert all(liar not in r.included for r in bad)


def test_late_joiner_reads_everything_and_trains() -> None:
    name = "late"
    hosts = tuple(
        HostPlan(f"h{i}", address(f"{name}/{i}"), address(f"{name}/{i}"), starts=60 if i == 3 else 1) for i in range(4)
    )
    everybody = tuple(sorted(h.participant for h in hosts))
    plan = Plan(name, params(equal_members=everybody, min_weight=2), equal(everybody), hosts, 110, 80)
    world = World(plan).run()
    found = check(world)
    assert not found.wrong, found.wrong
    late = world.hosts[3]
    assert late.participant in found.rounds[-2].included
    assert found.counts["state synced"] >= 1


def test_host_that_computes_wrong_once_recomputes_and_goes_on() -> None:
    world, _ = world_of("wrong-once", 4, floor=3, actions=[Action(1, "wrong", 0, 0, 2)])
    assert world.counts["recomputed"] == 1
    assert world.hosts[0].halted is None


def test_host_that_computes_wrong_twice_halts_and_does_not_adopt() -> None:
    name = "wrong-twice"
    hosts = tuple(HostPlan(f"h{i}", address(f"{name}/{i}"), address(f"{name}/{i}")) for i in range(4))
    everybody = tuple(sorted(h.participant for h in hosts))
    actions = (Action(1, "wrong", 0, 1, 2),)
    rule = params(equal_members=everybody, min_weight=3)
    plan = Plan(name, rule, equal(everybody), hosts, 60, 50, actions=actions, expects_progress=False)
    world = World(plan).run()
    found = check(world)
    assert not [w for w in found.wrong if not w.startswith("h0")], found.wrong
    halted = world.hosts[0].halted
    assert halted is not None
    assert (halted.round, halted.final) == (2, found.rounds[2].root)
    assert found.rounds[2].root not in world.hosts[0].states


def test_crash_between_broadcast_and_block_does_not_make_two_commitments() -> None:
    name = "crashes"
    hosts = tuple(HostPlan(f"h{i}", address(f"{name}/{i}"), address(f"{name}/{i}")) for i in range(3))
    everybody = tuple(sorted(h.participant for h in hosts))
    rule = params(equal_members=everybody, min_weight=2, commit_blocks=6)
    noise = Noise(delayed=0.7, delay_blocks=5, crash=0.03)
    world = World(Plan(name, rule, equal(everybody), hosts, 110, 80, noise)).run()
    found = check(world)
    assert not found.wrong, found.wrong
    assert world.counts["crash after a broadcast"] > 5
