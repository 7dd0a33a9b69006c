"""Who speaks for whom (docs/protocol.md 1) and the heights that joins, leaves, delegates and revokes carry (2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from round_world import Reader, address, join, key, params

from gonka_trainer.round.membership import Membership, Place, apply
from gonka_trainer.round.records import Delegate, Join, Leave, Record, Revoke
from gonka_trainer.types import Address, Height, Role

P, Q, K, L = address(1), address(2), key(1), key(2)


class Log:
    """Membership records one after another, each in a block of its own unless told otherwise."""

    def __init__(self) -> None:
        self.members = Membership()
        self.height = 0

    def say(self, author: Address, record: Record, same_block: bool = False) -> str:
        self.height += not same_block
        place = Place(Height(self.height), 1 if same_block else 0, 0)
        self.members, why = apply(self.members, place, author, record)
        return why

    def join(self, author: Address, participant: Address, role: Role = Role.MEMBER) -> None:
        assert self.say(author, join(participant, self.height + 1, role)) == ""

    def delegate(self, participant: Address, to: Address) -> None:
        assert self.say(participant, Delegate(to, Height(self.height + 1))) == ""

    def revoke(self, participant: Address, of: Address) -> None:
        assert self.say(participant, Revoke(of, Height(self.height + 1))) == ""

    def leave(self, author: Address, participant: Address) -> str:
        return self.say(author, Leave(participant, Height(self.height + 1)))

    def speaker(self, participant: Address) -> Address | None:
        return self.members.standing(participant).speaker


def test_a_participants_own_key_needs_no_delegate() -> None:
    log = Log()
    log.join(P, P)
    assert log.speaker(P) == P
    assert log.members.speaks_for(P) == P
    assert log.members.is_member(P)


@pytest.mark.parametrize("delegate_first", [True, False])
def test_another_key_speaks_once_both_have_spoken(delegate_first: bool) -> None:
    log = Log()
    steps = [lambda: log.delegate(P, K), lambda: log.join(K, P)]
    first, second = steps if delegate_first else steps[::-1]
    first()
    assert log.speaker(P) is None
    second()
    assert log.speaker(P) == K
    assert log.members.is_member(P)


def test_a_stranger_that_joins_for_a_participant_changes_nothing() -> None:
    log = Log()
    log.join(P, P)
    log.join(L, P)
    assert log.speaker(P) == P
    assert log.members.speaks_for(L) is None


def test_the_old_pair_speaks_until_the_newer_one_is_complete() -> None:
    log = Log()
    log.join(P, P)
    log.delegate(P, K)
    assert log.speaker(P) == P
    log.join(K, P)
    assert log.speaker(P) == K
    log.delegate(P, L)
    assert log.speaker(P) == K
    log.join(K, P)
    assert log.speaker(P) == K
    assert log.members.is_member(P)
    log.join(L, P)
    assert log.speaker(P) == L


def test_the_speaking_keys_own_joins_count_while_another_is_named() -> None:
    log = Log()
    log.delegate(P, K)
    log.join(K, P)
    log.delegate(P, L)
    log.members = log.members.with_standing(P, replace(log.members.standing(P), absence=2))
    log.join(K, P)
    assert log.members.standing(P).absence == 0


def test_a_join_that_waits_does_not_end_absence() -> None:
    log = Log()
    log.join(P, P)
    log.members = log.members.with_standing(P, replace(log.members.standing(P), absence=2))
    log.join(K, P)
    log.delegate(P, K)
    assert log.speaker(P) == K
    assert log.members.standing(P).absence == 2


def test_a_pair_that_has_ended_speaks_again_only_after_a_new_join_or_delegate() -> None:
    log = Log()
    log.join(P, P)
    log.delegate(P, K)
    log.join(K, P)
    log.revoke(P, K)
    assert log.speaker(P) is None
    assert not log.members.is_member(P)
    log.join(K, P)
    assert log.speaker(P) is None
    log.delegate(P, K)
    assert log.speaker(P) == K
    log.revoke(P, K)
    log.join(P, P)
    assert log.speaker(P) == P


def test_a_revoke_of_a_key_that_does_not_speak_only_takes_the_delegate() -> None:
    log = Log()
    log.join(P, P)
    log.delegate(P, K)
    log.revoke(P, K)
    log.join(K, P)
    assert log.speaker(P) == P


def test_a_key_that_joins_another_participant_ends_its_pair() -> None:
    log = Log()
    log.delegate(P, K)
    log.join(K, P)
    log.join(K, Q)
    assert log.speaker(P) is None
    assert log.speaker(Q) is None
    log.delegate(Q, K)
    assert log.speaker(Q) == K
    log.delegate(P, K)
    assert log.speaker(P) is None
    log.join(K, P)
    assert log.speaker(P) == K
    assert log.speaker(Q) is None


def test_the_participants_own_join_is_a_newer_pair() -> None:
    log = Log()
    log.delegate(P, K)
    log.join(K, P)
    log.join(P, P)
    assert log.speaker(P) == P
    log.join(K, P)
    assert log.speaker(P) == K


def test_leave_counts_from_the_participant_or_its_speaking_key() -> None:
    log = Log()
    log.delegate(P, K)
    log.join(K, P)
    assert log.leave(L, P) != ""
    assert log.members.is_member(P)
    assert log.leave(K, P) == ""
    assert not log.members.is_member(P)
    log.join(K, P)
    assert log.members.is_member(P)
    assert log.leave(P, P) == ""
    assert not log.members.is_member(P)


def test_a_delegate_after_a_leave_does_not_bring_an_older_join_back() -> None:
    log = Log()
    log.join(K, P)
    log.leave(P, P)
    log.delegate(P, K)
    assert log.speaker(P) == K
    assert not log.members.is_member(P)
    log.join(K, P)
    assert log.members.is_member(P)


def test_leave_and_join_in_one_block_count_in_their_order() -> None:
    log = Log()
    log.join(P, P)
    log.say(P, Leave(P, Height(2)))
    log.say(P, join(P, 1), same_block=True)
    assert not log.members.is_member(P)
    log.say(P, join(P, 3))
    log.say(P, Leave(P, Height(3)), same_block=True)
    assert log.members.is_member(P)
    log.height += 1
    assert log.say(P, Leave(P, Height(4)), same_block=True) == ""
    assert not log.members.is_member(P)


@pytest.mark.parametrize("role", [Role.VALIDATOR, Role.OBSERVER])
def test_only_members_have_a_vote(role: Role) -> None:
    log = Log()
    log.join(P, P, role)
    assert log.members.join_of(P) is not None
    assert not log.members.is_member(P)


def test_delegate_and_revoke_share_one_height() -> None:
    log = Log()
    log.height = 9
    assert log.say(P, Delegate(K, Height(7))) == ""
    assert log.say(P, Revoke(K, Height(7))) != ""
    assert log.members.standing(P).delegate == K
    assert log.say(P, Revoke(K, Height(8))) == ""
    assert log.say(P, Delegate(K, Height(8))) != ""
    assert log.say(Q, Delegate(K, Height(8))) == ""


def test_join_and_leave_share_one_height_for_each_author() -> None:
    log = Log()
    log.height = 9
    assert log.say(P, join(P, 5)) == ""
    assert log.say(P, Leave(P, Height(5))) != ""
    assert log.say(P, Leave(P, Height(6))) == ""
    assert log.say(P, join(P, 6)) != ""
    assert not log.members.is_member(P)
    assert log.say(K, join(P, 5)) == ""


def test_a_height_above_the_blocks_is_nothing_and_takes_no_key() -> None:
    log = Log()
    assert log.say(P, join(P, 2)) != ""
    assert not log.members.is_member(P)
    assert log.say(P, join(P, 1)) == ""


def test_every_change_counts_from_the_next_opening() -> None:
    reader = Reader(params(4))
    reader.open_with(1, 2, 3)
    hot = key(1)
    reader.block((address(1), Delegate(hot, Height(2))), (hot, join(address(1), 2)), (address(4), join(address(4), 2)))
    assert set(reader.current.roster.keys) == {address(1), address(2), address(3)}
    reader.play(1, 2, 3)
    assert set(reader.current.roster.keys) == {hot, address(2), address(3), address(4)}
    assert reader.current.roster.keys[hot] == address(1)


def test_the_roster_is_that_of_the_block_before_the_opening() -> None:
    reader = Reader(params(3))
    reader.block((address(1), join(address(1), 1)), (address(2), join(address(2), 1)))
    reader.skip_to(2)
    opened = reader.block((address(3), join(address(3), 3))).current
    assert opened is not None
    assert opened.opened == 4
    assert len(opened.roster.seats) == 3
    late = Reader(params(3))
    late.block((address(1), join(address(1), 1)), (address(2), join(address(2), 1)))
    late.skip_to(3)
    assert len(late.block((address(3), join(address(3), 4))).current.roster.seats) == 2  # type: ignore[union-attr]


def test_the_join_that_counts_is_kept_for_those_who_connect() -> None:
    log = Log()
    log.join(P, P)
    found = log.members.join_of(P)
    assert isinstance(found, Join)
    assert (found.host, found.port) == (b"host.example", 7000)
