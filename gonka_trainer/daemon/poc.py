"""Freeing the GPUs for proof of compute: in time before a scheduled one, at once for one that comes unannounced."""

from __future__ import annotations

import asyncio
import itertools
import logging
import statistics
from collections import deque
from collections.abc import Callable
from typing import Final

from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.daemon.windows import Window, due, lead_blocks, scheduled
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.ports import Chain, ProofOfCompute
from gonka_trainer.types import Height

HOLDER: Final = "proof of compute"
_LOG: Final = logging.getLogger(__name__)
_SAMPLES: Final = 64
_LOOK_BACK_BLOCKS: Final = 50
_LONGEST_LOOK_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 2.0


class BlockClock:
    """How long a block takes, from the heights and times that were seen."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque(maxlen=_SAMPLES)

    def see(self, height: int, time_ns: int) -> None:
        """Take note of a block; one that was seen already says nothing new."""
        if not self._seen or height > self._seen[-1][0]:
            self._seen.append((height, time_ns))

    @property
    def seconds(self) -> float | None:
        """The median time of a block, which a halt of the chain does not move; None before two were seen."""
        pairs = list(itertools.pairwise(self._seen))
        if not pairs:
            return None
        return statistics.median(max(0, b_ns - a_ns) / 1e9 / (b - a) for (a, a_ns), (b, b_ns) in pairs)


async def block_clock(chain: Chain) -> BlockClock:
    """Return a clock that knows the last blocks of the chain."""
    clock = BlockClock()
    tip = await chain.info()
    back = max(tip.earliest_height, tip.height - _LOOK_BACK_BLOCKS, 1)
    if back < tip.height:
        former = await chain.block(Height(back))
        clock.see(former.height, former.time_ns)
    latest = await chain.block(tip.height)
    clock.see(latest.height, latest.time_ns)
    return clock


def look_seconds(block_seconds: float, poll_seconds: float) -> float:
    """Return how often the chain is asked: a few times a block, no more often than the settings say."""
    return max(poll_seconds, min(block_seconds / 4, _LONGEST_LOOK_SECONDS))


class PocWatch:
    """Holds the GPUs for proof of compute, block by block, as long as `applies` says that it concerns them.

    While the chain does not answer the last decision stands: who starts proof of compute reads the same chain.
    """

    def __init__(
        self, chain: Chain, gpu: GpuTurns, poll_seconds: float, applies: Callable[[], bool] = lambda: True
    ) -> None:
        self._chain = chain
        self._gpu = gpu
        self._poll_seconds = poll_seconds
        self._applies = applies
        self._clock = BlockClock()
        self._said: Window | None = None

    async def run(self) -> None:
        """Watch until cancelled; before the first answer, and at the end, the GPUs are held: one may be going on."""
        self._gpu.hold(HOLDER, "the chain has not been asked yet")
        self._clock = await self._first_look()
        while True:
            await self._look()
            await asyncio.sleep(self._look_seconds)

    async def _first_look(self) -> BlockClock:
        while True:
            try:
                return await block_clock(self._chain)
            except ChainUnavailableError as error:
                _LOG.debug("proof of compute: %s", error.what)
            except ChainError as error:  # such as a node that keeps no blocks: the clock starts with the next ones
                _LOG.warning("proof of compute: %s", error)
                return BlockClock()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _look(self) -> None:
        try:
            poc = await self._chain.proof_of_compute()
        except ChainUnavailableError as error:
            _LOG.debug("proof of compute: %s", error.what)
            return
        except ChainError as error:
            _LOG.warning("proof of compute: %s", error)
            return
        self._clock.see(poc.height, poc.time_ns)
        self.decide(poc)

    def decide(self, poc: ProofOfCompute) -> None:
        """Hold or lift as of the block."""
        block_seconds, lead = self._clock.seconds, 1
        if block_seconds is not None:
            lead = lead_blocks(poc.schedule, self._gpu.stop_seconds, self._look_seconds, block_seconds)
            self._announce(poc, lead)
        self._hold(due(poc, lead))

    def _hold(self, window: Window | None) -> None:
        if window is None or not self._applies():
            self._gpu.lift(HOLDER)
        else:
            kind = "confirmation" if window.confirmation else "scheduled"
            self._gpu.hold(HOLDER, f"{kind}, blocks {window.start} to {window.end - 1}")

    def _announce(self, poc: ProofOfCompute, lead: int) -> None:
        window = scheduled(poc, poc.height)
        if window is None or window == self._said:
            return
        self._said = window
        _LOG.info(
            "next proof of compute: blocks %d to %d; the GPUs are freed %d blocks before it (at block %d now)",
            window.start,
            window.end - 1,
            lead,
            poc.height,
        )

    @property
    def _look_seconds(self) -> float:
        return look_seconds(self._clock.seconds or 0.0, self._poll_seconds)
