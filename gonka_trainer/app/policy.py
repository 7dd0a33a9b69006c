"""What the operator's list allows: pure. Anybody can announce a run, or create a task and assign it to anybody.

A run starts when its hash is on the list, or when its requester is (`runs.accept_from`), signed it, and the limits
hold. Who claimed or assigned a task decides nothing; that it names this host only narrows what a requester may start.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from gonka_trainer.manifest import Manifest
from gonka_trainer.ports import FoundRun
from gonka_trainer.types import Address, Digest

TRANSACTIONS_A_ROUND: Final = 4
GAS_A_TRANSACTION: Final = 100_000
"""A little above what a record costs with a fee on it: 58,000 to 94,000 were seen."""


class Answer(enum.Enum):
    """What may be done with a run."""

    REFUSED = "refused"
    FETCH = "fetch"  # its document may be fetched, and then it is looked at again
    START = "start"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and in words for the operator why the run does not start."""

    answer: Answer
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator set: hashes and requesters that may start, and limits for requesters' runs (0: none).

    `max_fee` and `max_parameters` as in `RunsConfig`. `gas_price` is what a unit of gas costs this host, gas factor
    included, in the smallest unit of money.
    """

    accept: frozenset[Digest] = frozenset()
    accept_from: frozenset[Address] = frozenset()
    max_parameters: int = 0
    max_fee: int = 0
    gas_price: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Facts:
    """What this host knows, for one run. `name` is this host's participant in the manifest's form.

    `by_grant`: the daemon's key sends the participant's messages by authz.

    `vouched` is None when the requester's signature was not looked for. `corpus` is what is wrong with worker.data for
    the manifest, "" when nothing is; it is only asked for once all else holds.
    """

    participant: Address
    name: str
    chain_id: str
    training_module: bool
    left: bool = False
    begun: bool = False
    by_grant: bool = False
    vouched: bool | None = None
    corpus: str = ""


def decide(found: FoundRun, manifest: Manifest | None, rules: Rules, facts: Facts) -> Decision:
    """Say whether the run starts here, may be fetched, or neither, and why."""
    wrong = _origin(found, rules, facts)
    if wrong:
        return Decision(Answer.REFUSED, wrong)
    if manifest is None:
        return Decision(Answer.FETCH, "its manifest is not here yet")
    by_hash = found.manifest_hash in rules.accept
    wrong = _place(manifest, facts) or ("" if by_hash else _limits(manifest, rules, facts))
    wrong = wrong or ("" if facts.begun else facts.corpus)
    return Decision(Answer.REFUSED, wrong) if wrong else Decision(Answer.START)


def of_requester(found: FoundRun, rules: Rules) -> bool:
    """Whether the run can only start for its requester's sake: its hash is not on the list."""
    return found.manifest_hash not in rules.accept


def may_start(found: FoundRun, rules: Rules) -> bool:
    """Whether the list has the run's hash or its requester: all others need not be looked at."""
    return found.manifest_hash in rules.accept or found.author in rules.accept_from


def _origin(found: FoundRun, rules: Rules, facts: Facts) -> str:
    """Return what is wrong with who asks, "" when nothing is."""
    if facts.left:
        return "you left it (`gonka-trainer join HASH` takes that back)"
    if found.manifest_hash in rules.accept:
        return ""
    if found.author not in rules.accept_from:
        return "you agreed neither to its hash (`gonka-trainer join HASH`) nor to its requester (runs.accept_from)"
    if facts.vouched is None:
        return "whether its requester signed it is not known: the block that tells cannot be had"
    if not facts.vouched:
        return "its requester did not sign it: somebody else wrote the task in the requester's name"
    if found.named is not None and facts.participant not in found.named:
        return "the task does not name this host" if found.named else "the task is assigned to nobody yet"
    return ""


def _place(manifest: Manifest, facts: Facts) -> str:
    """Return why the run cannot be run on this chain, "" when it can."""
    if manifest.chain_id != facts.chain_id:
        return f"its manifest is for chain {manifest.chain_id}, this is {facts.chain_id}"
    if manifest.carrier == "kv" and not facts.training_module:
        return "its records need the training module (carrier kv), which this chain has not"
    if manifest.carrier == "memo" and facts.by_grant:
        return "its records are memos (carrier memo), which nobody sends by a grant: set keys.speaks_by = 'delegate'"
    return ""


def _limits(manifest: Manifest, rules: Rules, facts: Facts) -> str:
    """Return which limit of a requester's run does not hold, "" when all do."""
    listed = manifest.membership.participants
    if listed and facts.name not in listed:
        return "its manifest does not list this host's participant"
    size = manifest.layout.total_elements
    if rules.max_parameters and size > rules.max_parameters:
        return f"its model has {size} parameters, runs.max_parameters is {rules.max_parameters}"
    cost = estimated_fees(manifest, rules.gas_price)
    if rules.max_fee and cost > rules.max_fee:
        return f"it may cost about {cost} in fees, runs.max_fee is {rules.max_fee}"
    return ""


def estimated_fees(manifest: Manifest, gas_price: Decimal) -> int:
    """Return about what a host spends in the run if every round is final, in the smallest unit of money.

    A run that ends by tokens is taken to have one host's tokens a round, which is the longest that it can be.
    """
    rounds = manifest.end.rounds
    if not rounds:
        tokens_a_round = manifest.inner.steps * manifest.inner.tokens_per_step
        rounds = math.ceil(manifest.end.tokens / tokens_a_round)
    transactions = 1 + rounds * TRANSACTIONS_A_ROUND
    sent = transactions if manifest.carrier == "memo" else 0
    return math.ceil(transactions * GAS_A_TRANSACTION * gas_price) + sent
