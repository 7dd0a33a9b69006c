"""The roster R of a round: seats, voices, weights, keys, frozen at the opening (docs/protocol.md, assumption and 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from gonka_trainer.round.environment import Environment, environment_digest
from gonka_trainer.round.membership import Membership
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.roster_bytes import RosterState, Settled, encode_roster, roster_digest
from gonka_trainer.round.summary import Seat
from gonka_trainer.types import Address, Digest, Height


@dataclass(frozen=True)
class Roster:
    """R of one round. `seats` are sorted by address; `keys` says which key speaks for whom and has voices only.

    `weight` is W, the weight of all seats; `decides` whether it reaches min_weight; `digest` the roster digest, and
    `preimage` the bytes under it.
    """

    seats: tuple[Seat, ...]
    keys: Mapping[Address, Address]
    weight: int
    decides: bool
    digest: Digest
    preimage: bytes = b""

    @cached_property
    def voices(self) -> Mapping[Address, int]:
        """The weight of each participant with a voice."""
        return {seat.participant: seat.weight for seat in self.seats if seat.voice}

    def majority(self, weight: int) -> bool:
        """Whether this weight is more than W/2."""
        return 2 * weight > self.weight


def weights(params: RoundParams, environment: Environment) -> Mapping[Address, int]:
    """Return the weight of everybody who may be in a roster: of the manifest's list, else the environment's."""
    if params.equal_members is not None:
        return dict.fromkeys(params.equal_members, 1)
    return environment.by_address


def draw(
    params: RoundParams,
    members: Membership,
    environment: Environment,
    number: int,
    last_height: Height,
    settled: Settled | None = None,
) -> Roster:
    """Return R of round `number` from the membership at the end of block `last_height` = O - 1.

    `settled` is the last final round; the weights are those of `environment`, or the manifest's.
    """
    by_address = weights(params, environment)
    voices = _heaviest(members.members(), by_address)[: params.roster_limit]
    weight = sum(by_address[p] for p in voices)
    silent = _silent(params, members, by_address, weight)
    weight += sum(by_address[p] for p in silent)
    heard = frozenset(voices)
    seats = tuple(Seat(p, by_address[p], voice=p in heard) for p in sorted(heard.union(silent)))
    keys = {key: p for p in voices if (key := members.standing(p).speaker) is not None}
    covered = RosterState(number, last_height, environment_digest(environment), settled, seats, members)
    preimage = encode_roster(covered)
    return Roster(seats, keys, weight, weight >= params.min_weight, roster_digest(preimage), preimage)


def joined_weight(params: RoundParams, members: Membership, environment: Environment) -> int:
    """Return the weight of all members, as far as the roster's limit lets them in."""
    by_address = weights(params, environment)
    return sum(by_address[p] for p in _heaviest(members.members(), by_address)[: params.roster_limit])


def _silent(params: RoundParams, members: Membership, by_address: Mapping[Address, int], weight: int) -> list[Address]:
    """Return just enough of the departed, heaviest first, to bring `weight` up to min_weight (all, if too few)."""
    chosen: list[Address] = []
    for participant in _heaviest((p for p in members.ever if not members.is_member(p)), by_address):
        if weight >= params.min_weight:
            break
        chosen.append(participant)
        weight += by_address[participant]
    return chosen


def _heaviest(participants: Iterable[Address], by_address: Mapping[Address, int]) -> list[Address]:
    """Return those with a weight, heaviest first, ties by address."""
    return sorted((p for p in participants if by_address.get(p, 0) > 0), key=lambda p: (-by_address[p], p))
