"""Training tasks of the module (v0.2.0 - v0.2.11): reading, claiming and assigning them.

The module checks almost nobody: any account claims over a claim (its deadline of 100 blocks never holds), and assigns
what it did not claim, once. Network nodes claim what is queued within seconds. So being one of many assigners is
normal: every step here reads the task again and says what stands, whoever did it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import grpc

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, tasks_pb2
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.hardware import Hardware, Host, read_hosts
from gonka_trainer.chain.sender import Sender
from gonka_trainer.chain.sources import parse_manifest_uri
from gonka_trainer.chain.transactions import Message, assign_task_message, claim_task_message
from gonka_trainer.chain.transport import NodeAnswerError
from gonka_trainer.errors import ChainError, ConfigError
from gonka_trainer.round.records import Announce
from gonka_trainer.text import printable
from gonka_trainer.types import sha256

_QUERY: Final = "/inference.inference.Query/"
_SHOWN_TEXT: Final = 120
_STEP_TAG: Final = b"gonka-trainer/task-step/1"
Assignee = tuple[str, tuple[str, ...]]
"""A participant (bech32) and its local node ids."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task as the module has it. Heights are 0 for what has not happened; texts are fit to be shown."""

    id: int
    requested_by: str
    created: int
    assigner: str
    claimed: int
    assigned: int
    hardware: tuple[Hardware, ...]
    dataset: str
    manifest: Announce | None
    assignees: tuple[Assignee, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What became of a claim or an assignment: the task as it stands, and whether it stands as it was wanted.

    `tx_hash` is empty when nothing was sent or what was sent was refused; `refusal` says why then.
    """

    task: Task
    stands: bool
    tx_hash: str
    refusal: str


class TaskDesk:
    """The module's tasks at a chain node. ChainError, saying so, on a chain without the module."""

    def __init__(self, chain: ChainClient) -> None:
        self._chain = chain

    async def all(self) -> tuple[Task, ...]:
        """Return all tasks by their number."""
        await self._need_module()
        return tuple(sorted((_task(each) for each in await self._chain.tasks()), key=lambda task: task.id))

    async def one(self, task_id: int) -> Task:
        """Return a task; ConfigError when there is none of this number."""
        await self._need_module()
        request = inference_pb2.QueryTrainingTaskRequest(id=task_id)
        try:
            path = _QUERY + "TrainingTask"
            return _task((await self._chain.call(path, request, inference_pb2.QueryTrainingTaskResponse)).task)
        except NodeAnswerError as error:
            if error.status is grpc.StatusCode.NOT_FOUND:
                raise ConfigError(f"there is no task {task_id}", "`gonka-trainer task list --all` shows all") from error
            raise

    async def hosts(self) -> tuple[Host, ...]:
        """Return the hardware that participants registered."""
        request = tasks_pb2.QueryHardwareNodesAllRequest()
        path = _QUERY + "HardwareNodesAll"
        return read_hosts((await self._chain.call(path, request, tasks_pb2.QueryHardwareNodesAllResponse)).nodes)

    async def host(self, participant: str) -> Host:
        """Return one participant's hardware; without nodes when it has registered none."""
        request = tasks_pb2.QueryHardwareNodesRequest(participant=participant)
        answer = await self._chain.call(_QUERY + "HardwareNodes", request, tasks_pb2.QueryHardwareNodesResponse)
        found = read_hosts([answer.nodes])
        return Host(participant, found[0].nodes if found else ())

    async def claim(self, sender: Sender, task_id: int) -> Step:
        """Claim a task for the sender's author, unless it is assigned already."""
        task = await self.one(task_id)
        if task.assigned:
            return Step(task, False, "", "")
        step = await self._step(sender, task, claim_task_message(sender.author_text, task_id))
        return _judged(step, step.task.assigner == sender.author_text)

    async def assign(self, sender: Sender, task_id: int, assignees: Sequence[Assignee]) -> Step:
        """Assign a task, unless it is assigned already. ConfigError for a node that its participant has not."""
        task = await self.one(task_id)
        if not task.assigned:
            for participant, nodes in assignees:
                _check_nodes(await self.host(participant), nodes)
            message = assign_task_message(sender.author_text, task_id, assignees)
            step = await self._step(sender, task, message)
        else:
            step = Step(task, False, "", "")
        return _judged(step, step.task.assigned > 0 and step.task.assignees == tuple(assignees))

    async def _step(self, sender: Sender, task: Task, message: Message) -> Step:
        """Send one message; a refusal is kept in words, for the task that is read after it says what happened."""
        digest = sha256(_STEP_TAG, message.type_url, message.value, str((task.claimed, task.assigner)).encode())
        tx_hash, refusal = "", ""
        try:
            receipt, _ = await sender.deliver(digest, [message])
            tx_hash = receipt.tx_hash
        except ChainError as error:
            refusal = str(error)
        return Step(await self.one(task.id), False, tx_hash, refusal)

    async def _need_module(self) -> None:
        if not await self._chain.has_training_module():
            raise ChainError(
                "this chain has no training module (Gonka v0.2.0 - v0.2.11 have it)",
                "announce the run instead: `gonka-trainer announce`, with a manifest whose carrier is memo",
            )


def _judged(step: Step, stands: bool) -> Step:
    return Step(step.task, stands, step.tx_hash, step.refusal)


def _check_nodes(host: Host, nodes: Sequence[str]) -> None:
    """Refuse node ids that the participant has not registered; who has registered none may name them as it likes."""
    known = [node.local_id for node in host.nodes]
    for node in nodes:
        if "/" in node:
            raise ConfigError(f"node id {node!r} has a slash", "give the local id, without the participant's address")
        if known and node not in known:
            raise ConfigError(f"{host.participant} has no node {node!r}", f"its nodes: {', '.join(known)}")


def _task(task: inference_pb2.TrainingTask) -> Task:
    return Task(
        id=task.id,
        requested_by=printable(task.requested_by, _SHOWN_TEXT),
        created=task.created_at_block_height,
        assigner=printable(task.assigner, _SHOWN_TEXT),
        claimed=task.claimed_by_assigner_at_block_height,
        assigned=task.assigned_at_block_height,
        hardware=tuple((printable(each.type, _SHOWN_TEXT), each.count) for each in task.hardware_resources),
        dataset=printable(task.config.datasets.train, _SHOWN_TEXT),
        manifest=parse_manifest_uri(task.config.datasets.train),
        assignees=tuple(
            (printable(each.participant, _SHOWN_TEXT), tuple(printable(node, _SHOWN_TEXT) for node in each.node_ids))
            for each in task.assignees
        ),
    )
