"""Every recorded case of the training module, in the order and at the heights of the recording."""

from __future__ import annotations

from typing import Any

import pytest
from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import build
from inference_replay import (
    Chain,
    expected_of_query,
    messages_of,
    outcome_of_query,
    recorded,
    recorded_responses,
    recorded_time_ns,
)

BROADCAST = "/cosmos.tx.v1beta1.Service/BroadcastTx"
QUERY = "/inference.inference.Query/"
CREATE = "/inference.inference.MsgCreateTrainingTask"
FAILED = "failed to execute message; message index: 0: "
TOPICS = ("participants", "tasks", "join", "heartbeat", "barrier", "kv", "warm", "quirks", "tasks2", "timeouts")
REFUSED_BY_AUTHZ = "exec_not_granted_type"
INDEXES = {"msg_index", "authz_msg_index"}  # added by the application
OF_OTHER_MODULES = {"tx", "coin_spent", "coin_received", "transfer", "message"}
UNRECORDED_CREATES = range(67, 76)  # heights of nine transactions sent before order_of_the_list

LIST_ORDER = "order_of_the_list"
CREATOR = b"gonka1sas7v9wzaewngy8y56w96fsxag6pu70ehy94q6"
WITH_OTHER_FIELDS = {("participants", "participant"), ("epochs", "current_epoch_group_data")}  # tested on their own

Case = dict[str, Any]


def order() -> list[tuple[str, Case]]:
    epochs = [("epochs", case) for case in recorded("epochs")]
    rest = [(topic, case) for topic in TOPICS for case in recorded(topic)]
    return [*epochs[:3], *rest, *epochs[3:]]


def is_played(case: Case) -> bool:
    if case["name"] == REFUSED_BY_AUTHZ:
        return False
    if case["name"] == LIST_ORDER:
        return True
    return case.get("method", "").startswith(QUERY) or case.get("method") == BROADCAST


ORDER = order()
INCLUDED = "_tx"
TRANSACTIONS = {
    (topic, case["name"].removesuffix(INCLUDED)): case for topic, case in ORDER if case["name"].endswith(INCLUDED)
}
PLAYED = [(topic, case["name"]) for topic, case in ORDER if is_played(case)]


def expected_transaction(case: Case, included: Case | None) -> dict[str, Any]:
    """What the recording says of a broadcast: refused at once, failed in its block, or its response and events."""
    answer = (case if included is None else included)["answer"]["tx_response"]
    if included is None:
        assert answer["code"]
    events = [
        (event["type"], tuple((a["key"], a["value"]) for a in event["attributes"] if a["key"] not in INDEXES))
        for event in answer.get("events", [])
        if event["type"] not in OF_OTHER_MODULES
    ]
    return {
        "code": answer.get("code", 0),
        "codespace": answer.get("codespace", ""),
        "log": answer.get("raw_log", ""),
        "responses": recorded_responses(included) if included else [],
        "events": events,
    }


def played_transaction(chain: Chain, case: Case, included: Case | None) -> dict[str, Any]:
    if included is not None:
        height = int(included["answer"]["tx_response"]["height"])
        chain.times_ns[height] = recorded_time_ns(included)
        chain.go_to(height)
    outcomes = [chain.send(url, value) for url, value in messages_of(case)]
    first = outcomes[0]
    return {
        "code": first.code,
        "codespace": first.codespace,
        "log": first.log if first.checked or not first.code else FAILED + first.log,
        "responses": [response for outcome in outcomes for response in outcome.responses],
        "events": [(event.kind, event.attributes) for outcome in outcomes for event in outcome.events],
    }


def played_query(chain: Chain, case: Case) -> tuple[str, Any]:
    height = int(case.get("answer_metadata", {}).get("x-cosmos-block-height", chain.height))
    chain.go_to(height)
    return outcome_of_query(chain, case, height)


def played_list_order(chain: Chain) -> list[int]:
    for height in UNRECORDED_CREATES:
        chain.go_to(height)
        assert not chain.send(CREATE, pb.MsgCreateTrainingTask(creator=CREATOR).SerializeToString()).code
    tasks = pb.QueryTrainingTaskAllResponse.FromString(chain.ask(QUERY + "TrainingTaskAll")).tasks
    return [task.id for task in tasks]


def played(chain: Chain, topic: str, case: Case) -> tuple[Any, Any]:
    """What the recording says, and what the module does."""
    if case["name"] == LIST_ORDER:
        return case["ids"], played_list_order(chain)
    if case["method"] != BROADCAST:
        return expected_of_query(case), played_query(chain, case)
    included = TRANSACTIONS.get((topic, case["name"]))
    return expected_transaction(case, included), played_transaction(chain, case, included)


@pytest.fixture(scope="module")
def replay() -> dict[tuple[str, str], tuple[Any, Any]]:
    chain = Chain(build("0.2.0"))
    return {(topic, case["name"]): played(chain, topic, case) for topic, case in ORDER if is_played(case)}


@pytest.mark.parametrize(("topic", "name"), [key for key in PLAYED if key not in WITH_OTHER_FIELDS])
def test_case_is_as_recorded(replay: dict[tuple[str, str], tuple[Any, Any]], topic: str, name: str) -> None:
    expected, got = replay[(topic, name)]
    assert got == expected


def test_participant_joined_in_the_recorded_second(replay: dict[tuple[str, str], tuple[Any, Any]]) -> None:
    (_, expected), (_, got) = replay[("participants", "participant")]
    want = pb.QueryGetParticipantResponse.FromString(expected).participant
    have = pb.QueryGetParticipantResponse.FromString(got).participant
    assert have.join_time // 1000 == want.join_time // 1000
    have.join_time = want.join_time
    assert have.SerializeToString() == want.SerializeToString()


def test_first_group_is_the_recorded_validator(replay: dict[tuple[str, str], tuple[Any, Any]]) -> None:
    (_, expected), (_, got) = replay[("epochs", "current_epoch_group_data")]
    want = pb.QueryCurrentEpochGroupDataResponse.FromString(expected)
    want.DiscardUnknownFields()  # the group's policy address and seed signatures
    assert got == want.SerializeToString()


def test_epochs_begin_where_they_did() -> None:
    seen = next(case["seen"] for _, case in ORDER if case["name"] == "latest_epoch_as_blocks_pass")
    chain = Chain(build("0.2.0"))
    for point in seen:
        chain.go_to(point["block_height"] + 1)
        info = pb.QueryEpochInfoResponse.FromString(chain.ask(QUERY + "EpochInfo", height=point["block_height"]))
        latest = info.latest_epoch
        assert (info.block_height, latest.index, latest.poc_start_block_height) == tuple(point.values())
