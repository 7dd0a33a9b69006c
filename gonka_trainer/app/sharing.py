"""The network node's part in sharing the GPUs, as `gpu.mode` says (docs/gpu.md)."""

from __future__ import annotations

from collections.abc import Callable

from gonka_trainer.config import Config, GpuConfig
from gonka_trainer.controls import Gpu
from gonka_trainer.network_node.admin import AdminApi, MlNode
from gonka_trainer.network_node.calls import NodeChannel
from gonka_trainer.network_node.drained import DrainedNode
from gonka_trainer.network_node.locked import LockedNode
from gonka_trainer.network_node.manager import NodeManager

_MARK = "ml-node-disabled"
_LOCKS = "ml-node-locks"


async def share_gpus(
    config: Config, gpu: Gpu, in_run: Callable[[], bool | None], wants_gpus: Callable[[], bool]
) -> None:
    """Hold and lift as the network node lets, until cancelled; returns at once in the modes that ask no network node.

    `in_run` says whether a run is served that is not over (None: not known yet), `wants_gpus` whether the operator lets
    it train, too: a pause gives places for requests back, but not a drained ML node, which would cost a further epoch.
    """
    settings = config.gpu
    if settings.mode == "network-node-admin":
        async with AdminApi(settings.admin_url) as admin:
            mark = config.data_path / _MARK
            await DrainedNode(admin, gpu, settings.node, settings.accept_lost_epoch, mark, in_run).run()
    elif settings.mode == "node-manager":
        async with NodeChannel(settings.manager) as channel:
            manager, kept = NodeManager(channel), config.data_path / _LOCKS
            await LockedNode(manager, gpu, settings.model, settings.node, wants_gpus, kept).run()


async def ml_nodes(settings: GpuConfig) -> tuple[MlNode, ...]:
    """Return the network node's ML nodes by its admin API; NetworkNodeError."""
    async with AdminApi(settings.admin_url) as admin:
        return await admin.nodes()
