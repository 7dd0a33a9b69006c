"""Whose hardware is what a task asks for."""

from __future__ import annotations

import pytest

from gonka_trainer._pb.gonka_trainer.chain.v1 import tasks_pb2
from gonka_trainer.chain.hardware import Host, Match, Node, match, matches, read_hosts
from gonka_trainer.cli.task_commands import parse_assignee, parse_hardware
from gonka_trainer.errors import ConfigError

H100, A100 = "NVIDIA H100 80GB", "NVIDIA A100 80GB"
BIG = Host("big", (Node("n1", True, ((H100, 8),)), Node("n2", True, ((H100, 8), (A100, 2)))))
SMALL = Host("small", (Node("n1", True, ((H100, 4),)), Node("n2", True, ((A100, 8),))))
BROKEN = Host("broken", (Node("n1", False, ((H100, 8),)),))
OTHER = Host("other", (Node("n1", True, (("nvidia h100 80gb", 8),)),))


def test_what_a_host_has() -> None:
    assert match(((H100, 16),), BIG) == Match("big", ("n1", "n2"), ((H100, 16),), True)
    assert match(((H100, 17),), BIG).suffices is False
    assert match(((H100, 8), (H100, 9)), BIG).suffices is False  # counts of one type add up
    assert match(((H100, 4), (A100, 8)), SMALL) == Match("small", ("n1", "n2"), ((A100, 8), (H100, 4)), True)
    assert match(((A100, 1),), SMALL).node_ids == ("n2",)
    assert match(((H100, 1),), BROKEN) == Match("broken", (), (), False)


def test_who_has_it() -> None:
    found = matches(((H100, 8),), (SMALL, BROKEN, OTHER, BIG))
    assert [(each.participant, each.suffices) for each in found] == [("big", True), ("small", False)]
    assert [each.participant for each in matches((), (SMALL, BROKEN, OTHER))] == ["small", "other"]


def test_what_the_chain_says() -> None:
    answer = tasks_pb2.HardwareNodes(
        participant=b"gonka1\xff",
        hardware_nodes=[
            tasks_pb2.HardwareNode(local_id=b"n\x1b", status=3, hardware=[tasks_pb2.Hardware(type=b"X", count=2)]),
            tasks_pb2.HardwareNode(local_id=b"m", status=5),
        ],
    )
    nodes = (Node("n\\x1b", True, (("X", 2),)), Node("m", False, ()))
    assert read_hosts([answer, tasks_pb2.HardwareNodes(participant=b"none")]) == (Host("gonka1\\xff", nodes),)


def test_what_is_typed() -> None:
    assert parse_hardware("NVIDIA H100 80GB=8") == (H100, 8)
    assert parse_hardware("a=b=2") == ("a=b", 2)
    for wrong in ("H100", "H100=", "=8", "H100=0", "H100=-1", "H100=8x", f"H100={1 << 32}", "H100=²"):
        with pytest.raises(ConfigError, match="TYPE=COUNT"):
            parse_hardware(wrong)
    address = "gonka1qyqszqgpqyqszqgpqyqszqgpqyqszqgp5u3fgn"
    with pytest.raises(ConfigError, match="assignee"):
        parse_assignee("gonka1nobody=n1", "gonka")
    for wrong in (address, f"{address}=", f"{address}=n1,,n2", f"{address}= "):
        with pytest.raises(ConfigError, match="NODE"):
            parse_assignee(wrong, "gonka")
