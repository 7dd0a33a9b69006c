"""Genesis documents, epochs that follow from them, and what each chain version has."""

from __future__ import annotations

from typing import Any

import pytest
from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.inference import allow_list, build
from gonka_devnet.inference.genesis import GenesisError
from inference_replay import Chain

ALICE = "gonka1sas7v9wzaewngy8y56w96fsxag6pu70ehy94q6"
DAVE = "gonka1pfuuzskx3ecl0nae66x006xthh49dvg3smrgws"
QUERY = "/inference.inference.Query/"
MSG = "/inference.inference.Msg"
NODE = {"local_id": "node-1", "models": ["Qwen/QwQ-32B"], "hardware": [{"type": "H100", "count": 8}]}
TRAINING_MESSAGES = {
    "CreateTrainingTask",
    "CreateDummyTrainingTask",
    "ClaimTrainingTaskForAssignment",
    "AssignTrainingTask",
    "SubmitTrainingKvRecord",
    "JoinTraining",
    "JoinTrainingStatus",
    "TrainingHeartbeat",
    "SetBarrier",
}


def with_two(version: str = "0.2.0", **more: Any) -> Chain:
    participants = [
        {"address": ALICE, "weight": 30, "url": "https://a.example", "nodes": [NODE]},
        {"address": DAVE, "weight": 12},
    ]
    return Chain(build(version), {"participants": participants, **more})


def group(on: Chain) -> pb.EpochGroupData:
    return pb.QueryCurrentEpochGroupDataResponse.FromString(on.ask(QUERY + "CurrentEpochGroupData")).epoch_group_data


def participant(on: Chain, address: str) -> pb.Participant:
    asked = pb.QueryGetParticipantRequest(index=address.encode()).SerializeToString()
    return pb.QueryGetParticipantResponse.FromString(on.ask(QUERY + "Participant", asked)).participant


def register(on: Chain, address: str) -> None:
    message = pb.MsgSubmitNewParticipant(creator=address.encode(), url=b"https://new.example")
    assert not on.send(MSG + "SubmitNewParticipant", message.SerializeToString()).code


def test_participants_are_the_first_members() -> None:
    found = group(with_two())
    assert [(each.member_address, each.weight) for each in found.validation_weights] == [
        (DAVE.encode(), 12),
        (ALICE.encode(), 30),
    ]
    assert (found.total_weight, found.epoch_index) == (42, 0)


def test_new_validators_are_set_ten_blocks_into_the_epoch() -> None:
    on = with_two()
    on.go_to(60)
    assert group(on).epoch_index == 0
    on.go_to(61)
    assert (group(on).epoch_index, group(on).poc_start_block_height, group(on).total_weight) == (1, 50, 42)
    on.go_to(111)
    assert group(on).epoch_index == 2


def test_registering_anew_takes_the_weight_until_the_next_epoch() -> None:
    on = with_two()
    assert participant(on, ALICE).weight == 30
    on.go_to(5)
    register(on, ALICE)
    assert participant(on, ALICE).weight == -1
    on.go_to(60)
    assert participant(on, ALICE).weight == -1
    on.go_to(61)
    assert (participant(on, ALICE).weight, participant(on, ALICE).join_height) == (30, 5)


def test_who_registers_without_weight_never_becomes_a_member() -> None:
    on = Chain(build("0.2.0"))
    register(on, ALICE)
    on.go_to(200)
    assert [each.member_address for each in group(on).validation_weights] != [ALICE.encode()]
    assert participant(on, ALICE).weight == -1


def test_epoch_parameters_move_the_boundaries() -> None:
    on = with_two(epoch_params={"epoch_length": 20, "epoch_shift": 5})
    seen = []
    for height in (15, 16, 35, 36):
        on.go_to(height)
        info = pb.QueryEpochInfoResponse.FromString(on.ask(QUERY + "EpochInfo"))
        seen.append((info.latest_epoch.index, info.latest_epoch.poc_start_block_height))
    assert seen == [(0, 0), (1, 15), (1, 15), (2, 35)]
    assert info.params.epoch_params.epoch_length == 20
    assert info.params.epoch_params.poc_stage_duration == 4


def test_nodes_of_genesis_are_registered() -> None:
    asked = pb.QueryHardwareNodesRequest(participant=ALICE.encode()).SerializeToString()
    nodes = pb.QueryHardwareNodesResponse.FromString(with_two().ask(QUERY + "HardwareNodes", asked)).nodes
    assert nodes.participant == ALICE.encode()
    assert (nodes.hardware_nodes[0].local_id, nodes.hardware_nodes[0].hardware[0].count) == (b"node-1", 8)


def test_all_participants_are_answered_with_their_number() -> None:
    answer = pb.QueryAllParticipantResponse.FromString(with_two().ask(QUERY + "ParticipantAll"))
    assert [each.address.decode() for each in answer.participant] == [DAVE, ALICE]
    assert (answer.pagination.total, answer.block_height) == (2, 1)


def test_first_validator_has_the_chain_s_prefix() -> None:
    member = group(Chain(build("0.2.0"), prefix="cosmos")).validation_weights[0].member_address
    assert member.startswith(b"cosmos1td7qf467fvcxf5w9e4plf7rru44dem26")


def test_listed_models_replace_the_default_ones() -> None:
    on = with_two(models=["Qwen/QwQ-32B", "own/model"])
    for model, code in (("own/model", 0), ("Qwen/Qwen2.5-7B-Instruct", 1134)):
        node = pb.HardwareNode(local_id=b"n", models=[model.encode()])
        message = pb.MsgSubmitHardwareDiff(creator=DAVE.encode(), newOrModified=[node])
        assert on.send(MSG + "SubmitHardwareDiff", message.SerializeToString()).code == code


def test_hardware_can_be_removed() -> None:
    on = with_two()
    message = pb.MsgSubmitHardwareDiff(creator=ALICE.encode(), removed=[pb.HardwareNode(local_id=b"node-1")])
    assert not on.send(MSG + "SubmitHardwareDiff", message.SerializeToString()).code
    nodes = pb.QueryHardwareNodesAllResponse.FromString(on.ask(QUERY + "HardwareNodesAll")).nodes
    assert [list(each.hardware_nodes) for each in nodes] == [[]]


def test_nodes_are_kept_by_local_id() -> None:
    on = with_two()
    message = pb.MsgSubmitHardwareDiff(creator=ALICE.encode(), newOrModified=[pb.HardwareNode(local_id=b"a")])
    assert not on.send(MSG + "SubmitHardwareDiff", message.SerializeToString()).code
    nodes = pb.QueryHardwareNodesAllResponse.FromString(on.ask(QUERY + "HardwareNodesAll")).nodes
    assert [node.local_id for node in nodes[0].hardware_nodes] == [b"a", b"node-1"]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"particpants": []}, "'particpants'"),
        ({"epoch_params": {"epoch_lenght": 5}}, "'epoch_lenght'"),
        ({"epoch_params": {"epoch_length": "5"}}, "inference.epoch_params.epoch_length"),
        ({"epoch_params": {"epoch_length": 10}}, "inference.epoch_params.epoch_length"),
        ({"epoch_params": {"epoch_shift": 50}}, "inference.epoch_params.epoch_shift"),
        ({"models": "Qwen/QwQ-32B"}, "inference.models"),
        ({"participants": [{"weight": 1}]}, "inference.participants[0].address"),
        ({"participants": [{"address": ALICE, "stake": 1}]}, "'stake'"),
        ({"participants": [{"address": ALICE[:-1]}]}, "inference.participants[0].address"),
        ({"participants": [{"address": ALICE, "weight": -1}]}, "inference.participants[0].weight"),
        ({"participants": [{"address": ALICE, "weight": 2**31}]}, "inference.participants[0].weight"),
        ({"participants": [{"address": ALICE, "nodes": [{"local_id": "n", "gpu": 1}]}]}, "'gpu'"),
        ({"participants": [{"address": ALICE, "nodes": [{**NODE, "models": ["x"]}]}]}, "nodes[0].models"),
        ({"allow_training": ["cosmos1"]}, "inference.allow_training"),
    ],
)
def test_wrong_documents_are_refused_by_the_key(document: dict[str, Any], named: str) -> None:
    with pytest.raises(GenesisError) as refused:
        Chain(build("0.2.0"), document)
    assert named in str(refused.value)


def create(on: Chain, creator: str) -> tuple[str, int]:
    message = pb.MsgCreateTrainingTask(creator=creator.encode())
    outcome = on.send(MSG + "CreateTrainingTask", message.SerializeToString())
    return outcome.codespace, outcome.code


def record(on: Chain, creator: str) -> tuple[str, int]:
    who = creator.encode()
    message = pb.MsgSubmitTrainingKvRecord(creator=who, taskId=1, participant=who, key=b"k", value=b"v")
    outcome = on.send(MSG + "SubmitTrainingKvRecord", message.SerializeToString())
    return outcome.codespace, outcome.code


def test_only_listed_addresses_train_on_0_2_11() -> None:
    on = Chain(build("0.2.11"), {"allow_training": [ALICE]})
    assert create(on, ALICE) == record(on, ALICE) == ("", 0)
    assert create(on, DAVE) == record(on, DAVE) == ("inference", 1139)


def test_every_training_message_is_guarded_on_0_2_11() -> None:
    on = Chain(build("0.2.11"))
    creator = b"\x0a" + bytes([len(ALICE)]) + ALICE.encode()
    for name in TRAINING_MESSAGES:
        handle = on.module.messages[MSG + name].handle
        with pytest.raises(Exception, match="not allowed") as refused:
            handle(on.context(1), creator)
        assert refused.value.code == 1139, name


def test_roles_are_apart() -> None:
    on = Chain(build("0.2.11"), {"allow_training": [ALICE]})
    starting = next(iter(on.store.iterate(f"TrainingAllowList/{allow_list.START}/".encode())))[0]
    on.store.delete(starting)
    assert (create(on, ALICE)[1], record(on, ALICE)[1]) == (1139, 0)


def allowed(on: Chain, role: int) -> list[bytes]:
    asked = pb.QueryTrainingAllowListRequest(role=role).SerializeToString()
    return list(pb.QueryTrainingAllowListResponse.FromString(on.ask(QUERY + "TrainingAllowList", asked)).addresses)


def test_allow_lists_are_answered_by_role() -> None:
    on = Chain(build("0.2.11"), {"allow_training": [ALICE, DAVE]})
    assert allowed(on, 0) == allowed(on, 1) == [DAVE.encode(), ALICE.encode()]
    assert allowed(on, 2) == []
    assert allowed(Chain(build("0.2.11")), 0) == []


def test_anybody_trains_on_0_2_0_whatever_is_listed() -> None:
    on = Chain(build("0.2.0"), {"allow_training": [ALICE]})
    assert create(on, DAVE) == ("", 0)
    assert QUERY + "TrainingAllowList" not in on.module.queries


def test_version_without_training_keeps_epochs_and_hardware() -> None:
    module = build("0.2.16")
    assert set(module.messages) == {MSG + "SubmitNewParticipant", MSG + "SubmitHardwareDiff"}
    assert not [method for method in module.queries if "Training" in method]
    on = with_two("0.2.16")
    on.go_to(61)
    assert group(on).epoch_index == 1


def test_training_messages_are_all_there_before() -> None:
    for version in ("0.2.0", "0.2.11"):
        assert {MSG + name for name in TRAINING_MESSAGES} <= set(build(version).messages)


def test_unknown_version_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"0\.2\.0, 0\.2\.11, 0\.2\.16"):
        build("0.3.0")
