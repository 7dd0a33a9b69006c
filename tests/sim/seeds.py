"""From a seed to a plan: rules, hosts, weights, epochs and faults drawn within the protocol's assumption."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gonka_trainer.types import Address, Height

from .liar import TRICKS
from .plan import Action, Epochs, HostPlan, Noise, Plan, address, no_epochs, params

BLOCKS = 125
CALM = 80


def plan_of(seed: int) -> Plan:
    """The plan of a seed; the same for ever, as long as this file is."""
    return Draw(seed).plan()


class Draw:
    """One seed's dice."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"plan/{seed}")
        self.equal = self.rng.random() < 0.35
        count = self.rng.choice([2, 3, 3, 4, 4, 5, 5, 6, 7, 8])
        self.liars = self.rng.randint(0, (count - 1) // 3) if self.rng.random() < 0.85 else 0
        self.honest = count - self.liars

    def plan(self) -> Plan:
        hosts = self.hosts()
        epochs = self.epochs(hosts)
        floor = self.floor(hosts, epochs)
        rules = params(
            equal_members=tuple(sorted(h.participant for h in hosts)) if self.equal else None,
            min_weight=floor,
            log_height=Height(self.rng.choice([1, 1, 3])),
            start_height=Height(self.rng.randint(4, 10)),
            train_blocks=self.rng.randint(3, 6),
            margin_blocks=self.rng.randint(0, 2),
            commit_blocks=self.rng.randint(3, 5),
            attest_blocks=self.rng.randint(5, 6),
            extensions=self.rng.randint(0, 2),
            state_blocks=self.rng.randint(5, 6),
            absent_rounds=self.rng.choice([2, 2, 3]),
            exclusion_rounds=self.rng.randint(1, 3),
        )
        return Plan(
            seed=str(self.seed),
            params=rules,
            epochs=epochs,
            hosts=tuple(hosts),
            blocks=BLOCKS,
            calm_from=CALM,
            noise=self.noise(),
            actions=tuple(self.actions(hosts, epochs, floor)),
            foreign=self.rng.choice([0.0, 0.1, 0.3]),
        )

    def hosts(self) -> list[HostPlan]:
        out = []
        for i in range(self.honest + self.liars):
            name = f"{'h' if i < self.honest else 'l'}{i}"
            participant = address(f"{self.seed}/{name}")
            own = self.rng.random() < 0.5
            key = participant if own else address(f"{self.seed}/{name}/key")
            tricks: frozenset[str] = frozenset()
            if i >= self.honest:
                tricks = frozenset(self.rng.sample(TRICKS, self.rng.randint(1, 5)))
            late = i > 1 and self.rng.random() < 0.15
            starts = self.rng.randint(20, CALM - 30) if late else 1
            out.append(HostPlan(name, participant, key, tricks, starts))
        return out

    # -- weights ----------------------------------------------------------------------------------------------------

    def epochs(self, hosts: Sequence[HostPlan]) -> Epochs:
        if self.equal:
            table = tuple(sorted((h.participant, 1) for h in hosts))
            return no_epochs(table) if self.rng.random() < 0.6 else self.scheduled((table,))
        base = {h.participant: self.rng.randint(20, 60) for h in hosts if h.honest}
        share = 0.4 * sum(base.values()) / max(1, self.liars)
        base |= {h.participant: max(1, int(share * self.rng.uniform(0.5, 0.95))) for h in hosts if not h.honest}
        if self.rng.random() < 0.3:
            return no_epochs(tuple(sorted(base.items())))
        drift = self.rng.choice([0.0, 0.1])
        return self.scheduled(tuple(self.drifted(base, drift) for _ in range(12)))

    def drifted(self, base: dict[Address, int], drift: float) -> tuple[tuple[Address, int], ...]:
        return tuple(sorted((a, max(1, int(w * self.rng.uniform(1 - drift, 1 + drift)))) for a, w in base.items()))

    def scheduled(self, tables: tuple[tuple[tuple[Address, int], ...], ...]) -> Epochs:
        length = self.rng.randint(25, 50)
        tables = self.with_low_epoch(tables, length) if not self.equal else tables
        return Epochs(
            start=self.rng.randint(0, 12),
            length=length,
            stage=self.rng.randint(1, 3),
            delay=self.rng.randint(0, 1),
            validation=self.rng.randint(1, 3),
            weights=tables,
        )

    def with_low_epoch(
        self, tables: tuple[tuple[tuple[Address, int], ...], ...], length: int
    ) -> tuple[tuple[tuple[Address, int], ...], ...]:
        """In some worlds one early epoch has so little weight that rounds must wait."""
        low = self.rng.randint(1, 2)
        if self.rng.random() < 0.6 or (low + 1) * length + 12 > CALM:
            return tables
        cut = tuple((a, max(1, w // 3)) for a, w in tables[low])
        self.low = low
        return (*tables[:low], cut, *tables[low + 1 :])

    low: int | None = None

    def totals(self, hosts: Sequence[HostPlan], epochs: Epochs, without: frozenset[Address] = frozenset()) -> int:
        """The least that the honest ones weigh in any ordinary epoch."""
        honest = {h.participant for h in hosts if h.honest} - without
        tables = [t for i, t in enumerate(epochs.weights) if i != self.low]
        return min(sum(w for a, w in table if a in honest) for table in tables)

    def floor(self, hosts: Sequence[HostPlan], epochs: Epochs) -> int:
        liars = {h.participant for h in hosts if not h.honest}
        least = 2 * max(sum(w for a, w in table if a in liars) for table in epochs.weights) + 1
        most = max(least, self.totals(hosts, epochs))
        return max(self.rng.randint(least, most), self.rng.randint(least, most))

    # -- faults -----------------------------------------------------------------------------------------------------

    def noise(self) -> Noise:
        if self.rng.random() < 0.2:
            return Noise()
        heavy = self.rng.random() < 0.4
        return Noise(
            lost=self.rng.uniform(0, 0.25 if heavy else 0.08),
            delayed=self.rng.uniform(0, 0.3 if heavy else 0.1),
            delay_blocks=self.rng.randint(1, 6),
            doubled=self.rng.uniform(0, 0.2),
            fetch_fails=self.rng.uniform(0, 0.8 if heavy else 0.2),
            crash=self.rng.choice([0.0, 0.003, 0.01]),
            slow_ticks=self.rng.choice([0, 2, 6]),
            train_blocks=self.rng.randint(1, 8),
            environment_ticks=self.rng.choice([0, 2, 4]),
        )

    def actions(self, hosts: Sequence[HostPlan], epochs: Epochs, floor: int) -> list[Action]:
        out: list[Action] = []
        for _ in range(self.rng.randint(0, 7)):
            height = self.rng.randint(5, CALM - 5)
            index = self.rng.randrange(len(hosts))
            length = self.rng.choice([3, 10, 25, 60])
            length = min(length, CALM - height)
            kind = self.rng.choice(["crash", "crash", "crash next", "outage"]) if hosts[index].honest else "silence"
            out.append(Action(height, kind, index, length))
        out += self.deaths_in_turn(hosts)
        out += self.comings(hosts, epochs, floor)
        out += self.gaps(hosts)
        out += [Action(h.starts, "delegate", i) for i, h in enumerate(hosts) if h.key != h.participant and h.starts > 1]
        return sorted(out, key=lambda a: (a.height, a.host))

    def gaps(self, hosts: Sequence[HostPlan]) -> list[Action]:
        """Hosts that lose their disk, or of whose history the chain node lost a part; some latecomers read none."""
        rng = random.Random(f"gaps/{self.seed}")  # of its own, so that the rest of the plan stays what it was
        honest = [i for i, h in enumerate(hosts) if h.honest]
        out = [Action(h.starts, "wipe", i, 1) for i, h in enumerate(hosts) if h.starts > 1 and rng.random() < 0.5]
        for _ in range(rng.choice([0, 0, 1, 2])):
            height, kind = rng.randint(15, CALM - 25), rng.choice(["wipe", "gap"])
            out.append(Action(height, kind, rng.choice(honest), rng.randint(1, 20)))
        return out

    def deaths_in_turn(self, hosts: Sequence[HostPlan]) -> list[Action]:
        """Honest hosts go down one after the other, long enough to be dropped, while liars may be silent."""
        if self.rng.random() < 0.4:
            return []
        honest = [i for i, h in enumerate(hosts) if h.honest]
        self.rng.shuffle(honest)
        out, height = [], self.rng.randint(10, 20)
        for index in honest[: self.rng.randint(1, len(honest) - 1)]:
            out.append(Action(height, "crash", index, max(5, CALM - height - self.rng.randint(0, 40))))
            height += self.rng.randint(8, 30)
            if height > CALM - 15:
                break
        quiet = self.rng.randint(10, 25)
        return out + [
            Action(quiet, "silence", i, self.rng.randint(20, 60)) for i, h in enumerate(hosts) if not h.honest
        ]

    def comings(self, hosts: Sequence[HostPlan], epochs: Epochs, floor: int) -> list[Action]:
        out: list[Action] = []
        gone: frozenset[Address] = frozenset()
        for i, h in enumerate(hosts):
            roll, height = self.rng.random(), self.rng.randint(max(20, h.starts + 5), CALM - 6)
            if not h.honest:
                if roll < 0.3:
                    out += [Action(height + k * 3, "verdicts", 0, k % 2, i) for k in range(4)]
                continue
            if (
                roll < 0.15
                and self.totals(hosts, epochs, gone | {h.participant}) >= floor
                and len(gone) < self.honest - 2
            ):
                out.append(Action(height, "leave", i))
                if self.rng.random() < 0.5:
                    out.append(Action(min(CALM - 1, height + self.rng.randint(10, 40)), "rejoin", i))
                else:
                    gone |= {h.participant}
            elif roll < 0.3:
                out.append(Action(height, "rotate", i, subject=self.rng.randint(0, 2)))
        return out
