"""Hardware that participants registered, and whose is what a task asks for: pure, but for the wire types.

A task asks for counts of types of hardware, by the type's exact text. What a participant has of it is summed over its
nodes that are in service; an assignment names its nodes by their local ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gonka_trainer._pb.gonka_trainer.chain.v1 import tasks_pb2
from gonka_trainer.text import printable

_OUT_OF_SERVICE: Final = (4, 5)  # stopped, failed
_SHOWN_TEXT: Final = 120
Hardware = tuple[str, int]
"""A type of hardware and how many of it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node that a participant registered, by its local id."""

    local_id: str
    in_service: bool
    hardware: tuple[Hardware, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A participant (bech32) and its nodes."""

    participant: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """What a participant has of the hardware that a task asks for, on which of its nodes, and whether it has all."""

    participant: str
    node_ids: tuple[str, ...]
    has: tuple[Hardware, ...]
    suffices: bool


def read_hosts(answer: Iterable[tasks_pb2.HardwareNodes]) -> tuple[Host, ...]:
    """Return the participants that have nodes."""
    return tuple(
        Host(printable(each.participant, _SHOWN_TEXT), tuple(_node(node) for node in each.hardware_nodes))
        for each in answer
        if each.hardware_nodes
    )


def _node(node: tasks_pb2.HardwareNode) -> Node:
    hardware = tuple((printable(each.type, _SHOWN_TEXT), each.count) for each in node.hardware)
    return Node(printable(node.local_id, _SHOWN_TEXT), node.status not in _OUT_OF_SERVICE, hardware)


def match(wanted: Sequence[Hardware], host: Host) -> Match:
    """Return what of the wanted hardware the host has; a task that asks for none suits every node in service."""
    needs = totals(wanted)
    useful = [node for node in host.nodes if node.in_service and (not needs or _has_any(node, needs))]
    has = totals(each for node in useful for each in node.hardware if each[0] in needs)
    suffices = bool(useful) and all(has[kind] >= count for kind, count in needs.items())
    return Match(host.participant, tuple(node.local_id for node in useful), tuple(sorted(has.items())), suffices)


def matches(wanted: Sequence[Hardware], hosts: Iterable[Host]) -> tuple[Match, ...]:
    """Return the hosts that have some of the wanted hardware, those with enough of it first."""
    found = [match(wanted, host) for host in hosts]
    return tuple(sorted((each for each in found if each.node_ids), key=lambda each: not each.suffices))


def totals(hardware: Iterable[Hardware]) -> Counter[str]:
    """Return the sum of each type."""
    counted: Counter[str] = Counter()
    for kind, count in hardware:
        counted[kind] += count
    return counted


def _has_any(node: Node, needs: Counter[str]) -> bool:
    return any(kind in needs and count > 0 for kind, count in node.hardware)
