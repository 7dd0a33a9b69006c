"""What `gonka-trainer task list` shows: every run on chain and how it stands with this host. Needs no daemon."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gonka_trainer.app.accepted import AcceptedRuns
from gonka_trainer.app.carriers import task_sources
from gonka_trainer.app.finding import Finder
from gonka_trainer.app.keys import open_account, passphrase_of
from gonka_trainer.app.opening import open_client
from gonka_trainer.app.rules import parse_address
from gonka_trainer.app.standing import Standings
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.hardware import match
from gonka_trainer.chain.tasks import Task, TaskDesk
from gonka_trainer.config import Config
from gonka_trainer.controls import TaskLine
from gonka_trainer.types import Address


@dataclass(frozen=True, slots=True)
class Listed:
    """A run or a task. `line` is None for a task that is no run of this program, `task` for a run without a task.

    `nodes` are this host's nodes that have some of the hardware that the task asks for.
    """

    line: TaskLine | None
    task: Task | None
    nodes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        line, task = self.line, self.task
        return {
            "manifest": line.manifest_hash.hex() if line else None,
            "standing": line.standing if line else "foreign",
            "why": line.why if line else "its dataset is no run manifest",
            "requester": line.author if line else (task.requested_by if task else ""),
            "height": line.height if line else (task.created if task else 0),
            "url": line.url if line else "",
            "task": None if task is None else _task_document(task),
            "nodes": list(self.nodes),
        }


def _task_document(task: Task) -> dict[str, Any]:
    values = asdict(task)
    del values["manifest"]
    values["assignees"] = {participant: list(nodes) for participant, nodes in task.assignees}
    return values


async def list_tasks(config: Config, everything: bool) -> tuple[Listed, ...]:
    """Return the runs on chain, and with `everything` all other tasks too."""
    participant = own_participant(config)
    async with open_client(config.chain) as chain:
        finder = Finder(chain, task_sources(chain, None))
        standings = Standings(config, participant, chain, finder, AcceptedRuns(config.data_path))
        await standings.look(everything=True)
        lines = await standings.lines()
        return await _with_tasks(chain, encode_address(participant, config.chain.prefix), lines, everything)


async def _with_tasks(
    chain: ChainClient, participant: str, lines: tuple[TaskLine, ...], everything: bool
) -> tuple[Listed, ...]:
    if not await chain.has_training_module():
        return tuple(Listed(line, None, ()) for line in lines)
    desk = TaskDesk(chain)
    tasks, own = {task.id: task for task in await desk.all()}, await desk.host(participant)

    def listed(line: TaskLine | None, task: Task | None) -> Listed:
        return Listed(line, task, () if task is None else match(task.hardware, own).node_ids)

    found = [listed(line, tasks.pop(line.task_id, None)) for line in lines]
    rest = [listed(None, task) for task in tasks.values() if task.manifest is None] if everything else []
    return (*found, *rest)


def own_participant(config: Config) -> Address:
    """Return for whom this host speaks; the key is only opened when the settings do not say it."""
    if config.keys.participant:
        return parse_address(config.keys.participant, config.chain.prefix, "keys.participant")
    return open_account(config.keys, passphrase_of(config.keys)).address
