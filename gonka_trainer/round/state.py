"""The core's whole state: immutable values, replaced and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gonka_trainer.round.environment import Environment
from gonka_trainer.round.events import BlockSeen, PossessionProved
from gonka_trainer.round.membership import NEVER, Membership
from gonka_trainer.round.params import RoundParams
from gonka_trainer.round.roster import Roster
from gonka_trainer.round.summary import Note, Phase, Posted, RoundSummary
from gonka_trainer.types import ZERO_DIGEST, Address, Digest, Height


@dataclass(frozen=True)
class Round:
    """An open round as the chain tells it.

    `deadline` is T. `committers` are sorted, set at the close; `bits` holds each attester's positions among them and
    `support` each position's attested weight. `frozen_environment` is this host's own reading at the freeze.
    """

    number: int
    opened: Height
    deadline: Height
    base_root: Digest
    roster: Roster
    commits: Mapping[Address, tuple[Digest, Height]] = field(default_factory=dict)
    closed: Height | None = None
    close_hash: Digest = ZERO_DIGEST
    committers: tuple[Address, ...] = ()
    list_digest: bytes = b""
    bits: Mapping[Address, frozenset[int]] = field(default_factory=dict)
    support: tuple[int, ...] = ()
    extensions: int = 0
    frozen: Height | None = None
    included: tuple[Address, ...] = ()
    posts: Mapping[Address, Posted] = field(default_factory=dict)
    frozen_environment: Environment | None = None

    def commit_limit(self, params: RoundParams) -> Height:
        """Return the last block in which commits count, if there is no early close."""
        return Height(self.deadline + params.commit_blocks)

    def attest_limit(self, params: RoundParams) -> Height:
        """Return the last block in which attestations count, over the extensions used so far."""
        return Height((self.closed or 0) + params.attest_blocks * (1 + self.extensions))

    def state_limit(self, params: RoundParams) -> Height:
        """Return the last block in which state records count."""
        return Height((self.frozen or 0) + params.state_blocks)

    def commitments(self, participants: tuple[Address, ...]) -> tuple[tuple[Address, Digest], ...]:
        """Return (participant, commitment) of these committers."""
        return tuple((p, self.commits[p][0]) for p in participants)


@dataclass(frozen=True)
class Final:
    """The last final round: what the next one starts from. `environment` is None until its preimage is here.

    `included` is (participant, commitment, weight); `holders` are those who posted what became final. Of a round that
    ended before this host's checkpoint there is neither `included` nor `summary`; `holders` are all of the next R, and
    `base_root` is the last that was known here.
    """

    number: int
    base_root: Digest
    root: Digest
    environment_digest: Digest
    environment: Environment | None
    frozen: Height
    included: tuple[tuple[Address, Digest, int], ...]
    holders: tuple[Address, ...]
    summary: RoundSummary | None


@dataclass(frozen=True, slots=True)
class Need:
    """The environment that the next opening waits for."""

    height: Height
    digest: Digest | None


@dataclass(frozen=True)
class Work:
    """What this host did in one round. `held` says of each blob here whether its form is good."""

    number: int = 0
    commitment: Digest | None = None
    held: Mapping[Address, bool] = field(default_factory=dict)
    proof: PossessionProved | None = None
    attests: int = 0
    computed: Digest | None = None


@dataclass(frozen=True)
class Dispute:
    """This host computed another root than the final one; `recomputed` is its second try."""

    number: int
    base_root: Digest
    included: tuple[tuple[Address, Digest, int], ...]
    final: Digest
    computed: Digest
    recomputed: Digest | None = None


@dataclass(frozen=True)
class Anchor:
    """The latest final round whose state is on disk here (-1: none yet), and the state before it: both are kept."""

    number: int
    former_root: Digest
    root: Digest


@dataclass(frozen=True)
class Own:
    """What is this host's alone. `states`: root -> the run's tokens, of the states on disk that are kept.

    `work` is of the round that is open or comes next, `former` of the last final one. `closed`: (round, commitments)
    of ended rounds whose blobs are still kept. `speaks_from` is the first round in which this host may say something:
    None until the tip is reached for the first time.
    """

    anchor: Anchor
    caught_up: bool = False
    speaks_from: int | None = None
    states: Mapping[Digest, int] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    former: Work = field(default_factory=lambda: Work(-1))
    dispute: Dispute | None = None
    closed: tuple[tuple[int, tuple[tuple[Address, Digest], ...]], ...] = ()


@dataclass(frozen=True)
class CoreState:
    """Where a run stands for this host after the last event.

    `height` is the last block that was worked in; `queue` holds later ones, which wait for `need`. `round` is the
    number of the round that is open, or of the next one. `final_root` is the state that it starts from. `notes` are
    of the last step only.
    """

    own: Own
    final_root: Digest
    height: Height = NEVER
    round: int = 0
    membership: Membership = field(default_factory=Membership)
    current: Round | None = None
    need: Need | None = None
    queue: tuple[BlockSeen, ...] = ()
    final: Final | None = None
    last: RoundSummary | None = None
    ended: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def phase(self) -> Phase:
        """Where the run stands after the block at `height`."""
        if self.ended:
            return Phase.ENDED
        if self.current is None:
            return Phase.WAITING
        if self.current.closed is None:
            return Phase.TRAIN if self.height < self.current.deadline else Phase.COMMIT
        return Phase.ATTEST if self.current.frozen is None else Phase.STATE
