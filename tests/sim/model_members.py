"""The naive model's view of membership at the end of a block: every record from the log's start is read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.records import Delegate, Join, Leave, PlacedRecord, Revoke
from gonka_trainer.types import Address, Role

if TYPE_CHECKING:
    from .model import ModelRound

Place = tuple[int, int, int]
"""Block, transaction, message."""


@dataclass
class Members:
    """Who speaks for whom at the end of a block, and what took whom out of the roster."""

    speaking: dict[Address, Address] = field(default_factory=dict)
    joins: dict[Address, tuple[Place, Join]] = field(default_factory=dict)  # by key: its latest join
    delegates: dict[Address, Address] = field(default_factory=dict)
    left: dict[Address, Place] = field(default_factory=dict)
    delegated: dict[Address, Place] = field(default_factory=dict)
    revoked: dict[Address, Place] = field(default_factory=dict)
    touched: set[Address] = field(default_factory=set)  # participants of whom anything is known
    absences: dict[Address, int] = field(default_factory=dict)
    dropped: dict[Address, int] = field(default_factory=dict)  # height of the latest drop
    shut: dict[Address, tuple[int, int | None]] = field(default_factory=dict)  # last excluded round, its end
    served: dict[Address, int] = field(default_factory=dict)  # the latest end of a last excluded round
    counted: list[tuple[int, Address]] = field(default_factory=list)  # joins that counted: block, participant
    written_above: dict[tuple[str, Address], int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def eligible(self, who: Address, number: int) -> bool:
        """Whether `who` is in R at the opening of round `number`, weights aside."""
        key = self.speaking.get(who)
        return key is not None and self.joins[key][1].role is Role.MEMBER and not self.out(who, number)

    def out(self, who: Address, number: int) -> bool:
        """Left, dropped or excluded since the join of the key that speaks."""
        place = self.joins[self.speaking[who]][0]
        if who in self.left and self.left[who] > place:
            return True
        if who in self.dropped and self.dropped[who] >= place[0]:
            return True
        if who not in self.shut:
            return False
        last, ended = self.shut[who]
        return number <= last or ended is None or place[0] <= ended

    def departed(self, who: Address, number: int) -> bool:
        """Dropped, left, excluded, without a speaking key (revoked, or the key joined another), no member any more."""
        return not self.eligible(who, number)

    def challenger(self, key: Address, number: int) -> Address | None:
        """The participant for whom this key may challenge: a member or validator that is in the run."""
        for who, speaker in self.speaking.items():
            if speaker == key and self.joins[key][1].role is not Role.OBSERVER and not self.out(who, number):
                return who
        return None


def _complete(m: Members, key: Address, who: Address) -> bool:
    bound = key in m.joins and m.joins[key][1].participant == who
    return bound and (key == who or m.delegates.get(who) == key)


def _fresh(m: Members, kind: str, owner: Address, written: int, height: int) -> bool:
    if written > height or written <= m.written_above.get((kind, owner), 0):
        m.notes.append(f"{kind}: written height")
        return False
    m.written_above[kind, owner] = written
    return True


def _join(m: Members, author: Address, join: Join, place: Place) -> None:
    if not _fresh(m, "join", author, join.written, place[0]):
        return
    for who in [w for w, key in m.speaking.items() if key == author and w != join.participant]:
        del m.speaking[who]
        m.notes.append("join: another participant")
    m.joins[author] = (place, join)
    own = m.speaking.get(join.participant) == author
    if own or _complete(m, author, join.participant):
        if not own and join.participant in m.speaking:
            m.notes.append("join: key rotated")
        m.speaking[join.participant] = author
        m.counted.append((place[0], join.participant))
        m.touched.add(join.participant)


def _delegate(m: Members, author: Address, record: Delegate, place: Place) -> None:
    if not _fresh(m, "delegate", author, record.written, place[0]):
        return
    m.delegates[author], m.delegated[author] = record.key, place
    m.touched.add(author)
    if _complete(m, record.key, author):
        if m.speaking.get(author) not in {None, record.key}:
            m.notes.append("delegate: key rotated")
        m.speaking[author] = record.key


def _revoke(m: Members, author: Address, record: Revoke, place: Place) -> None:
    if not _fresh(m, "delegate", author, record.written, place[0]):
        return
    m.revoked[author] = place
    m.touched.add(author)
    if m.delegates.get(author) == record.key:
        del m.delegates[author]
    if m.speaking.get(author) == record.key:
        del m.speaking[author]
        m.notes.append("revoke")


def _leave(m: Members, author: Address, record: Leave, place: Place) -> None:
    if author not in {record.participant, m.speaking.get(record.participant)}:
        m.notes.append("leave: in the name of another")
    elif _fresh(m, "join", author, record.written, place[0]):
        m.left[record.participant] = place
        m.touched.add(record.participant)
        m.notes.append("leave")


def _read(m: Members, block: BlockSeen, placed: PlacedRecord) -> None:
    place = (block.height, placed.transaction, placed.message)
    match placed.record:
        case Join() as join:
            _join(m, placed.author, join, place)
        case Delegate() as delegate:
            _delegate(m, placed.author, delegate, place)
        case Revoke() as revoke:
            _revoke(m, placed.author, revoke, place)
        case Leave() as leave:
            _leave(m, placed.author, leave, place)
        case _:
            pass


def _absences(m: Members, params: RoundParams, rounds: Sequence[ModelRound], upto: int) -> None:
    """Joins and commits set to 0; then, after the records of a final round's last block, who was silent grows by 1."""
    resets = [(at, 0, who) for at, who in m.counted]
    resets += [(at, 0, who) for r in rounds for who, (_, at) in r.commits.items()]
    grows = [(r.ended, 1, who) for r in rounds if r.final and r.ended for who in r.voices - set(r.commits)]
    for height, grown, who in sorted(resets + grows):
        if height > upto:
            break
        m.absences[who] = m.absences.get(who, 0) + 1 if grown else 0
        m.touched |= {who} if grown else set()
        if m.absences[who] >= params.absent_rounds:
            m.dropped[who] = height


def _exclusions(m: Members, params: RoundParams, rounds: Sequence[ModelRound], upto: int) -> None:
    for r in rounds:
        if r.ended is None or r.ended > upto:
            break
        for who, (last, _) in list(m.shut.items()):
            if last == r.number:
                m.shut[who], m.served[who] = (last, r.ended), r.ended
        for who in r.excluded:
            m.shut[who] = (max(r.number + params.exclusion_rounds, m.shut.get(who, (0, None))[0]), None)
            m.touched.add(who)


def members_at(
    params: RoundParams,
    blocks: Sequence[BlockSeen],
    rounds: Sequence[ModelRound],
    upto: int,
    before: Place | None = None,
) -> Members:
    """Membership at the end of block `upto`, given the rounds so far; or in that block, at the record `before`."""
    m = Members()
    for block in blocks:
        if block.height <= upto:
            for placed in block.records:
                if before is None or (block.height, placed.transaction, placed.message) < before:
                    _read(m, block, placed)
    ended = upto if before is None else upto - 1
    _absences(m, params, rounds, ended)
    _exclusions(m, params, rounds, ended)
    return m
