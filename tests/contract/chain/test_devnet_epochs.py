"""Epochs, participants, hardware and allow lists of a running devnet, set by its genesis file and flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from devnet_process import Devnet, Key, devnet, golden_key, topic_address
from gonka_devnet._pb.inference import inference_pb2 as pb
from google.protobuf.message import Message

ALICE, BOB, CAROL = golden_key("alice"), golden_key("bob"), golden_key("carol")
QUERY, MSG = "/inference.inference.Query/", "/inference.inference.Msg"
NODE = {"local_id": "node-1", "models": ["Qwen/QwQ-32B"], "hardware": [{"type": "H100", "count": 8}]}


def genesis(path: Path, **sections: Any) -> str:
    path.write_text(json.dumps(sections))
    return str(path)


def ask(net: Devnet, name: str, request: Message, height: int = 0) -> bytes:
    return net.call(QUERY + name, request, (("x-cosmos-block-height", str(height)),) if height else ())


def epoch_at(net: Devnet, height: int) -> tuple[int, int, int]:
    said = pb.QueryEpochInfoResponse.FromString(ask(net, "EpochInfo", pb.QueryEpochInfoRequest(), height))
    return said.block_height, said.latest_epoch.index, said.latest_epoch.poc_start_block_height


def members_at(net: Devnet, height: int) -> tuple[int, int]:
    raw = ask(net, "CurrentEpochGroupData", pb.QueryCurrentEpochGroupDataRequest(), height)
    group = pb.QueryCurrentEpochGroupDataResponse.FromString(raw).epoch_group_data
    return group.epoch_index, group.total_weight


def send(net: Devnet, key: Key, name: str, message: Message) -> tuple[int, bytes]:
    found = net.included(net.sign(key, [(MSG + name, message.SerializeToString())], gas=500_000))
    return found.code, found.codespace


def test_epochs_advance_with_the_blocks(tmp_path: Path) -> None:
    participants = [
        {"address": ALICE.address(), "weight": 30, "url": "https://a.example", "nodes": [NODE]},
        {"address": BOB.address(), "weight": 12},
    ]
    inference = {"epoch_params": {"epoch_length": 20, "epoch_shift": 5}, "participants": participants}
    path = genesis(tmp_path / "genesis.json", inference=inference)
    with devnet(tmp_path / "home", "--genesis", path, "--chain-version", "0.2.16") as net:
        net.fault("blocks", on=False)
        net.fault("blocks", make=60 - net.height())
        # epoch 1 begins at length - shift, each later one a length after; it is there at the end of that block
        assert epoch_at(net, 14) == (14, 0, 0)
        assert epoch_at(net, 15) == (15, 1, 15)
        assert [epoch_at(net, height)[1:] for height in (34, 35, 54, 55)] == [(1, 15), (2, 35), (2, 35), (3, 55)]
        # validators are set 4 + 1 + 4 + 1 blocks into the epoch
        assert [members_at(net, height) for height in (24, 25, 44, 45)] == [(0, 42), (1, 42), (1, 42), (2, 42)]
        raw = ask(net, "HardwareNodes", pb.QueryHardwareNodesRequest(participant=ALICE.address().encode()))
        (node,) = pb.QueryHardwareNodesResponse.FromString(raw).nodes.hardware_nodes
        assert (node.local_id, node.status, node.hardware[0].count) == (b"node-1", 1, 8)


def test_only_those_on_the_lists_train(tmp_path: Path) -> None:
    create = pb.MsgCreateTrainingTask(creator=ALICE.address().encode())
    flags = ("--chain-version", "0.2.11", "--allow-training", ALICE.address())
    with devnet(tmp_path, *flags, block_seconds=0.1) as net:
        assert send(net, ALICE, "CreateTrainingTask", create) == (0, b"")
        who = ALICE.address().encode()
        record = pb.MsgSubmitTrainingKvRecord(creator=who, taskId=1, participant=who, key=b"k", value=b"v")
        assert send(net, ALICE, "SubmitTrainingKvRecord", record) == (0, b"")
        create.creator = record.creator = BOB.address().encode()
        assert send(net, BOB, "CreateTrainingTask", create) == (1139, b"inference")
        assert send(net, BOB, "SubmitTrainingKvRecord", record) == (1139, b"inference")
        for role in (0, 1):
            raw = ask(net, "TrainingAllowList", pb.QueryTrainingAllowListRequest(role=role))
            assert list(pb.QueryTrainingAllowListResponse.FromString(raw).addresses) == [ALICE.address().encode()]


def test_sends_are_restricted_until_a_height_of_the_genesis_file(tmp_path: Path) -> None:
    path = genesis(tmp_path / "genesis.json", bank={"restricted_until": 30})
    with devnet(tmp_path / "home", "--genesis", path, "--index-lag-seconds", "0") as net:
        raw = net.send(CAROL, topic_address("early"))
        net.fault("blocks", on=False)
        net.fault("blocks", make=1)
        assert net.broadcast(raw).code == 0
        net.fault("blocks", make=1)
        assert net.included_already(raw).code == 1108
        net.fault("blocks", make=29 - net.height())
        raw = net.send(CAROL, topic_address("early"))
        assert net.broadcast(raw).code == 0
        assert net.fault("blocks", make=1)["height"] == 30
        assert net.included_already(raw).code == 0
