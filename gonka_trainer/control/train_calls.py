"""`/api/v1/train/start` and `/api/v1/train/status`: a network node starts a task only if the operator's settings do."""

from __future__ import annotations

import json
from typing import Any, Final

from gonka_trainer.controls import Gpu, Operator, TaskLine
from gonka_trainer.errors import UserError
from gonka_trainer.text import printable

_OPERATOR: Final = "operator"
_TASK_DIGITS: Final = 20  # of a u64
_REPORTED: Final = ("manifest_hash", "run", "phase", "round", "height", "training_round", "inner_step", "loss")

Answer = tuple[int, dict[str, Any]]


class TrainCalls:
    """Decides on a start, and reports. Nothing that a network node sends makes this host agree to a run."""

    def __init__(self, operator: Operator, gpu: Gpu) -> None:
        self._operator = operator
        self._gpu = gpu
        self._task_id = 0

    async def start(self, body: bytes) -> Answer:
        """Return status and answer for {train_config, train_env {TASK_ID, ...}}; 200 says that training may go on."""
        task_id = _task_id(body)
        if task_id is None:
            return _refused(400, "not JSON with train_env.TASK_ID, the number of a task")
        try:
            lines = await self._operator.tasks()
        except UserError as error:
            return _refused(503, f"the tasks on chain cannot be read now: {error.what}")
        line = next((each for each in lines if each.task_id == task_id), None)
        return self._decide(task_id, line)

    def _decide(self, task_id: int, line: TaskLine | None) -> Answer:
        if line is None:
            return _refused(404, f"task {task_id} names no run that this host knows of")
        if line.standing not in {"agreed", "serving"}:
            return _refused(403, f"task {task_id} is {line.standing}: {line.why or 'nothing is left to train'}")
        if _OPERATOR in self._gpu.holds:
            return _refused(409, f"the operator holds the GPUs: {self._gpu.holds[_OPERATOR]}")
        self._task_id = task_id
        return 200, {"status": "OK", "task_id": task_id, "manifest_hash": line.manifest_hash.hex()}

    def status(self, trains: bool) -> dict[str, Any]:
        """Return what training does now, with the run's round and step where there is one."""
        status = self._operator.status()
        known = {name: status[name] for name in _REPORTED if status.get(name) is not None}
        return {"status": "RUNNING" if trains else "STOPPED", "task_id": self._task_id, **known}


def _refused(status: int, why: str) -> Answer:
    return status, {"status": "ERROR", "detail": printable(why)}


def _task_id(body: bytes) -> int | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    environment = document.get("train_env") if isinstance(document, dict) else None
    text = str(environment.get("TASK_ID", "")) if isinstance(environment, dict) else ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _TASK_DIGITS else 0
    return number or None  # 0 is no task: runs that were announced in a memo have it
