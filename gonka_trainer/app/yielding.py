"""What makes this host's GPUs go to proof of compute by itself: the chain and an ML node, as the settings say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gonka_trainer.app.sharing import share_gpus
from gonka_trainer.config import Config
from gonka_trainer.daemon.gpu import GpuTurns
from gonka_trainer.daemon.mlstate import MlStateWatch
from gonka_trainer.daemon.poc import PocWatch
from gonka_trainer.ports import Chain

_LOG: Final = logging.getLogger(__name__)
SHARED: Final = ("ml-node", "node-manager")
"""The modes in which proof of compute uses the GPUs; a drained ML node (network-node-admin) makes none."""


async def yield_gpus(
    config: Config, chain: Chain, gpu: GpuTurns, in_run: Callable[[], bool | None], wants_gpus: Callable[[], bool]
) -> None:
    """Hold the GPUs for each proof of compute, while the ML node is in one, and as the network node lets.

    Runs until cancelled. `in_run` and `wants_gpus` as for `share_gpus`.
    """
    settings = config.gpu
    if settings.mode == "dedicated":
        _LOG.info("GPUs: dedicated to training, no pause for proof of compute")
        return
    _LOG.info(
        "GPUs: shared (%s); free within %g s of a hold, %.2f s expected",
        settings.mode,
        settings.stop_seconds,
        gpu.stop_seconds,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(share_gpus(config, gpu, in_run, wants_gpus))
        if settings.mode in SHARED:
            group.create_task(PocWatch(chain, gpu, config.chain.poll_seconds).run())
        if settings.state_url:
            group.create_task(MlStateWatch(settings.state_url, gpu).run())
