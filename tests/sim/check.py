"""What must hold of a world that was played: hosts against the model, and the promises of the protocol."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from gonka_trainer.round.commands import ReadEnvironment
from gonka_trainer.round.events import EnvironmentRead
from gonka_trainer.round.machine import initial, step
from gonka_trainer.round.params import Local
from gonka_trainer.round.records import Commit, StateRoot
from gonka_trainer.round.summary import Outcome, RoundSummary
from gonka_trainer.types import Address, Digest

from .host import Host, included_root
from .model import Model, ModelRound
from .world import World

SETTLING_BLOCKS = 8
"""How long after the faults' end the hosts may take to read, fetch the state and have a join in a block."""


@dataclass
class Findings:
    """What is wrong (empty when all is well), and how often each thing happened."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rounds: list[ModelRound] = field(default_factory=list)

    def must(self, condition: bool, text: str) -> None:
        if not condition:
            self.wrong.append(text)


def check(world: World) -> Findings:
    found = Findings(counts=Counter(world.counts))
    model = Model(world.plan.params, world.chain.blocks, world.plan.epochs.at)
    found.rounds = model.run()
    for host in world.hosts:
        if host.plan.honest:
            agree(found, host.plan.name, host.summaries, found.rounds)
            where(found, host.plan.name, host.state, world, found.rounds)
    late_reader(found, world)
    one_root(found, world)
    no_equivocation(found, world)
    nobody_up_dropped(found, world)
    if world.plan.expects_progress:
        progress(found, world)
    count(found)
    count_records(found, world, model)
    return found


def agree(found: Findings, name: str, summaries: dict[int, RoundSummary], rounds: list[ModelRound]) -> None:
    for number, summary in sorted(summaries.items()):
        if number >= len(rounds):
            found.wrong.append(f"{name}: round {number} is none of the model's")
            continue
        for what, core, model in differences(summary, rounds[number]):
            found.wrong.append(f"{name}: round {number} {what}: core {short(core)}, model {short(model)}")


def short(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()[:8]
    if isinstance(value, tuple | list):
        return "(" + ", ".join(short(v) for v in value) + ")"
    return str(value)


def differences(s: RoundSummary, r: ModelRound) -> list[tuple[str, Any, Any]]:
    pairs: list[tuple[str, Any, Any]] = [
        ("opened", s.opened, r.opened),
        ("deadline", s.deadline, r.deadline),
        ("base root", s.base_root, r.base_root),
        ("roster", tuple((x.participant, x.weight, x.voice) for x in s.roster), r.seats),
        ("commitments", s.commitments, tuple((a, c, h) for a, (c, h) in sorted(r.commits.items()))),
        ("closed", s.closed, r.closed),
        ("attestations", s.attestations, tuple((a, tuple(sorted(b))) for a, b in sorted(r.attests.items()))),
        ("frozen", s.frozen, r.frozen),
        ("posts", tuple((p.participant, p.root, p.environment, p.roster, p.height) for p in s.posts), posts(r)),
        ("ended", s.ended, r.ended),
        ("outcome", s.outcome, Outcome.FINAL if r.final else Outcome.VOID),
        ("root", s.root, r.root),
    ]
    if r.frozen is not None:
        pairs.append(("included", s.included, r.included))
    return [p for p in pairs if p[1] != p[2]]


def posts(r: ModelRound) -> tuple[tuple[Address, Digest, Digest, Digest, int], ...]:
    return tuple((a, *triple, height) for a, (triple, height) in sorted(r.posts.items()))


def where(found: Findings, name: str, state: Any, world: World, rounds: list[ModelRound]) -> None:
    """The round a host is in, by the height to which its core has read."""
    height = state.height
    at = [r for r in rounds if r.opened <= height + 1]
    if not at:
        return
    last = at[-1]
    expected = {last.number}
    if last.opened == height + 1:
        expected.add(last.number - 1)
    if last.ended == height:
        expected.add(last.number + 1)
    found.must(state.round in expected, f"{name}: at {height} in round {state.round}, model {sorted(expected)}")
    final = [r.root for r in rounds if r.final and r.ended is not None and r.ended <= height]
    if final:
        found.must(state.final_root == final[-1], f"{name}: final root {short(state.final_root)} at {height}")


def late_reader(found: Findings, world: World) -> None:
    """An observer that comes at the end and reads every block from the log's start."""
    local = Local(None, None, wants_membership=False)
    rules = world.plan.params
    state: Any = initial(rules, local)
    summaries: dict[int, RoundSummary] = {}
    for block in world.chain.blocks:
        if block.height < rules.log_height:
            continue
        state, commands = step(rules, local, state, block)
        while wanted := [c for c in commands if isinstance(c, ReadEnvironment)]:
            at = wanted[0].height
            state, commands = step(rules, local, state, EnvironmentRead(at, world.plan.epochs.at(at)))
        if state.last is not None:
            summaries.setdefault(state.last.round, state.last)
    agree(found, "late reader", summaries, found.rounds)
    ended = {r.number for r in found.rounds if r.ended is not None}
    found.must(set(summaries) == ended, f"late reader: rounds {sorted(summaries)}, model {sorted(ended)}")


def one_root(found: Findings, world: World) -> None:
    """No junk root final, none under the floor, and each what the frozen set gives."""
    honest_people = {h.participant for h in world.hosts if h.plan.honest}
    for r in found.rounds:
        if not r.final:
            continue
        assert r.root is not None
        assert r.frozen is not None
        good = [(a, r.commits[a][0]) for a in r.included if good_blob(world, r.commits[a][0])]
        found.must(r.root == included_root(r.base_root, good), f"round {r.number}: root is not what the set gives")
        found.must(r.weight >= world.plan.params.min_weight, f"round {r.number}: final below the floor")
        honest = any(r.root in h.computed for h in world.hosts if h.plan.honest)
        found.must(honest or r.root == r.base_root, f"round {r.number}: no honest host computed the root")
        for who, (triple, _) in r.posts.items():
            honest_post = who in honest_people and r.keys[who] == world.by_participant[who].local.key
            found.must(not honest_post or triple[2] == r.roster_digest, f"round {r.number}: the roster digest differs")
        for who in r.included:
            blob = world.blobs.get(r.commits[who][0])
            own = blob is not None and (blob.participant, blob.round, blob.base_root) == (who, r.number, r.base_root)
            found.must(own, f"round {r.number}: an included commitment is a copy, or of nothing")
            found.must(blob is not None and blob.form_good, f"round {r.number}: a blob of bad form is included")


def good_blob(world: World, commitment: Digest) -> bool:
    return commitment in world.blobs and world.blobs[commitment].form_good


def no_equivocation(found: Findings, world: World) -> None:
    """No honest participant ever has two different commitments or states of a round on chain."""
    keys = {h.local.key: h.participant for h in world.hosts if h.plan.honest}
    keys |= {h.plan.key: h.participant for h in world.hosts if h.plan.honest}
    said: dict[tuple[Address, str, int], set[Any]] = {}
    for block in world.chain.blocks:
        for placed in block.records:
            record, who = placed.record, keys.get(placed.author)
            if who is not None and isinstance(record, Commit | StateRoot):
                said.setdefault((who, type(record).__name__, record.round), set()).add(record)
    for (_, kind, number), records in said.items():
        found.must(len(records) == 1, f"an honest host has {len(records)} {kind}s of round {number} on chain")


def nobody_up_dropped(found: Findings, world: World) -> None:
    honest = {h.participant: h for h in world.hosts if h.plan.honest}
    for r in found.rounds:
        for who in r.dropped:
            if who in honest:
                found.must(
                    had_trouble(world, honest[who], found.rounds, r), f"round {r.number}: dropped a host in order"
                )


def had_trouble(world: World, host: Host, rounds: list[ModelRound], last: ModelRound) -> bool:
    """Whether in one of the final rounds that it missed the host was down, deaf, without the state or not heard."""
    missed = [
        r
        for r in rounds
        if r.final and r.number <= last.number and host.participant in r.voices and host.participant not in r.commits
    ]
    lost = {h for h, author in world.chain.hurt if author in {host.local.key, host.plan.key}}
    for r in missed[-world.plan.params.absent_rounds :]:
        window = set(range(r.opened - 1, r.deadline + world.plan.params.commit_blocks + 1))
        if window & (host.troubled | lost) or r.keys[host.participant] != host.local.key:
            return True
    return False


def progress(found: Findings, world: World) -> None:
    """Every round that opens once the calm has let all come back is final, with everybody honest in it."""
    plan = world.plan
    settled = plan.calm_from + SETTLING_BLOCKS
    ended = [r for r in found.rounds if r.ended is not None and r.opened > settled]
    live = [r for r in found.rounds if r.final and r.ended is not None and r.ended > plan.calm_from]
    found.must(bool(live), f"no round is final in the {plan.blocks - plan.calm_from} blocks of calm")
    honest = {h.participant for h in world.hosts if h.plan.honest}
    for r in ended:
        found.must(r.final, f"round {r.number} (opened {r.opened}) in the calm is void: {r.reason}")
        missing = (honest & r.voices) - set(r.included)
        found.must(not r.final or not missing, f"round {r.number} in the calm leaves out {len(missing)} honest hosts")
    wanting = {h.participant for h in world.hosts if h.plan.honest and h.local.wants_membership}
    if ended:
        found.must(wanting <= ended[-1].voices, f"{len(wanting - ended[-1].voices)} honest hosts are not back")


def count(found: Findings) -> None:
    """Which rules this world reached."""
    c = found.counts
    seen_drops: set[Address] = set()
    for r in found.rounds:
        c["round"] += 1
        c["final"] += r.final
        if r.reason:
            c[f"void: {r.reason}"] += 1
        c["extension"] += r.extensions
        c["drop"] += len(r.dropped)
        c["exclusion"] += len(r.excluded)
        c["silent seat"] += len(r.silent)
        c["final with a silent seat"] += bool(r.silent) and r.final
        c["back after a drop"] += len(seen_drops & r.voices)
        seen_drops = (seen_drops - r.voices) | set(r.dropped)
        c["under the floor"] += not r.decides
        c["environment of the block before, later than round 0"] += r.fresh_environment and r.number > 0
        c["freeze without all"] += r.frozen is not None and len(r.included) < len(r.commits)
        c["posts differ"] += len({t for t, _ in r.posts.values()}) > 1
        if r.closed is not None:
            c["early close"] += set(r.commits) == r.voices
            c["close at the deadline"] += set(r.commits) != r.voices
        for note in r.notes:
            c[note] += 1


def count_records(found: Findings, world: World, model: Model) -> None:
    """What liars and operators got onto the chain."""
    c = found.counts
    for note in model.members(model.tip()).notes:
        c[note] += 1
    for r in found.rounds:
        c["training stretched"] += r.deadline - r.opened > world.plan.params.train_blocks
        c["junk root posted"] += any(t[0] == world.junk(r.number) for t, _ in r.posts.values())
        blobs = [(who, world.blobs.get(commitment)) for who, (commitment, _) in r.commits.items()]
        c["copied commitment"] += any(b is not None and b.participant != who for who, b in blobs)
        c["commitment of nothing"] += any(b is None for _, b in blobs)
        c["bad form"] += any(b is not None and not b.form_good for _, b in blobs)
