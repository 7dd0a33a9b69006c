"""What the operator's list allows, case by case."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from gonka_trainer.app.policy import Answer, Facts, Rules, decide, estimated_fees, may_start
from gonka_trainer.manifest import (
    DataSpec,
    EndSpec,
    InnerSpec,
    Manifest,
    MembershipSpec,
    ModelSpec,
    OuterSpec,
    WindowSpec,
)
from gonka_trainer.ports import FoundRun
from gonka_trainer.types import Address, Digest, Height

HASH = Digest(b"\x11" * 32)
OTHER_HASH = Digest(b"\x12" * 32)
HOST = Address(b"\x01" * 20)
OTHER_HOST = Address(b"\x02" * 20)
REQUESTER = Address(b"\x03" * 20)
STRANGER = Address(b"\x04" * 20)
NAME = "gonka1host"

MANIFEST = Manifest(
    format="gonka-trainer/manifest/1",
    name="policy",
    chain_id="chain-1",
    carrier="kv",
    log_height=1,
    start_height=2,
    model=ModelSpec({"model_type": "toy"}),
    tokenizer="bytes",
    parameters=(("a", (40, 25), "uniform:0.02"), ("b", (24,), "ones")),
    chunk_elements=256,
    init_seed="22" * 32,
    state_root="33" * 32,
    data=DataSpec("text", "44" * 32, 40_000, 4096),
    inner=InnerSpec("adamw", 0.01, 0.9, 0.95, 1e-8, 0.1, 1.0, 4, 40, 0.1, 10, 4, 32, 7),
    codec="f32",
    codec_version=1,
    outer=OuterSpec(0.7, 0.5, "clipped_mean"),
    windows=WindowSpec(10, 0, 5, 5, 1, 5, 3, 3, 3),
    membership=MembershipSpec("equal", (NAME, "gonka1other"), 2),
    end=EndSpec(5, 0),
)
TASK = FoundRun(HASH, "", REQUESTER, Height(10), 3, frozenset({HOST}))
MEMO = replace(TASK, task_id=0, named=None)
FACTS = Facts(HOST, NAME, "chain-1", training_module=True, vouched=True)
BY_HASH = Rules(accept=frozenset({HASH}))
BY_REQUESTER = Rules(accept_from=frozenset({REQUESTER}))
NOBODY = Rules()


def changed(**fields: Any) -> Manifest:
    return replace(MANIFEST, **fields)


START, FETCH, REFUSED = Answer.START, Answer.FETCH, Answer.REFUSED

CASES: dict[str, tuple[FoundRun, Manifest | None, Rules, Facts, Answer, str]] = {
    # agreed by hash: whoever put it on chain, whomever it names, whatever its size
    "hash": (TASK, MANIFEST, BY_HASH, FACTS, START, ""),
    "hash, put on chain by a stranger": (replace(TASK, author=STRANGER), MANIFEST, BY_HASH, FACTS, START, ""),
    "hash, not signed, not named": (
        replace(TASK, named=frozenset()),
        MANIFEST,
        BY_HASH,
        replace(FACTS, vouched=False),
        START,
        "",
    ),
    "hash, above the limits for requesters": (
        TASK,
        MANIFEST,
        replace(BY_HASH, max_parameters=1, max_fee=1, gas_price=Decimal(1)),
        FACTS,
        START,
        "",
    ),
    "hash, no document yet": (TASK, None, BY_HASH, FACTS, FETCH, "not here yet"),
    "hash, and left": (TASK, MANIFEST, BY_HASH, replace(FACTS, left=True), REFUSED, "you left it"),
    "hash, another chain": (TASK, changed(chain_id="chain-2"), BY_HASH, FACTS, REFUSED, "for chain chain-2"),
    "hash, no module": (TASK, MANIFEST, BY_HASH, replace(FACTS, training_module=False), REFUSED, "training module"),
    "hash, memo by a grant": (
        MEMO,
        changed(carrier="memo"),
        BY_HASH,
        replace(FACTS, by_grant=True),
        REFUSED,
        "speaks_by",
    ),
    "hash, another corpus": (TASK, MANIFEST, BY_HASH, replace(FACTS, corpus="worker.data: x"), REFUSED, "worker.data"),
    "begun: the corpus may be mended while it runs": (
        TASK,
        MANIFEST,
        BY_HASH,
        replace(FACTS, corpus="worker.data: x", begun=True),
        START,
        "",
    ),
    # a requester on the list
    "requester": (TASK, MANIFEST, BY_REQUESTER, FACTS, START, ""),
    "requester's announcement": (MEMO, changed(carrier="memo"), BY_REQUESTER, FACTS, START, ""),
    "requester, no document yet": (TASK, None, BY_REQUESTER, FACTS, FETCH, ""),
    "in the requester's name": (
        TASK,
        None,
        BY_REQUESTER,
        replace(FACTS, vouched=False),
        REFUSED,
        "did not sign it",
    ),
    "nobody knows who signed": (TASK, None, BY_REQUESTER, replace(FACTS, vouched=None), REFUSED, "cannot be had"),
    "requester names another": (
        replace(TASK, named=frozenset({OTHER_HOST})),
        None,
        BY_REQUESTER,
        FACTS,
        REFUSED,
        "does not name this host",
    ),
    "not assigned yet": (replace(TASK, named=frozenset()), None, BY_REQUESTER, FACTS, REFUSED, "to nobody yet"),
    "requester, and left": (TASK, None, BY_REQUESTER, replace(FACTS, left=True), REFUSED, "you left it"),
    "manifest lists others": (
        TASK,
        changed(membership=MembershipSpec("equal", ("gonka1other",), 1)),
        BY_REQUESTER,
        FACTS,
        REFUSED,
        "does not list this host",
    ),
    "anybody with chain weight": (
        TASK,
        changed(membership=MembershipSpec("chain", (), 1)),
        BY_REQUESTER,
        FACTS,
        START,
        "",
    ),
    "model of the largest size": (TASK, MANIFEST, replace(BY_REQUESTER, max_parameters=1024), FACTS, START, ""),
    "model too large": (
        TASK,
        MANIFEST,
        replace(BY_REQUESTER, max_parameters=1023),
        FACTS,
        REFUSED,
        "1024 parameters, runs.max_parameters is 1023",
    ),
    "fees at the limit": (
        TASK,
        MANIFEST,
        replace(BY_REQUESTER, max_fee=2_100_000, gas_price=Decimal(1)),
        FACTS,
        START,
        "",
    ),
    "fees above the limit": (
        TASK,
        MANIFEST,
        replace(BY_REQUESTER, max_fee=2_099_999, gas_price=Decimal(1)),
        FACTS,
        REFUSED,
        "runs.max_fee is 2099999",
    ),
    "requester, another corpus": (TASK, MANIFEST, BY_REQUESTER, replace(FACTS, corpus="worker.data"), REFUSED, "data"),
    # CASES 50: a manifest, task or announcement from a stranger that names this host
    "stranger's task": (replace(TASK, author=STRANGER), None, BY_REQUESTER, FACTS, REFUSED, "you agreed neither"),
    "stranger's announcement": (replace(MEMO, author=STRANGER), None, BY_REQUESTER, FACTS, REFUSED, "you agreed"),
    "stranger's manifest that is here": (
        replace(TASK, author=STRANGER),
        MANIFEST,
        BY_REQUESTER,
        FACTS,
        REFUSED,
        "you agreed neither",
    ),
    "another hash than the one agreed to": (
        replace(TASK, manifest_hash=OTHER_HASH),
        MANIFEST,
        BY_HASH,
        FACTS,
        REFUSED,
        "you agreed neither",
    ),
    "an empty list": (TASK, MANIFEST, NOBODY, FACTS, REFUSED, "you agreed neither"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_list_allows(name: str) -> None:
    found, manifest, rules, facts, answer, why = CASES[name]
    decision = decide(found, manifest, rules, facts)
    assert (decision.answer, why in decision.why) == (answer, True), decision
    assert (decision.why == "") == (answer is START)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[4] is not REFUSED])
def test_nothing_is_fetched_or_started_that_is_not_looked_for(name: str) -> None:
    found, _, rules, *_ = CASES[name]
    assert may_start(found, rules)


def test_fees_of_a_whole_run() -> None:
    assert estimated_fees(MANIFEST, Decimal("0.5")) == 21 * 50_000
    assert estimated_fees(changed(carrier="memo"), Decimal(0)) == 21
    tokens = changed(end=EndSpec(0, 10 * 4 * 32 * 7 + 1))  # seven rounds of one host's tokens, and a bit
    assert estimated_fees(tokens, Decimal(1)) == 33 * 100_000
