"""Who is in R, with which weight and voice, and when it may decide (docs/protocol.md, assumption and 1)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from round_world import Reader, address, digest, join, key, params

from gonka_trainer.round.environment import NO_EPOCHS, Environment
from gonka_trainer.round.membership import KeyEntry, Membership, Place, Segment, Standing
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.records import Leave, Revoke
from gonka_trainer.round.roster import draw
from gonka_trainer.round.summary import Outcome, Seat, VoidReason
from gonka_trainer.types import Address, Height, Role


def _joined(*numbers: int, ever: tuple[int, ...] = ()) -> Membership:
    members = Membership(ever=frozenset(address(n) for n in ever))
    for n in numbers:
        members = members.with_key(address(n), KeyEntry(Height(1), join(address(n), 1), Place(Height(1), n, 0)))
        members = members.with_standing(address(n), Standing(speaker=address(n)))
    return members


def _weights(**weights: int) -> Environment:
    return Environment(NO_EPOCHS, tuple(sorted((address(int(k[1:])), w) for k, w in weights.items())))


def _draw(rules: RoundParams, members: Membership, environment: Environment):  # type: ignore[no-untyped-def]
    return draw(rules, members, environment, 3, Height(100))


def _seats(rules: RoundParams, members: Membership, environment: Environment) -> list[tuple[int, int, bool]]:
    return [(s.participant[0], s.weight, s.voice) for s in _draw(rules, members, environment).seats]


def test_chain_weights_and_nobody_of_weight_zero() -> None:
    environment = _weights(n1=5, n2=7, n9=3)
    assert _seats(params(None), _joined(1, 2, 3), environment) == [(1, 5, True), (2, 7, True)]


def test_an_equal_list_ignores_the_chains_weights() -> None:
    roster = _draw(params(2), _joined(1, 2, 3), _weights(n1=5, n3=7))
    assert roster.seats == (Seat(address(1), 1, True), Seat(address(2), 1, True))


def test_the_heaviest_stay_and_ties_go_by_address() -> None:
    environment = _weights(n1=5, n2=7, n3=5, n4=5)
    assert _seats(params(None, roster_limit=3), _joined(1, 2, 3, 4), environment) == [
        (1, 5, True),
        (2, 7, True),
        (3, 5, True),
    ]


def test_just_enough_of_the_departed_have_silent_seats() -> None:
    rules = params(None, min_weight=10)
    environment = _weights(n1=6, n2=2, n3=3, n4=3, n5=9)
    assert _seats(rules, _joined(1, ever=(1, 2, 3, 4)), environment) == [(1, 6, True), (3, 3, False), (4, 3, False)]
    assert _seats(rules, _joined(1, 2, ever=(1, 2, 3, 4)), environment) == [(1, 6, True), (2, 2, True), (3, 3, False)]


def test_no_silent_seats_at_or_above_the_floor() -> None:
    assert _seats(params(None, min_weight=6), _joined(1, ever=(1, 2)), _weights(n1=6, n2=9)) == [(1, 6, True)]


def test_below_the_floor_with_everybody_the_roster_decides_nothing() -> None:
    roster = _draw(params(None, min_weight=10), _joined(1, ever=(1, 2)), _weights(n1=6, n2=3, n3=9))
    assert (roster.weight, roster.decides, len(roster.seats)) == (9, False, 2)


@pytest.mark.parametrize("how", ["leave", "revoke", "other", "drop", "exclusion", "role"])
def test_every_way_to_depart_leaves_a_silent_seat(how: str) -> None:
    members = _joined(1, 2, ever=(1, 2))
    standing = members.standing(address(2))
    after = {
        "leave": replace(standing, left=Place(Height(2), 0, 0)),
        "revoke": replace(standing, speaker=None),
        "other": replace(standing, speaker=None),
        "drop": replace(standing, barred=Height(1)),
        "exclusion": replace(standing, excluded=9),
        "role": standing,
    }[how]
    members = members.with_standing(address(2), after)
    if how == "role":
        entry = replace(members.keys[address(2)], join=join(address(2), 1, Role.VALIDATOR))
        members = members.with_key(address(2), entry)
    assert _seats(params(2), members, Environment(NO_EPOCHS, ())) == [(1, 1, True), (2, 1, False)]


def _leave(n: int, written: int) -> tuple[Address, Leave]:
    return address(n), Leave(address(n), Height(written))


def test_two_departures_in_turn_do_not_stop_a_run() -> None:
    reader = Reader(params(5, min_weight=4))
    reader.open_with(1, 2, 3, 4, 5)
    reader.block(_leave(5, reader.now), *reader.commits(1, 2, 3, 4))
    reader.play(1, 2, 3, 4)
    reader.block(_leave(4, reader.now), *reader.commits(1, 2, 3))
    assert reader.play(1, 2, 3).outcome is Outcome.FINAL
    roster = reader.current.roster
    assert [(s.participant[0], s.voice) for s in roster.seats] == [(1, True), (2, True), (3, True), (4, False)]
    assert roster.decides
    opened = reader.now
    reader.block(*reader.commits(1, 2, 3))
    assert reader.current.closed == opened  # the close waits only for those with a voice
    assert reader.play(1, 2, 3).outcome is Outcome.FINAL


def test_a_silent_seat_says_nothing_and_grows_no_absence() -> None:
    reader = Reader(params(3, min_weight=3, absent_rounds=2))
    reader.open_with(1, 2, 3)
    reader.block(_leave(3, reader.now), *reader.commits(1, 2, 3))
    reader.play(1, 2, 3)
    for _ in range(4):
        assert reader.current.roster.seats[2] == Seat(address(3), 1, False)
        reader.block(*reader.commits(3))
        assert reader.current.commits == {}
        assert reader.play(1, 2).outcome is Outcome.FINAL
    assert reader.state.membership.standing(address(3)).absence == 0


def test_who_was_only_in_rosters_that_could_not_decide_gets_no_silent_seat() -> None:
    reader = Reader(params(None, min_weight=10))
    reader.environment = Environment(NO_EPOCHS, ((address(1), 5), (address(2), 5), (address(3), 5)))
    reader.open_with(1, 2)
    joined, low = (address(3), join(address(3), 4)), Environment(NO_EPOCHS, ((address(3), 1),))
    reader.block(*reader.commits(1, 2), joined)
    reader.environment = low
    reader.play(1, 2)
    assert reader.state.membership.ever == {address(1), address(2)}
    assert [s.participant for s in reader.current.roster.seats] == [address(3)]


def test_below_the_floor_whatever_is_posted_the_round_is_void_at_its_limit() -> None:
    reader = Reader(params(None, min_weight=10))
    reader.environment = Environment(NO_EPOCHS, ((address(1), 5), (address(2), 5)))
    reader.open_with(1, 2)
    reader.environment = Environment(NO_EPOCHS, ((address(1), 4), (address(2), 4)))
    reader.play(1, 2)
    current = reader.current
    assert (current.number, current.roster.decides) == (1, False)
    reader.block(*reader.commits(1, 2))
    limit = current.deadline + reader.params.commit_blocks
    reader.skip_to(limit - 1)
    assert reader.current.closed is None
    reader.block()
    told = reader.summaries[-1]
    assert (told.outcome, told.reason, told.ended) == (Outcome.VOID, VoidReason.FLOOR, limit)
    reader.environment = Environment(NO_EPOCHS, ((address(1), 5), (address(2), 5)))
    reader.skip_to(reader.current.deadline + reader.params.commit_blocks)
    assert reader.current.roster.decides
    assert reader.play(1, 2).outcome is Outcome.FINAL


def test_a_revoked_member_keeps_its_weight_but_not_its_word() -> None:
    reader = Reader(params(2))
    reader.open_with(1, 2)
    reader.block((address(2), Revoke(address(2), Height(reader.now))), *reader.commits(1, 2))
    reader.play(1, 2)
    assert reader.current.roster.seats[1] == Seat(address(2), 1, False)


BASE = _joined(1, 2)
ONE = BASE.standing(address(1))
PLACE = Place(Height(7), 0, 0)
ABOUT = Segment(address(2), 1, 4)


@pytest.mark.parametrize(
    "changed",
    [
        BASE.with_standing(address(3), Standing(delegate=key(3))),
        BASE.with_standing(address(1), replace(ONE, absence=1)),
        BASE.with_standing(address(1), replace(ONE, written=Height(7))),
        BASE.with_standing(address(1), replace(ONE, delegate=key(1))),
        BASE.with_standing(address(1), replace(ONE, delegated=PLACE)),
        BASE.with_standing(address(1), replace(ONE, revoked=PLACE)),
        BASE.with_standing(address(9), Standing(left=PLACE)),
        BASE.with_standing(address(9), Standing(barred=Height(7))),
        BASE.with_standing(address(9), Standing(excluded=4)),
        BASE.with_standing(address(9), Standing(excluded=0)),
        BASE.with_standing(address(9), Standing()),
        BASE.with_key(key(1), KeyEntry(Height(1))),
        BASE.with_key(key(1), KeyEntry(Height(1), join(address(5), 1), PLACE)),
        replace(BASE, ever=frozenset([address(1)])),
        replace(BASE, verdicts={(address(1), ABOUT): (2, digest("e"))}),
        replace(BASE, verdicts={(address(1), ABOUT): (3, digest("e"))}),
        replace(BASE, tallied=frozenset([(ABOUT, 2)])),
        replace(BASE, challenges={(address(1), ABOUT): Height(7)}),
    ],
)
def test_the_roster_digest_covers_the_whole_membership(changed: Membership) -> None:
    rules, environment = params(2), Environment(NO_EPOCHS, ())
    assert _draw(rules, changed, environment).digest != _draw(rules, BASE, environment).digest


def test_the_roster_digest_covers_round_height_and_weights() -> None:
    rules = params(None)
    digests = {
        draw(rules, BASE, _weights(n1=5, n2=5), 3, Height(100)).digest,
        draw(rules, BASE, _weights(n1=5, n2=6), 3, Height(100)).digest,
        draw(rules, BASE, _weights(n1=5, n2=5), 4, Height(100)).digest,
        draw(rules, BASE, _weights(n1=5, n2=5), 3, Height(101)).digest,
    }
    assert len(digests) == 4


def test_the_roster_digest_does_not_depend_on_the_order_in_memory() -> None:
    backwards = replace(
        BASE,
        keys=dict(reversed(BASE.keys.items())),
        participants=dict(reversed(BASE.participants.items())),
    )
    environment = Environment(NO_EPOCHS, ())
    assert _draw(params(2), backwards, environment).digest == _draw(params(2), BASE, environment).digest
