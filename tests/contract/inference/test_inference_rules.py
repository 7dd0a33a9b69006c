"""Rules of the training module that the recordings do not reach (read in the source of version 0.2.0)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import build
from gonka_devnet.inference.addresses import with_prefix
from gonka_devnet.module import AbciError, QueryError
from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from inference_replay import Chain, Outcome

ALICE = b"gonka1sas7v9wzaewngy8y56w96fsxag6pu70ehy94q6"
DAVE = b"gonka1pfuuzskx3ecl0nae66x006xthh49dvg3smrgws"
CAROL = b"gonka1xd2rlqqqvdywudxu3sc0uvh63hnmzrvvw009l2"
QUERY = "/inference.inference.Query/"
PROTO = Path(__file__).resolve().parents[3] / "chain" / "proto" / "inference"

Status = pb.MLNodeTrainStatus


def chain(version: str = "0.2.0", **document: Any) -> Chain:
    return Chain(build(version), document)


def send(on: Chain, message: Message) -> Outcome:
    return on.send(f"/{message.DESCRIPTOR.full_name}", message.SerializeToString())


def send_well(on: Chain, message: Message) -> bytes:
    outcome = send(on, message)
    assert not outcome.code, outcome.log
    return outcome.responses[0][1]


def with_task(on: Chain, *nodes: tuple[bytes, list[bytes]]) -> None:
    """Task 1, assigned to these participants' nodes."""
    send_well(on, pb.MsgCreateTrainingTask(creator=ALICE))
    assignees = [pb.TrainingTaskAssignee(participant=who, node_ids=ids) for who, ids in nodes]
    send_well(on, pb.MsgAssignTrainingTask(creator=ALICE, task_id=1, assignees=assignees))


def with_three_nodes(on: Chain) -> None:
    with_task(on, (ALICE, [b"a"]), (DAVE, [b"1", b"2"]))


def request(who: bytes, node: bytes, step: int = 0) -> pb.JoinTrainingRequest:
    return pb.JoinTrainingRequest(node_id=who + b"/" + node, run_id=1, outer_step=step)


def join(on: Chain, who: bytes, node: bytes, step: int = 0) -> None:
    send_well(on, pb.MsgJoinTraining(creator=who, req=request(who, node, step)))


def status(on: Chain, who: bytes, node: bytes, step: int = 0) -> pb.MLNodeTrainStatus:
    value = send_well(on, pb.MsgJoinTrainingStatus(creator=who, req=request(who, node, step)))
    return pb.MsgJoinTrainingStatusResponse.FromString(value).status


def beat(on: Chain, who: bytes, node: bytes, step: int = 0) -> Outcome:
    heartbeat = pb.HeartbeatRequest(node_id=who + b"/" + node, run_id=1, outer_step=step)
    return send(on, pb.MsgTrainingHeartbeat(creator=who, req=heartbeat))


def test_step_closes_without_the_last_node_after_more_than_30_blocks() -> None:
    on = chain()
    with_three_nodes(on)
    join(on, ALICE, b"a")
    join(on, DAVE, b"1")
    opened = on.height
    on.go_to(opened + 20)
    assert not beat(on, DAVE, b"1").code
    on.go_to(opened + 30)
    assert status(on, ALICE, b"a").status == Status.NOT_JOINED
    on.go_to(opened + 31)
    closed = status(on, ALICE, b"a")
    assert (closed.status, closed.rank) == (Status.OK, 1)
    assert status(on, DAVE, b"1").rank == 0


def test_node_is_alive_for_30_blocks() -> None:
    on = chain()
    with_three_nodes(on)
    join(on, ALICE, b"a")
    joined = on.height
    asked = pb.QueryTrainingAliveNodesRequest(req=pb.GetAliveNodesRequest(run_id=1)).SerializeToString()
    counts = []
    for height in (joined + 30, joined + 31):
        on.go_to(height)
        answer = pb.QueryTrainingAliveNodesResponse.FromString(on.ask(QUERY + "TrainingAliveNodes", asked))
        counts.append(len(answer.resp.alive_nodes))
    assert counts == [1, 0]


def test_strangers_heartbeats_stop_a_step_from_closing_late() -> None:
    on = chain()
    with_task(on, (ALICE, [b"a"]))
    join(on, ALICE, b"a", 3)
    on.go_to(on.height + 31)
    assert not beat(on, CAROL, b"x", 3).code
    outcome = beat(on, CAROL, b"y", 3)
    assert (outcome.codespace, outcome.code) == ("undefined", 1)
    assert outcome.log == "cannot assign rank: active=2, want [0,1]"


def test_ranks_change_when_a_ranked_node_is_silent() -> None:
    on = chain()
    with_three_nodes(on)
    for who, node in ((ALICE, b"a"), (DAVE, b"1"), (DAVE, b"2")):
        join(on, who, node)
    assert status(on, ALICE, b"a").rank == 2
    on.go_to(on.height + 31)
    assert not beat(on, DAVE, b"2").code
    assert status(on, ALICE, b"a").rank == 1
    assert status(on, DAVE, b"1").rank == 0  # asking brought it back to life, before all three


def with_step_1_closed(on: Chain) -> None:
    with_three_nodes(on)
    for step in (0, 1):
        for who, node in ((ALICE, b"a"), (DAVE, b"1"), (DAVE, b"2")):
            join(on, who, node, step)


def test_ranks_of_a_former_step_close_up_when_asked_for() -> None:
    on = chain()
    with_step_1_closed(on)
    assert status(on, ALICE, b"a").rank == 2
    on.go_to(on.height + 31)
    for who, node in ((ALICE, b"a"), (DAVE, b"1"), (DAVE, b"2")):
        beat(on, who, node, 1)
    assert status(on, ALICE, b"a").rank == 0


def test_status_of_a_later_step_than_the_closed_one() -> None:
    on = chain()
    with_step_1_closed(on)
    outcome = send(on, pb.MsgJoinTrainingStatus(creator=ALICE, req=request(ALICE, b"a", 4)))
    assert outcome.log == "Unexpected epoch received in rerank not finished. epoch = 4. lastEpoch = 1"


def test_heartbeat_before_any_join_has_no_step_to_look_at() -> None:
    on = chain()
    with_three_nodes(on)
    outcome = beat(on, ALICE, b"a")
    assert (outcome.codespace, outcome.code, outcome.log) == ("undefined", 1, "empty activity")
    assert not [key for key in on.store.values if b"/heartbeat/" in key]


def test_status_of_an_unknown_run_is_an_error_inside_a_good_response() -> None:
    assert status(chain(), ALICE, b"a").status == Status.ERROR


def test_status_of_a_step_not_yet_opened_is_empty_activity() -> None:
    on = chain()
    with_three_nodes(on)
    join(on, ALICE, b"a")
    outcome = send(on, pb.MsgJoinTrainingStatus(creator=ALICE, req=request(ALICE, b"a", 4)))
    assert outcome.log == "empty activity"


def test_barrier_of_a_step_not_yet_opened_is_not_ready_and_empty() -> None:
    on = chain()
    with_three_nodes(on)
    asked = pb.QueryTrainingBarrierRequest(req=pb.GetBarrierStatusRequest(barrier_id=b"b", run_id=1))
    answer = on.ask(QUERY + "TrainingBarrier", asked.SerializeToString())
    assert pb.QueryTrainingBarrierResponse.FromString(answer).resp == pb.GetBarrierStatusResponse()


def test_barrier_is_ready_when_all_alive_nodes_have_set_it() -> None:
    on = chain()
    with_three_nodes(on)
    join(on, ALICE, b"a")
    send_well(
        on,
        pb.MsgSetBarrier(
            creator=ALICE, req=pb.SetBarrierRequest(barrier_id=b"b", node_id=ALICE + b"/a", run_id=1, outer_step=0)
        ),
    )
    asked = pb.QueryTrainingBarrierRequest(req=pb.GetBarrierStatusRequest(barrier_id=b"b", run_id=1))
    answer = pb.QueryTrainingBarrierResponse.FromString(on.ask(QUERY + "TrainingBarrier", asked.SerializeToString()))
    assert answer.resp.all_ready


def test_claims_exclude_each_other_within_one_block_only() -> None:
    on = chain()
    send_well(on, pb.MsgCreateTrainingTask(creator=ALICE))
    send_well(on, pb.MsgClaimTrainingTaskForAssignment(creator=ALICE, task_id=1))
    second = send(on, pb.MsgClaimTrainingTaskForAssignment(creator=DAVE, task_id=1))
    assert (second.codespace, second.code) == ("inference", 1122)
    on.go_to(on.height + 1)
    send_well(on, pb.MsgClaimTrainingTaskForAssignment(creator=DAVE, task_id=1))


def test_dummy_task_in_the_way_stops_creation() -> None:
    on = chain()
    send_well(on, pb.MsgCreateDummyTrainingTask(creator=ALICE, task=pb.TrainingTask(id=1)))
    for _ in range(2):  # the number goes back with the failed transaction
        assert send(on, pb.MsgCreateTrainingTask(creator=ALICE)).log == "task already exists. id = 1"


def test_dummy_task_is_in_no_list_but_all() -> None:
    on = chain()
    send_well(on, pb.MsgCreateDummyTrainingTask(creator=ALICE, task=pb.TrainingTask(id=7)))
    answers = [on.ask(QUERY + name) for name in ("QueuedTrainingTasks", "InProgressTrainingTasks", "TrainingTaskAll")]
    assert [len(pb.QueryTrainingTaskAllResponse.FromString(answer).tasks) for answer in answers] == [0, 0, 1]


def kv(key: bytes, value: bytes = b"v", **changes: Any) -> pb.MsgSubmitTrainingKvRecord:
    fields = {"creator": ALICE, "taskId": 1, "participant": ALICE, "key": key, "value": value} | changes
    return pb.MsgSubmitTrainingKvRecord(**fields)


def test_keys_may_be_any_bytes_and_come_in_the_order_of_the_store() -> None:
    on = chain()
    for key in (b"a", b"a!", b"\xff\xfe", b"a0"):
        send_well(on, kv(key, value=b"\xfe"))
    listed = on.ask(
        QUERY + "ListTrainingKvRecordKeys", pb.QueryListTrainingKvRecordKeysRequest(taskId=1).SerializeToString()
    )
    # "a!" is before "a": the store's keys are "a!/value/" and "a/value/".
    assert pb.QueryListTrainingKvRecordKeysResponse.FromString(listed).keys == [b"a!", b"a", b"a0", b"\xff\xfe"]


def test_tasks_do_not_share_keys() -> None:
    on = chain()
    send_well(on, kv(b"k", taskId=11))
    listed = on.ask(
        QUERY + "ListTrainingKvRecordKeys", pb.QueryListTrainingKvRecordKeysRequest(taskId=1).SerializeToString()
    )
    assert listed == b""


ASSIGN = pb.MsgAssignTrainingTask
ASSIGNEE = pb.TrainingTaskAssignee
BEAT = pb.MsgTrainingHeartbeat
NEW = pb.MsgSubmitNewParticipant
NODE = ALICE + b"/a"
REFUSALS: list[tuple[Message, int, str]] = [
    (pb.MsgClaimTrainingTaskForAssignment(creator=ALICE), 18, "task_id must be > 0"),
    (ASSIGN(creator=ALICE, task_id=1), 18, "assignees must be non-empty"),
    (
        ASSIGN(creator=ALICE, task_id=1, assignees=[ASSIGNEE(participant=ALICE)]),
        18,
        "assignees[0].node_ids must be non-empty",
    ),
    (
        ASSIGN(creator=ALICE, task_id=1, assignees=[ASSIGNEE(participant=ALICE, node_ids=[b"a", b" "])]),
        18,
        "assignees[0].node_ids[1] must be non-empty",
    ),
    (
        ASSIGN(creator=ALICE, task_id=1, assignees=[ASSIGNEE(node_ids=[b"a"])]),
        7,
        "assignees[0].participant invalid (empty address string is not allowed)",
    ),
    (pb.MsgJoinTraining(creator=ALICE), 18, "req is required"),
    (pb.MsgJoinTraining(creator=ALICE, req=pb.JoinTrainingRequest(run_id=1)), 18, "req.node_id is required"),
    (
        pb.MsgJoinTrainingStatus(creator=ALICE, req=pb.JoinTrainingRequest(node_id=NODE)),
        18,
        "req.run_id must be > 0",
    ),
    (
        BEAT(creator=ALICE, req=pb.HeartbeatRequest(node_id=NODE, run_id=1, epoch=-1)),
        18,
        "req.epoch cannot be negative",
    ),
    (
        BEAT(creator=ALICE, req=pb.HeartbeatRequest(node_id=NODE, run_id=1, timestamp=float("nan"))),
        18,
        "req.timestamp must be finite",
    ),
    (
        pb.MsgSetBarrier(creator=ALICE, req=pb.SetBarrierRequest(node_id=NODE, run_id=1)),
        18,
        "req.barrier_id is required",
    ),
    (kv(b"k", taskId=0), 18, "taskId must be > 0"),
    (kv(b"k", participant=b""), 7, "invalid participant address (empty address string is not allowed)"),
    (kv(b" "), 18, "key is required"),
    (NEW(creator=ALICE, url=b"ftp://host"), 18, "url must have scheme http or https"),
    (NEW(creator=ALICE, url=b"https://"), 18, "url must include a host for https://"),
]


@pytest.mark.parametrize(("message", "code", "text"), REFUSALS, ids=[text for _, _, text in REFUSALS])
def test_stateless_refusals(message: Message, code: int, text: str) -> None:
    outcome = send(chain(), message)
    kind = {7: "invalid address", 18: "invalid request"}[code]
    assert (outcome.checked, outcome.codespace, outcome.code) == (True, "sdk", code)
    assert outcome.log == f"{text}: {kind}"


def test_assignee_of_another_prefix_is_refused() -> None:
    other = with_prefix(ALICE, "cosmos")
    assignees = [ASSIGNEE(participant=other, node_ids=[b"a"])]
    outcome = send(chain(), ASSIGN(creator=ALICE, task_id=1, assignees=assignees))
    assert (outcome.code, outcome.checked) == (7, True)
    assert "invalid Bech32 prefix; expected gonka, got cosmos" in outcome.log


def test_bytes_that_are_no_message_are_refused() -> None:
    for message in build("0.2.0").messages.values():
        with pytest.raises(AbciError) as refused:
            message.signer(b"\x0a\xff")
        assert (refused.value.codespace, refused.value.code) == ("sdk", 2)


def test_messages_bring_their_descriptors() -> None:
    for url, message in build("0.2.11").messages.items():
        assert f"/{message.descriptor.full_name}" == url


def test_query_that_is_no_message_is_internal() -> None:
    with pytest.raises(QueryError) as refused:
        chain().ask(QUERY + "TrainingTask", b"\x0a\xff")
    assert refused.value.status.name == "INTERNAL"


def test_signer_is_the_creator() -> None:
    for url, message in build("0.2.0").messages.items():
        assert message.signer(b"\x0a" + bytes([len(ALICE)]) + ALICE) == ALICE.decode(), url
        assert message.response_type_url == url + "Response"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_inference", PROTO / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_code_is_that_of_the_proto_file(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    generate = generator()
    assert generate.main(tmp_path) == 0
    for fresh in tmp_path.iterdir():
        assert (generate.TARGET / fresh.name).read_text() == fresh.read_text()


def test_generated_names_leave_the_default_pool_to_clients() -> None:
    assert pb.DESCRIPTOR.pool is not descriptor_pool.Default()
