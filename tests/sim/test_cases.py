"""Chains made by hand, each for a rule whose breach is easy to miss: an observer's core against the model."""

from __future__ import annotations

import pytest

from gonka_trainer.round.commands import Publish
from gonka_trainer.round.environment import environment_digest
from gonka_trainer.round.events import CaughtUp, EnvironmentRead, Event, UpdateReady
from gonka_trainer.round.machine import initial, step
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Attest, Commit, Leave, StateRoot
from gonka_trainer.types import Height, sha256

from .model import list_digest
from .plan import Epochs
from .script import A, B, C, D, E, Script, all_but_c, block_hash, rules, script, weighted

# -- windows ----------------------------------------------------------------------------------------------------------


def test_commit_at_the_deadline_counts_and_one_block_later_does_not() -> None:
    s = script([A, B, C, D], 3)  # O = 3, T = 7, commits until 11
    s.commit(5, 0, A, B).commit(11, 0, C).commit(12, 0, D)
    (r,) = s.play(13)
    assert (r.opened, r.deadline, r.closed) == (3, 7, 11)
    assert set(r.commits) == {A, B, C}


def test_half_of_the_weight_is_not_more_than_half() -> None:
    s = script([A, B, C, D], 3).commit(5, 0, A, B)
    assert s.play(11)[0].reason == "commit"


def test_early_close_waits_for_all_who_have_a_voice_and_for_nobody_else() -> None:
    s = script([A, B, C], 2).commit(4, 0, A, B)
    assert s.play(6)[0].closed is None
    assert s.commit(6, 0, C).play(6)[0].closed == 6


def test_commit_is_not_an_attestation_and_half_is_not_enough() -> None:
    s = script([A, B, C, D], 3).commit(4, 0, A, B, C, D)
    for who, seen in ((A, [B, C]), (B, [A, B, C, D]), (C, [B, C, D])):
        s.attest(5, 0, 4, [A, B, C, D], who, seen)
    assert s.play(8)[0].frozen is None  # A is attested by B alone, D by B and C: half
    s.attest(9, 0, 4, [A, B, C, D], D, [A, D])
    assert s.play(9)[0].included == (B, C, D)  # at the limit; A has half, and its commit is no attestation


def test_attestations_add_up_and_count_until_the_limit_of_the_extension() -> None:
    s = script([A, B, C], 2).commit(4, 0, A, B, C)
    for who in (A, B):
        s.attest(9, 0, 4, [A, B, C], who, [A])
    s.attest(12, 0, 4, [A, B, C], A, [B])
    s.attest(14, 0, 4, [A, B, C], B, [B]).attest(15, 0, 4, [A, B, C], A, [C]).attest(15, 0, 4, [A, B, C], B, [C])
    r = s.play(16)[0]
    assert (r.extensions, r.frozen, r.included) == (1, 14, (A, B))


def test_attestations_short_of_half_after_the_last_extension_void_the_round() -> None:
    s = script([A, B, C], 2).commit(4, 0, A, B, C)
    for who in (A, B):
        s.attest(9, 0, 4, [A, B, C], who, [A])
    r = s.play(14)[0]
    assert (r.reason, r.ended, r.extensions) == ("attest", 14, 1)


@pytest.mark.parametrize("fault", ["digest", "length", "spare bit", "before the close", "other round"])
def test_attestation_that_is_nothing(fault: str) -> None:
    s = script([A, B, C], 2).commit(4, 0, A, B, C)
    good = list_digest(block_hash(4), [A, B, C])
    bits = {"length": b"\xe0\x00", "spare bit": b"\xf0"}.get(fault, b"\xe0")
    digest = list_digest(block_hash(5), [A, B, C]) if fault == "digest" else good
    height = 4 if fault == "before the close" else 5
    for who in (A, B):
        s.say(height, who, Attest(int(fault == "other round"), digest, bytes(16), bits))
    assert s.play(8)[0].frozen is None


def test_state_at_the_limit_counts_and_one_block_later_does_not() -> None:
    for height, final in ((10, True), (11, False)):
        s = script([A, B, C], 2).commit(4, 0, A, B, C)
        for who in (A, B, C):
            s.attest(5, 0, 4, [A, B, C], who, [A, B, C])
        s.post(7, 0, 5, A).post(height, 0, 5, B)
        r = s.play(12)[0]
        assert (r.final, r.reason, r.ended) == (final, "" if final else "state", 10)


def test_first_record_stands_and_one_out_of_its_window_takes_no_key() -> None:
    s = script([A, B, C], 2).commit(2, 0, A, mark=b"early").commit(4, 1, A, mark=b"other round")
    s.commit(5, 0, A).commit(6, 0, A, mark=b"second").commit(6, 0, B)
    r = s.play(11)[0]
    assert r.commits[A] == (sha256(b"C", A, bytes([0])), 5)
    assert r.notes == ["equivocation: commit"]


def test_state_root_first_stands_and_the_triple_decides() -> None:
    s = script([A, B, C], 2).commit(4, 0, A, B, C)
    for who in (A, B, C):
        s.attest(5, 0, 4, [A, B, C], who, [A, B, C])
    junk = sha256(b"junk")
    s.post(6, 0, 5, A, root=junk).post(7, 0, 5, A).post(7, 0, 5, B)
    s.post(8, 0, 4, C)  # same environment: no epochs here
    r = s.play(10)[0]
    assert (r.final, r.ended) == (True, 8)


@pytest.mark.parametrize("differs", ["root", "environment", "roster"])
def test_two_of_three_with_the_same_root_and_another_rest_are_no_majority(differs: str) -> None:
    s = script([A, B, C], 2).commit(4, 0, A, B, C)
    for who in (A, B, C):
        s.attest(5, 0, 4, [A, B, C], who, [A, B, C])
    good = {name: sha256(name.encode()) for name in ("root", "environment", "roster")}
    good["environment"] = environment_digest(s.epochs.at(5))
    record = StateRoot(0, good["root"], good["environment"], good["roster"])
    changed = good | {differs: sha256(b"other")}
    other = StateRoot(0, changed["root"], changed["environment"], changed["roster"])
    s.say(6, A, record).say(7, B, other)
    assert not s.play(8)[0].final
    assert s.say(9, C, record).play(9)[0].final


# -- the floor and the seats ------------------------------------------------------------------------------------------


def low_then_high(floor: int) -> Script:
    """Weights 3 each, of which 1 each remain in the epoch of blocks 20 to 39."""
    table = tuple((p, 3) for p in (A, B, C))
    low = tuple((p, 1) for p in (A, B, C))
    epochs = Epochs(0, 20, 1, 0, 1, (table, low, table, table))
    return Script(rules(None, floor, margin_blocks=0), epochs).join(1, A, B, C)


def freeze_in_the_low_epoch(s: Script) -> None:
    """Two final rounds, the second one frozen at 22 and final at 24."""
    opened = s.whole(3, 0, [A, B, C]) + 1
    s.commit(opened, 1, A, B).commit(14, 1, C)
    for who in (A, B, C):
        s.attest(22, 1, 14, [A, B, C], who, [A, B, C])
    s.post(24, 1, 22, A, B, C)


def test_round_below_the_floor_waits_whatever_is_posted() -> None:
    s = low_then_high(6)
    freeze_in_the_low_epoch(s)
    s.commit(26, 2, A, B, C)
    rounds = s.play(60)
    assert rounds[1].final
    waiting = rounds[2]
    assert (waiting.weight, waiting.decides, waiting.reason) == (3, False, "floor")
    assert waiting.ended == waiting.deadline + s.params.commit_blocks
    assert set(waiting.commits) == {A, B, C}
    after = next(r for r in rounds if r.opened > 40)
    assert (after.weight, after.fresh_environment, after.decides) == (9, True, True)


def test_who_was_only_in_rosters_below_the_floor_gets_no_seat() -> None:
    table = tuple((p, 3) for p in (A, B, C))
    low = tuple((p, 1) for p in (A, B, C, D))
    s = Script(rules(None, 6, margin_blocks=0), Epochs(0, 20, 1, 0, 1, (table, low, low, table))).join(1, A, B, C)
    freeze_in_the_low_epoch(s)
    s.join(26, D).say(36, D, Leave(D, Height(36)))
    waiting = [r for r in s.play(51) if r.opened >= 25]
    assert [r.reason for r in waiting] == ["floor", "floor", "floor"]
    assert [{who for who, _, _ in r.seats} for r in waiting] == [{A, B, C}, {A, B, C, D}, {A, B, C}]


def test_weights_are_those_of_the_last_freeze_as_long_as_they_reach_the_floor() -> None:
    s = low_then_high(6)
    opened = s.whole(s.whole(3, 0, [A, B, C]) + 1, 1, [A, B, C]) + 1
    s.commit(opened, 2, A, B).commit(16, 2, C)
    for who in (A, B, C):
        s.attest(19, 2, 16, [A, B, C], who, [A, B, C])
    s.post(21, 2, 19, A, B, C)
    rounds = s.play(22)
    assert rounds[2].final
    assert (rounds[3].opened, rounds[3].weight, rounds[3].fresh_environment) == (22, 9, False)


def test_dropped_seat_stays_silent_below_the_floor_and_its_absence_does_not_grow() -> None:
    s = script([A, B, C], 3, absent_rounds=2)
    opened = 3
    for number in range(2):
        opened = all_but_c(s, opened, number)
    rounds = s.play(opened)
    assert rounds[1].dropped == (C,)
    for number in range(2, 5):
        closed = opened
        s.commit(opened, number, A, B)
        for who in (A, B):
            s.attest(closed + 1, number, closed, [A, B], who, [A, B])
        opened = s.post(closed + 2, number, closed + 1, A, B).play(closed + 3)[number].ended + 1  # type: ignore[operator]
    rounds = s.play(opened)
    for r in rounds[2:5]:
        assert r.seats == ((A, 1, True), (B, 1, True), (C, 1, False))
        assert (r.final, r.dropped, r.closed) == (True, (), r.opened)


def test_silent_seats_are_the_heaviest_of_the_departed_by_this_openings_weights() -> None:
    weights = {A: 5, B: 3, C: 3, D: 6, E: 2}
    s = weighted(weights, 13)
    end = s.whole(3, 0, [A, B, C, D, E])
    for who in (B, C, E):
        s.say(end, who, Leave(who, Height(end)))
    rounds = s.play(end + 1)
    assert rounds[1].silent == {B}  # 11 of 13 without; B and C weigh the same, B is first by address
    assert rounds[1].weight == 14


def test_record_of_a_seat_without_a_voice_does_not_count() -> None:
    s = script([A, B, C], 3)
    end = s.whole(3, 0, [A, B, C])
    s.say(end, C, Leave(C, Height(end)))
    s.commit(end + 1, 1, C).commit(end + 1, 1, A, B)
    r = s.play(end + 2)[1]
    assert r.silent == {C}
    assert (set(r.commits), r.closed) == ({A, B}, end + 1)


# -- scheduled proof of compute ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "deadline"), [(100, 7), (7, 13), (9, 7), (8, 13), (2, 10)])
def test_proof_of_compute_stretches_training(start: int, deadline: int) -> None:
    """O = 3, four training blocks; a window is [S - 1, S + 5): with S = 7 blocks 6 to 11 do not count."""
    table = tuple((p, 1) for p in (A, B))
    epochs = Epochs(start, 100, 2, 1, 2, (table,))
    s = Script(rules([A, B], 2), epochs).join(1, A, B)
    r = s.play(4)[0]
    by_hand = [h for h in range(4, 60) if not start - 1 <= h < start + 5][3]
    assert r.deadline == by_hand
    assert r.deadline == deadline


@pytest.mark.parametrize(("start", "length"), [(1, 12), (2, 9), (5, 11), (3, 20)])
def test_later_windows_of_proof_of_compute_stretch_training_too(start: int, length: int) -> None:
    """Windows [S + 12 k - 1, S + 12 k + 4) for every k, while the environment still tells of the first epoch."""
    table = tuple((p, 1) for p in (A, B))
    epochs = Epochs(start, length, 2, 0, 2, (table,))
    s = Script(rules([A, B], 2, train_blocks=9), epochs).join(1, A, B)
    r = s.play(4)[0]
    index = (2 - start) // length if start <= 2 else 0
    first = start + max(0, index) * length
    poc = {h for k in range(9) for h in range(first + k * length - 1, first + k * length + 4)}
    assert r.deadline == [h for h in range(4, 90) if h not in poc][8]


# -- this host's own --------------------------------------------------------------------------------------------------


def test_second_update_of_a_round_does_not_replace_the_first() -> None:
    s = script([A, B], 2)
    me = Local(A, A)
    state = initial(s.params, me)
    events: list[Event] = list(s.blocks(3))
    events[2:2] = [EnvironmentRead(Height(2), s.epochs.at(2))]
    events.insert(0, CaughtUp(Height(0)))
    events += [UpdateReady(0, sha256(b"first")), UpdateReady(0, sha256(b"second"))]
    for event in events:
        state, commands = step(s.params, me, state, event)
    assert [c.record for c in commands if isinstance(c, Publish)] == [Commit(0, sha256(b"first"))]
