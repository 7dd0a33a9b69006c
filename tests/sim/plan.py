"""What a world is made of: the run's rules, the hosts, the chain's epochs, the faults, all fixed before it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gonka_trainer.round.environment import NO_EPOCHS, Environment, EpochSchedule
from gonka_trainer.round.params import RoundParams
from gonka_trainer.types import ZERO_DIGEST, Address, Height, sha256

INITIAL_ROOT = sha256(b"sim/initial state")


def address(name: str) -> Address:
    return Address(sha256(b"sim/address", name.encode())[:20])


@dataclass(frozen=True)
class Epochs:
    """Epochs of the fake chain: epoch k starts at `start + k * length`; `weights[k]` hold then, the last for ever."""

    start: int
    length: int
    stage: int
    delay: int
    validation: int
    weights: tuple[tuple[tuple[Address, int], ...], ...]

    def index(self, height: int) -> int:
        return 0 if self.length == 0 else max(0, height - self.start) // self.length

    def at(self, height: int) -> Environment:
        k = self.index(height)
        weights = self.weights[min(k, len(self.weights) - 1)]
        kept = tuple(sorted((a, w) for a, w in weights if w > 0))
        if self.length == 0:
            return Environment(NO_EPOCHS, kept)
        start = Height(self.start + k * self.length)
        return Environment(EpochSchedule(k + 1, start, self.length, self.stage, self.delay, self.validation), kept)


@dataclass(frozen=True)
class HostPlan:
    """One participant. `key` may be the participant itself; `tricks` make it a liar; it starts at height `starts`."""

    name: str
    participant: Address
    key: Address
    tricks: frozenset[str] = frozenset()
    starts: int = 1

    @property
    def honest(self) -> bool:
        return not self.tricks


@dataclass(frozen=True)
class Action:
    """Something that befalls host number `host` before block `height` is made; `blocks` is how long."""

    height: int
    kind: str  # crash, wipe, gap, outage, silence, leave, rejoin, rotate, rekey, verdicts, wrong, stuck
    host: int
    blocks: int = 0
    subject: int = 0


@dataclass(frozen=True)
class Noise:
    """Chances of trouble while the storm lasts."""

    lost: float = 0.0
    delayed: float = 0.0
    delay_blocks: int = 0
    doubled: float = 0.0
    fetch_fails: float = 0.0
    crash: float = 0.0
    slow_ticks: int = 1
    train_blocks: int = 0
    environment_ticks: int = 0


@dataclass(frozen=True)
class Plan:
    """A whole world. From `calm_from` on nothing fails by itself, and everybody honest is up."""

    seed: str
    params: RoundParams
    epochs: Epochs
    hosts: tuple[HostPlan, ...]
    blocks: int
    calm_from: int
    noise: Noise = Noise()
    actions: tuple[Action, ...] = ()
    foreign: float = 0.0
    expects_progress: bool = True
    tags: tuple[str, ...] = field(default=())

    def longest_round(self) -> int:
        """Blocks that a round can take at most, scheduled PoC windows in its way included."""
        p, e = self.params, self.epochs
        train = p.train_blocks
        if e.length:
            window = e.stage + e.delay + e.validation + p.margin_blocks
            train += window * (2 + p.train_blocks // max(1, e.length - window))
        return train + p.commit_blocks + p.attest_blocks * (1 + p.extensions) + p.state_blocks + 1


def no_epochs(weights: tuple[tuple[Address, int], ...]) -> Epochs:
    return Epochs(0, 0, 0, 0, 0, (weights,))


def params(**changes: object) -> RoundParams:
    """Rules with short windows for hand-made cases."""
    base: dict[str, object] = {
        "run_id": sha256(b"sim/run"),
        "initial_root": INITIAL_ROOT,
        "log_height": Height(1),
        "start_height": Height(4),
        "equal_members": None,
        "min_weight": 2,
        "train_blocks": 4,
        "margin_blocks": 1,
        "commit_blocks": 4,
        "attest_blocks": 5,
        "extensions": 1,
        "state_blocks": 5,
        "absent_rounds": 3,
        "exclusion_rounds": 2,
    }
    base.update(changes)
    return RoundParams(**base)  # type: ignore[arg-type]


JUNK = ZERO_DIGEST
