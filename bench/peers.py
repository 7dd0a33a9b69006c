"""What the outer step is measured against: torch's optimizers, and a gloo all-reduce of four local processes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RATE, MU = 0.7, 0.9


def sgd(elements: int, fused: bool) -> Callable[[], Any]:
    """Return the step of torch's Nesterov SGD alone, on one flat parameter with its gradient in place."""
    parameter = torch.nn.Parameter(torch.zeros(elements))
    parameter.grad = torch.full((elements,), 1e-3)
    return torch.optim.SGD([parameter], lr=RATE, momentum=MU, nesterov=True, fused=fused).step


@dataclass(frozen=True)
class Group:
    """Local processes that wait for a word to all-reduce their gradients and step."""

    processes: list[Any]
    pipes: list[Connection]

    def seconds(self) -> float:
        """Let all of them do one outer step and return the time until the last is done."""
        start = time.perf_counter()
        for pipe in self.pipes:
            pipe.send("go")
        for pipe in self.pipes:
            pipe.recv()
        return time.perf_counter() - start

    def close(self) -> None:
        """End the processes."""
        for pipe in self.pipes:
            pipe.send("end")
        for process in self.processes:
            process.join()


def gloo(elements: int, hosts: int) -> Group:
    """Start `hosts` processes on this machine, float32 gradients of `elements` each, and wait until they are ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    processes, pipes = [], []
    for rank in range(hosts):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=_member, args=(rank, hosts, port, elements, theirs)))
        processes[-1].start()
        pipes.append(ours)
    group = Group(processes, pipes)
    for pipe in pipes:
        pipe.recv()
    return group


def _member(rank: int, hosts: int, port: int, elements: int, pipe: Connection) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=hosts)
    parameter = torch.nn.Parameter(torch.zeros(elements))
    gradient = torch.full((elements,), 1e-3)
    optimizer = torch.optim.SGD([parameter], lr=RATE, momentum=MU, nesterov=True)
    pipe.send("ready")
    while pipe.recv() == "go":
        dist.all_reduce(gradient)
        gradient.div_(hosts)
        parameter.grad = gradient
        optimizer.step()
        pipe.send("done")
    dist.destroy_process_group()
