"""The planted faults of seats, windows and rounds; those of membership and of the host stand in `mutant_members`."""

from __future__ import annotations

from typing import Final

from .mutant import Mutant, core
from .mutant_checkpoints import CHECKPOINTS
from .mutant_members import MEMBERS, OPENINGS, OWN, WORLD

SEATS: Final = (
    core("no floor", "roster", "weight, weight >= params.min_weight, roster", "weight, True, roster", always=True),
    core(
        "no silent seats", "roster", "silent = _silent(params, members, by_address, weight)", "silent = []", always=True
    ),
    core("silent seats have a voice", "roster", "voice=p in heard)", "voice=True)"),
    core(
        "silent seats' absence grows",
        "absence",
        "set(roster.voices) - set(committed)",
        "{s.participant for s in roster.seats} - set(committed)",
    ),
    core("all the departed are seated", "roster", "        if weight >= params.min_weight:\n            break\n", ""),
    core(
        "silent seats lightest first",
        "roster",
        "key=lambda p: (-by_address[p], p))",
        "key=lambda p: (by_address[p], p))",
    ),
    core(
        "ties of weight in another order",
        "roster",
        "key=lambda p: (-by_address[p], p))",
        "key=lambda p: (-by_address[p], p[::-1]))",
    ),
    core(
        "early close under the floor",
        "final",
        "(round_.roster.decides and inclusion.all_committed(round_))",
        "inclusion.all_committed(round_)",
    ),
    core(
        "below the floor a round may go on",
        "final",
        "    if not round_.roster.decides:\n        return round_, Ended(None, VoidReason.FLOOR)\n",
        "",
    ),
    core(
        "those below the floor were in a deciding roster",
        "opening",
        "    if drawn.decides:\n        members",
        "    if True:\n        members",
    ),
)

WINDOWS: Final = (
    core(
        "half is enough", "roster", "return 2 * weight > self.weight", "return 2 * weight >= self.weight", always=True
    ),
    core(
        "commit deadline exclusive",
        "inclusion",
        "height <= round_.commit_limit(params)",
        "height < round_.commit_limit(params)",
        always=True,
    ),
    core(
        "late commits count",
        "inclusion",
        "round_.closed is not None or not round_.opened <= height <= round_.commit_limit(params)",
        "not round_.opened <= height",
    ),
    core(
        "early close does not wait for all",
        "inclusion",
        "len(round_.commits) == len(voices)",
        "2 * len(round_.commits) > len(voices)",
    ),
    core("no early close", "inclusion", "return bool(voices) and len(round_.commits) == len(voices)", "return False"),
    core(
        "void for too few commits forgotten",
        "inclusion",
        "return round_.roster.majority(sum(voices[p] for p in round_.commits))",
        "return True",
    ),
    core(
        "freeze ignores the extensions", "state", "params.attest_blocks * (1 + self.extensions)", "params.attest_blocks"
    ),
    core("no extensions", "final", "if round_.extensions < params.extensions:", "if False:"),
    core(
        "one extension too many",
        "final",
        "if round_.extensions < params.extensions:",
        "if round_.extensions <= params.extensions:",
    ),
    core(
        "freeze of any included set at the limit",
        "inclusion",
        "return round_.roster.majority(sum(voices[p] for p in included(round_)))",
        "return True",
    ),
    core(
        "state deadline exclusive",
        "inclusion",
        "height <= round_.state_limit(params)",
        "height < round_.state_limit(params)",
    ),
    core(
        "state records before the freeze take the key",
        "inclusion",
        "round_.frozen is None or not round_.frozen < height",
        "round_.frozen is not None and not round_.frozen < height",
    ),
    core(
        "last commit stands",
        "inclusion",
        '    if first is not None:\n        return round_, "" if first[0]',
        '    if False:\n        return round_, "" if first[0]',
        always=True,
    ),
    core(
        "last state record stands",
        "inclusion",
        "    if first is not None:\n        same",
        "    if False:\n        same",
    ),
    core("last attestation stands", "inclusion", "participant: before | attested}", "participant: attested}"),
    core(
        "a commit is an attestation",
        "inclusion",
        "support=(0,) * len(committers)",
        "support=tuple(round_.roster.voices[p] for p in committers)",
        always=True,
    ),
    core("list digest ignored", "inclusion", "if record.list_digest != round_.list_digest:", "if False:"),
    core(
        "committers in the order of arrival",
        "inclusion",
        "committers = tuple(sorted(round_.commits))",
        "committers = tuple(round_.commits)",
    ),
    core(
        "records of other rounds count",
        "inclusion",
        "if record.round != round_.number:",
        "if record.round < round_.number:",
    ),
    core(
        "environment not in the triple",
        "inclusion",
        "tally[post.root, post.environment, post.roster] +=",
        "tally[post.root, next(p.environment for p in round_.posts.values() if p.root == post.root), post.roster] +=",
    ),
    core(
        "roster not in the triple",
        "inclusion",
        "tally[post.root, post.environment, post.roster] +=",
        "tally[post.root, post.environment, next(p.roster for p in round_.posts.values() if p.root == post.root)] +=",
    ),
)

MUTANTS: Final[tuple[Mutant, ...]] = SEATS + WINDOWS + MEMBERS + OPENINGS + OWN + WORLD + CHECKPOINTS
