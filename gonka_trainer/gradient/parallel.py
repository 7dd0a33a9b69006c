"""Chunks over threads. Kernels, hashing and numpy release the interpreter lock, so threads are enough.

Not numba's own threading: its default layer ends the process when two Python threads enter it at once, and results
must not depend on it. Every task proves its thread's floating-point mode before and after (`arithmetic`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import numba

from gonka_trainer.gradient.arithmetic import prove_thread

T = TypeVar("T")


def default_threads() -> int:
    """Return the number of threads to use: the processors this process may use, or NUMBA_NUM_THREADS."""
    return int(numba.config.NUMBA_NUM_THREADS)


def in_order(task: Callable[[int], T], count: int, threads: int | None = None) -> Iterator[T]:
    """Yield `task(0)`, ..., `task(count - 1)` in that order, computed by several threads a few tasks ahead.

    At most two results a thread wait to be taken, so memory stays at a few chunks. The task's own error is raised;
    MachineError when a thread does not compute in the default floating-point mode.
    """
    workers = threads or default_threads()
    if workers == 1 or count <= 1:
        yield from (_proved(task, index) for index in range(count))
        return
    with ThreadPoolExecutor(workers) as pool:
        indices = iter(range(count))
        waiting = [pool.submit(_proved, task, index) for index in islice(indices, 2 * workers)]
        try:
            while waiting:
                result = waiting.pop(0).result()
                waiting += [pool.submit(_proved, task, index) for index in islice(indices, 1)]
                yield result
        finally:
            for future in waiting:
                future.cancel()


def run_all(task: Callable[[int], None], count: int, threads: int | None = None) -> None:
    """Run `task(0)` to `task(count - 1)` by several threads; errors as for `in_order`."""
    for _ in in_order(task, count, threads):
        pass


def _proved(task: Callable[[int], T], index: int) -> T:
    prove_thread()
    result = task(index)
    prove_thread()
    return result
