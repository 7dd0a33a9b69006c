"""Random records and events for the property tests."""

from __future__ import annotations

from hypothesis import strategies as st
from round_world import INITIAL, address, digest, key

from gonka_trainer.round.environment import NO_EPOCHS, Environment, EpochSchedule
from gonka_trainer.round.events import (
    BlobHeld,
    CaughtUp,
    EnvironmentRead,
    PossessionProved,
    StateComputed,
    StateSynced,
    UpdateReady,
)
from gonka_trainer.round.records import (
    Announce,
    Attest,
    Challenge,
    Commit,
    Delegate,
    Heartbeat,
    Join,
    Leave,
    Missing,
    Revoke,
    Secret,
    StateRoot,
    VerdictRecord,
)
from gonka_trainer.types import Role

U8, U16 = st.integers(0, 255), st.integers(0, (1 << 16) - 1)
U32, U64 = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
ADDRESS, DIGEST, HALF = (st.binary(min_size=n, max_size=n) for n in (20, 32, 16))
ROLE = st.sampled_from(list(Role))


def _free(limit: int) -> st.SearchStrategy[bytes]:
    return st.binary(max_size=limit)


RECORDS = st.one_of(
    st.builds(Announce, DIGEST, _free(120)),
    st.builds(Delegate, ADDRESS, U64),
    st.builds(Revoke, ADDRESS, U64),
    st.builds(Join, ADDRESS, ROLE, DIGEST, _free(64), U16, _free(24), U64),
    st.builds(Leave, ADDRESS, U64),
    st.builds(Commit, U32, DIGEST),
    st.builds(Attest, U32, HALF, HALF, _free(128)),
    st.builds(StateRoot, U32, DIGEST, DIGEST, DIGEST),
    st.builds(Missing, U32, _free(128)),
    st.builds(Challenge, ADDRESS, U32, U32),
    st.builds(VerdictRecord, ADDRESS, U32, U32, U8, DIGEST),
    st.builds(Secret, U32, st.integers(0, 1), DIGEST),
    st.builds(Heartbeat, U32, U32),
)
"""Any record."""

PEOPLE = st.sampled_from([*(address(n) for n in range(1, 5)), *(key(n) for n in range(1, 5))])
ROUND = st.integers(0, 4)
HEIGHT = st.integers(0, 60)
ROOT = st.sampled_from([INITIAL, digest("root a"), digest("root b")])
NEARBY = st.one_of(
    st.builds(Delegate, PEOPLE, HEIGHT),
    st.builds(Revoke, PEOPLE, HEIGHT),
    st.builds(Join, PEOPLE, ROLE, DIGEST, _free(4), U16, _free(4), HEIGHT),
    st.builds(Leave, PEOPLE, HEIGHT),
    st.builds(Commit, ROUND, ROOT),
    st.builds(Attest, ROUND, HALF, HALF, _free(2)),
    st.builds(StateRoot, ROUND, ROOT, ROOT, ROOT),
    st.builds(Challenge, PEOPLE, ROUND, st.integers(0, 1)),
    st.builds(VerdictRecord, PEOPLE, ROUND, st.integers(0, 1), st.integers(0, 2), ROOT),
)
"""Records about the few participants, keys and rounds of a small run."""

SCHEDULE = st.one_of(
    st.just(NO_EPOCHS),
    st.builds(EpochSchedule, *[st.integers(0, 40)] * 6),
    st.builds(EpochSchedule, *[st.integers(-2, 1 << 65)] * 6),
)
WEIGHTS = st.lists(st.tuples(PEOPLE, st.integers(-1, 9)), max_size=6).map(tuple)
SORTED_WEIGHTS = st.dictionaries(PEOPLE, st.integers(1, 9)).map(lambda d: tuple(sorted(d.items())))
ENVIRONMENT = st.builds(Environment, SCHEDULE, st.one_of(SORTED_WEIGHTS, WEIGHTS))

OWN_EVENTS = st.one_of(
    st.builds(CaughtUp, HEIGHT),
    st.builds(EnvironmentRead, HEIGHT, ENVIRONMENT),
    st.builds(UpdateReady, ROUND, ROOT),
    st.builds(BlobHeld, ROUND, PEOPLE, st.booleans()),
    st.builds(PossessionProved, ROUND, st.lists(PEOPLE, max_size=4).map(tuple), _free(17)),
    st.builds(StateComputed, ROUND, ROOT, st.integers(0, 2), st.integers(0, 200)),
    st.builds(StateSynced, ROOT, st.integers(0, 200)),
)
"""Events of a host's own, mostly nonsense at the moment they come."""
