"""The naive model: what PROTOCOL.md says about a whole chain, computed from scratch by plain loops.

It shares nothing with the core but the plain dataclasses, keeps nothing between two questions that it could compute
again, and prefers the sentence of the rules to speed. `rounds_of` is the whole interface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gonka_trainer.errors import DecodeError
from gonka_trainer.round import bitmap
from gonka_trainer.round.environment import Environment, environment_digest
from gonka_trainer.round.events import BlockSeen
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.records import Attest, Challenge, Commit, StateRoot, VerdictRecord
from gonka_trainer.types import Address, Digest, sha256

from .model_digest import roster_digest
from .model_members import Members, Place, members_at

NO_ANSWER = 1
"""The outcome of a verdict that counts only after the window of a challenge."""

EnvironmentOf = Callable[[int], Environment]
Triple = tuple[Digest, Digest, Digest]


@dataclass
class ModelRound:
    """One round as the rules have it; `reason` says which rule voided it, `notes` counts what was nothing."""

    number: int
    opened: int
    deadline: int
    base_root: Digest
    environment: Environment
    seats: tuple[tuple[Address, int, bool], ...]
    keys: dict[Address, Address]
    weight: int
    decides: bool
    fresh_environment: bool
    roster_digest: Digest
    commits: dict[Address, tuple[Digest, int]] = field(default_factory=dict)
    closed: int | None = None
    attests: dict[Address, set[Address]] = field(default_factory=dict)
    extensions: int = 0
    frozen: int | None = None
    included: tuple[Address, ...] = ()
    posts: dict[Address, tuple[Triple, int]] = field(default_factory=dict)
    ended: int | None = None
    final: bool = False
    root: Digest | None = None
    reason: str = ""
    dropped: tuple[Address, ...] = ()
    excluded: tuple[Address, ...] = ()
    notes: list[str] = field(default_factory=list)

    def weight_of(self, people: set[Address]) -> int:
        return sum(weight for who, weight, voice in self.seats if voice and who in people)

    @property
    def voices(self) -> set[Address]:
        return {who for who, _, voice in self.seats if voice}

    @property
    def silent(self) -> set[Address]:
        return {who for who, _, voice in self.seats if not voice}


def list_digest(close_hash: Digest, committers: Sequence[Address]) -> bytes:
    """Layout as the protocol's text gives it: the tag, the block hash at the close, the sorted addresses."""
    return sha256(b"gonka-trainer/committers/1", close_hash, *sorted(committers))[:16]


class Model:
    """All rounds of a chain. `blocks` are contiguous; `environment` answers for every height of them."""

    def __init__(self, params: RoundParams, blocks: Sequence[BlockSeen], environment: EnvironmentOf) -> None:
        self.params = params
        self.blocks = [b for b in blocks if b.height >= params.log_height]
        self.environment = environment
        self.rounds: list[ModelRound] = []
        self.known: dict[Place, Address | None] = {}  # who challenged there; asked often, and the past is settled

    # -- openings ---------------------------------------------------------------------------------------------------

    def tip(self) -> int:
        return self.blocks[-1].height if self.blocks else 0

    def members(self, upto: int) -> Members:
        return members_at(self.params, self.blocks, self.rounds, upto)

    def weights(self, environment: Environment) -> dict[Address, int]:
        if self.params.equal_members is not None:
            return dict.fromkeys(self.params.equal_members, 1)
        return dict(environment.weights)

    def seat(self, number: int, members: Members, environment: Environment) -> tuple[tuple[Address, int, bool], ...]:
        """The seats of a round at whose opening membership is this, under this environment."""
        weights = self.weights(environment)
        here = [p for p in members.speaking if members.eligible(p, number) and weights.get(p, 0) > 0]
        here.sort(key=lambda p: (-weights[p], p))
        here = here[: self.params.roster_limit]
        total = sum(weights[p] for p in here)
        gone = [p for p in self.ever() if members.departed(p, number) and weights.get(p, 0) > 0 and p not in here]
        gone.sort(key=lambda p: (-weights[p], p))
        silent: list[Address] = []
        for p in gone:
            if total >= self.params.min_weight:
                break
            silent.append(p)
            total += weights[p]
        return tuple(sorted([(p, weights[p], True) for p in here] + [(p, weights[p], False) for p in silent]))

    def ever(self) -> set[Address]:
        """All who were ever in an R that could decide."""
        return {who for r in self.rounds if r.decides for who, _, _ in r.seats}

    def open(self, number: int, opened: int) -> ModelRound:
        before = opened - 1
        members = self.members(before)
        final = [r for r in self.rounds if r.final]
        environment, fresh = self.environment(before), True
        seats = self.seat(number, members, environment)
        if final:
            frozen = final[-1].frozen
            assert frozen is not None
            kept = self.environment(frozen)
            under = self.seat(number, members, kept)
            if sum(w for _, w, _ in under) >= self.params.min_weight:
                environment, seats, fresh = kept, under, False
        base = self.params.initial_root
        for r in final:
            assert r.root is not None
            base = r.root
        weight = sum(w for _, w, _ in seats)
        keys = {who: members.speaking[who] for who, _, voice in seats if voice}
        deadline = self.deadline(environment, opened)
        decides = weight >= self.params.min_weight
        digest = roster_digest(self, members, seats, environment, number, before)
        return ModelRound(number, opened, deadline, base, environment, seats, keys, weight, decides, fresh, digest)

    def deadline(self, environment: Environment, opened: int) -> int:
        height, left = opened, self.params.train_blocks
        while left:
            height += 1
            if not self.poc(environment, height):
                left -= 1
        return height

    def poc(self, environment: Environment, height: int) -> bool:
        s = environment.schedule
        if s.epoch_length_blocks == 0:
            return False
        start = s.poc_start
        length = s.poc_stage_blocks + s.poc_validation_delay_blocks + s.poc_validation_blocks
        while start - self.params.margin_blocks <= height:
            if height < start + length:
                return True
            start += s.epoch_length_blocks  # type: ignore[assignment]
        return False

    # -- what counts ------------------------------------------------------------------------------------------------

    def said(self, r: ModelRound, first: int, last: int, kind: type) -> list[tuple[Address, object, int]]:
        """(participant, record, height) of this kind by those with a voice, in order, within the heights."""
        by_key = {key: who for who, key in r.keys.items()}
        return [
            (by_key[placed.author], placed.record, block.height)
            for block in self.between(first, last)
            for placed in block.records
            if isinstance(placed.record, kind) and placed.author in by_key
        ]

    def commits(self, r: ModelRound, last: int) -> dict[Address, tuple[Digest, int]]:
        limit = r.deadline + self.params.commit_blocks
        out: dict[Address, tuple[Digest, int]] = {}
        for who, record, height in self.said(r, r.opened, min(last, limit), Commit):
            assert isinstance(record, Commit)
            if record.round != r.number:
                continue
            if who not in out:
                out[who] = (record.commitment, height)
            elif out[who][0] != record.commitment and height == last:
                r.notes.append("equivocation: commit")
        return out

    def attests(self, r: ModelRound, last: int) -> dict[Address, set[Address]]:
        assert r.closed is not None
        committers = sorted(r.commits)
        wanted = list_digest(self.block(r.closed).block_hash, committers)
        out: dict[Address, set[Address]] = {}
        for who, record, height in self.said(r, r.closed + 1, last, Attest):
            assert isinstance(record, Attest)
            if record.round != r.number:
                continue
            if record.list_digest != wanted:
                r.notes.append("attest: list digest") if height == last else None
                continue
            try:
                bits = bitmap.unpack(record.bitmap, len(committers))
            except DecodeError:
                r.notes.append("attest: bitmap") if height == last else None
                continue
            out.setdefault(who, set()).update(committers[i] for i in bits)
        return out

    def posts(self, r: ModelRound, last: int) -> dict[Address, tuple[Triple, int]]:
        assert r.frozen is not None
        out: dict[Address, tuple[Triple, int]] = {}
        for who, record, height in self.said(r, r.frozen + 1, last, StateRoot):
            assert isinstance(record, StateRoot)
            if record.round != r.number:
                continue
            triple = (record.root, record.environment, record.roster)
            if who not in out:
                out[who] = (triple, height)
            elif out[who][0] != triple and height == last:
                r.notes.append("equivocation: state")
        return out

    def between(self, first: int, last: int) -> Sequence[BlockSeen]:
        start = self.blocks[0].height
        return self.blocks[first - start : last + 1 - start]

    def block(self, height: int) -> BlockSeen:
        return self.blocks[height - self.blocks[0].height]

    # -- a round's way ----------------------------------------------------------------------------------------------

    def run_commit(self, r: ModelRound) -> bool:
        limit = r.deadline + self.params.commit_blocks
        for height in range(r.opened, min(limit, self.tip()) + 1):
            r.commits = self.commits(r, height)
            everybody = r.decides and bool(r.voices) and set(r.commits) == r.voices
            if not everybody and height < limit:
                continue
            r.closed = height
            if not r.decides:
                return self.void(r, height, "floor")
            if 2 * r.weight_of(set(r.commits)) <= r.weight:
                return self.void(r, height, "commit")
            return True
        return False

    def run_attest(self, r: ModelRound) -> bool:
        assert r.closed is not None
        for height in range(r.closed + 1, self.tip() + 1):
            r.attests = self.attests(r, height)
            included = {
                c
                for c in r.commits
                if 2 * r.weight_of({who for who, seen in r.attests.items() if c in seen}) > r.weight
            }
            at_limit = height == r.closed + self.params.attest_blocks * (1 + r.extensions)
            if included == set(r.commits) or (at_limit and 2 * r.weight_of(included) > r.weight):
                r.frozen, r.included = height, tuple(sorted(included))
                return True
            if at_limit and r.extensions == self.params.extensions:
                return self.void(r, height, "attest")
            if at_limit:
                r.extensions += 1
        return False

    def run_state(self, r: ModelRound) -> bool:
        assert r.frozen is not None
        for height in range(r.frozen + 1, min(r.frozen + self.params.state_blocks, self.tip()) + 1):
            r.posts = self.posts(r, height)
            for triple in sorted({t for t, _ in r.posts.values()}):
                if 2 * r.weight_of({who for who, (t, _) in r.posts.items() if t == triple}) > r.weight:
                    r.ended, r.final, r.root = height, True, triple[0]
                    assert triple[1] == environment_digest(self.environment(r.frozen)), "a junk environment is final"
                    return True
            if height == r.frozen + self.params.state_blocks:
                return self.void(r, height, "state")
        return False

    def void(self, r: ModelRound, height: int, reason: str) -> bool:
        r.ended, r.reason = height, reason
        return False

    def settle(self, r: ModelRound) -> None:
        """Drops and exclusions at the end of a round, after the records of its ending block."""
        assert r.ended is not None
        r.dropped = tuple(sorted(p for p, at in self.members(r.ended).dropped.items() if at == r.ended))
        if r.decides:
            r.excluded = self.excluded(r)

    def excluded(self, r: ModelRound) -> tuple[Address, ...]:
        """Subjects of verdicts that get more than W/2 of this R at its end and did not at an earlier one."""
        now = self.tally(r)
        earlier: set[tuple[Address, int, int, int]] = set()
        for q in self.rounds:
            if q.number < r.number and q.decides:
                earlier |= self.tally(q)
        return tuple(sorted({subject for subject, *_ in now - earlier}))

    def tally(self, r: ModelRound) -> set[tuple[Address, int, int, int]]:
        """(subject, round, segment, outcome) for which voices of more than W/2 of this R stand at its end."""
        assert r.ended is not None
        said: dict[tuple[Address, Address, int, int], int] = {}
        for place, who, record in self.verdicts(r.ended):
            if record.outcome != NO_ANSWER or self.answer_was_due(record, place):
                said.setdefault((who, record.subject, record.round, record.segment), record.outcome)
        wanted = {(subject, n, segment, outcome) for (_, subject, n, segment), outcome in said.items() if outcome}
        return {
            w
            for w in wanted
            if 2 * r.weight_of({k[0] for k, outcome in said.items() if (*k[1:], outcome) == w}) > r.weight
        }

    def verdicts(self, upto: int) -> list[tuple[Place, Address, VerdictRecord]]:
        """All verdicts by those who had a voice in the round that was open."""
        out: list[tuple[Place, Address, VerdictRecord]] = []
        for q in self.rounds:
            by_key = {key: who for who, key in q.keys.items()}
            for block in self.between(q.opened, min(q.ended or upto, upto)):
                for placed in block.records:
                    if isinstance(placed.record, VerdictRecord) and placed.author in by_key:
                        at = (block.height, placed.transaction, placed.message)
                        out.append((at, by_key[placed.author], placed.record))
        return out

    def answer_was_due(self, verdict: VerdictRecord, place: Place) -> bool:
        """Whether the window of somebody's latest challenge on the segment was over at the verdict's place."""
        about = (verdict.subject, verdict.round, verdict.segment)
        latest = {who: at for at, who, what in self.challenges(place) if what == about}
        return any(place[0] > at[0] + self.params.challenge_blocks for at in latest.values())

    def challenges(self, before: Place) -> list[tuple[Place, Address, tuple[Address, int, int]]]:
        """All challenges by members and validators before this place, in order."""
        out: list[tuple[Place, Address, tuple[Address, int, int]]] = []
        for block in self.blocks:
            for placed in block.records:
                record, at = placed.record, (block.height, placed.transaction, placed.message)
                if isinstance(record, Challenge) and at < before:
                    who = self.challenger(at, placed.author)
                    if who is not None:
                        out.append((at, who, (record.subject, record.round, record.segment)))
        return out

    def challenger(self, at: Place, author: Address) -> Address | None:
        if at not in self.known:
            members = members_at(self.params, self.blocks, self.rounds, at[0], before=at)
            self.known[at] = members.challenger(author, self.number_at(at[0]))
        return self.known[at]

    def number_at(self, height: int) -> int:
        """The round that is open in this block, or the first."""
        return max([r.number for r in self.rounds if r.opened <= height], default=0)

    def run(self) -> list[ModelRound]:
        opened = self.first_opening()
        while opened is not None and opened <= self.tip():
            if self.params.rounds and len(self.rounds) >= self.params.rounds:
                break
            r = self.open(len(self.rounds), opened)
            self.rounds.append(r)
            _ = self.run_commit(r) and self.run_attest(r) and self.run_state(r)
            if r.ended is None:
                break
            self.settle(r)
            opened = r.ended + 1
        return self.rounds

    def first_opening(self) -> int | None:
        for block in self.blocks:
            if block.height < self.params.start_height:
                continue
            seats = self.seat(0, self.members(block.height), self.environment(block.height))
            if sum(w for _, w, _ in seats) >= self.params.min_weight:
                return block.height + 1
        return None


def rounds_of(params: RoundParams, blocks: Sequence[BlockSeen], environment: EnvironmentOf) -> list[ModelRound]:
    """Return all rounds that opened within these blocks, the last perhaps without an end."""
    return Model(params, blocks, environment).run()
