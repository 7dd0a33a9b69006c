"""GPU sharing by `network-node-admin`: the ML node is out of the network node's service while a run goes on.

What the network node really does decides the order here: disabling takes effect at the next start of proof of compute
(until then inference goes on), and the epoch after that has none of the node's weight. Enabling takes effect at once,
whatever the GPU is doing: so training has left before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gonka_trainer.controls import Gpu
from gonka_trainer.errors import NetworkNodeError, StorageError
from gonka_trainer.network_node.admin import AdminApi, MlNode
from gonka_trainer.network_node.claim import Claim

_LOG: Final = logging.getLogger(__name__)
WHO: Final = "network node"
LOOK_SECONDS: Final = 2.0
_DRAINED: Final = " drained"


def effects(node: MlNode) -> str:
    """Return what disabling the ML node means, in words for its operator."""
    return (
        f"disabling ML node {node.id} takes effect at the next start of proof of compute; it then makes no proof, so "
        f"this host loses its weight ({node.poc_weight} now) in the epoch after, and as long as it stays disabled"
    )


class DrainedNode:
    """Holds the GPU until the ML node is drained, and enables the node again when no run wants the GPU any more.

    `mark` is a file that says which node this daemon disabled (and whether that took effect): only that one it enables.
    `wanted` says whether a run is to train now, None while that is not known: a daemon that has just been started, or
    turns to the next run, must not enable a node on which it is going to train: that would cost a further epoch.
    """

    def __init__(
        self, admin: AdminApi, gpu: Gpu, node_id: str, consent: bool, mark: Path, wanted: Callable[[], bool | None]
    ) -> None:
        self._admin = admin
        self._gpu = gpu
        self._claim = Claim(gpu, WHO)
        self._node_id = node_id
        self._consent = consent
        self._mark = mark
        self._wanted = wanted
        self._was_drained = False

    async def run(self, look_seconds: float = LOOK_SECONDS) -> None:
        """Look at the node again and again, until cancelled. A network node that does not answer changes nothing."""
        self._claim.hold("the network node has not been asked yet")
        while True:
            try:
                await self.look()
            except (NetworkNodeError, StorageError) as error:
                self._claim.say(str(error))
            await asyncio.sleep(look_seconds)

    async def look(self) -> None:
        """Do the next step towards what is wanted.

        NetworkNodeError when the network node cannot be asked, StorageError when the mark cannot be read or written.
        """
        await self._give_back_former()
        node = await self._admin.node(self._node_id)
        if self._read_mark().endswith(_DRAINED):  # also before a restart of the daemon
            self._was_drained = True
        wanted = self._wanted()
        if wanted is None and node.drained:
            return  # whoever has the GPU keeps it: training between two runs, nobody after a start
        if wanted is None:
            self._claim.hold("it is not known yet whether a run wants the GPU")
        elif not wanted:
            await self._give_back(node)
        elif node.drained:
            self._note_drained()
            self._claim.lift(f"ML node {node.id} is drained: the GPU is free for training")
        elif self._was_drained:
            self._claim.hold(f"ML node {node.id} was enabled by somebody else: the network node has the GPU again")
        elif not node.enabled:
            self._claim.hold(f"ML node {node.id} is disabled; that takes effect at the next start of proof of compute")
        elif self._consent:
            await self._disable(node)
        else:
            self._claim.hold(f"not done: {effects(node)}; agree by gpu.accept_lost_epoch = true")

    def _note_drained(self) -> None:
        """Keep that the disabling took effect: whoever enables the node from here on takes the GPU back."""
        if not self._was_drained and self._mark.exists():
            self._write_mark(self._node_id + _DRAINED)
        self._was_drained = True

    async def _disable(self, node: MlNode) -> None:
        self._claim.hold(effects(node))
        self._write_mark(node.id)  # first the mark: a node that is marked and enabled is merely enabled again
        await self._admin.disable(node.id)

    async def _give_back(self, node: MlNode) -> None:
        self._claim.hold("no run wants the GPU")
        self._was_drained = False
        if not self._mark.exists():
            return
        await self._gpu.vacated()
        if not node.enabled:
            await self._admin.enable(node.id)
            _LOG.info("ML node %s is enabled again: the network node starts inference on it now", node.id)
        self._mark.unlink(missing_ok=True)

    async def _give_back_former(self) -> None:
        """Enable the ML node that this daemon disabled when the settings named another one than now."""
        former = self._read_mark().removesuffix(_DRAINED)
        if former in {"", self._node_id}:
            return
        self._claim.hold(f"ML node {former} was disabled for training, gpu.node is {self._node_id} now")
        await self._gpu.vacated()
        for node in await self._admin.nodes():
            if node.id == former and not node.enabled:
                await self._admin.enable(former)
                _LOG.info("ML node %s is enabled again", former)
        self._mark.unlink(missing_ok=True)

    def _read_mark(self) -> str:
        try:
            return self._mark.read_text()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise StorageError(f"{self._mark}: cannot be read: {error}", "mend or remove it") from error

    def _write_mark(self, text: str) -> None:
        try:
            self._mark.write_text(text)
        except OSError as error:
            raise StorageError(f"{self._mark}: {error.strerror}", "is the disk full?") from error
