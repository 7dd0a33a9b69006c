"""GPU sharing by `node-manager`: training has an ML node for itself while it holds all its places for requests.

A lock stands for one request. So the daemon takes every place of one node, waits until the requests before it are
done, trains, and gives all of them back before proof of compute and at the end. The ML node's process stays: its model
stays in the GPU's memory beside the worker.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gonka_trainer.controls import Gpu
from gonka_trainer.errors import NetworkNodeError
from gonka_trainer.network_node.calls import CallError
from gonka_trainer.network_node.claim import Claim
from gonka_trainer.network_node.manager import Capacity, Lock, NodeManager

_LOG: Final = logging.getLogger(__name__)
WHO: Final = "node manager"
LOOK_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 5.0
_SERVING: Final = "INFERENCE"


class LockedNode:
    """Holds the GPU unless every place of one ML node is locked for this host and the node does inference.

    `node_id` names the ML node (empty: the first one that has a place). `wanted` says whether a run is to train now.
    `kept` is a file with the locks that are held: nobody else can give back those of a daemon that was killed.
    """

    def __init__(
        self, manager: NodeManager, gpu: Gpu, model: str, node_id: str, wanted: Callable[[], bool], kept: Path
    ) -> None:
        self._manager = manager
        self._gpu = gpu
        self._claim = Claim(gpu, WHO)
        self._model = model
        self._node_id = node_id
        self._wanted = wanted
        self._kept = kept
        self._former: list[str] | None = None
        self._locks: list[Lock] = []

    @property
    def locks(self) -> tuple[Lock, ...]:
        """The places that are held now."""
        return tuple(self._locks)

    async def run(self, look_seconds: float = LOOK_SECONDS) -> None:
        """Look again and again until cancelled; then the GPU is held and every place given back."""
        self._claim.hold("the network node has not been asked yet")
        try:
            while True:
                try:
                    await self.look()
                except NetworkNodeError as error:  # what it cannot be asked it cannot be trusted to keep away
                    self._claim.hold(str(error))
                await asyncio.sleep(look_seconds)
        finally:
            self._claim.hold("the daemon ends")
            await self._close()

    async def look(self) -> None:
        """Do the next step towards what is wanted; NetworkNodeError when the network node cannot be asked."""
        await self._give_back_former()
        if not self._wanted():
            return await self._give_back("no run wants the GPU")
        others = ", ".join(who for who in self._gpu.holds if who != WHO)
        if others:  # nobody trains meanwhile: requests may come
            return await self._give_back(f"the GPU is held for {others}")
        capacity = await self._capacity()
        if capacity is None:
            return await self._give_back(f"no ML node of the network node serves {self._model}")
        if capacity.status != _SERVING:
            return await self._give_back(f"ML node {capacity.node_id} is in {capacity.status or 'an unknown state'}")
        if capacity.lock_count < len(self._locks):  # the network node was restarted and knows nothing of them
            self._claim.hold(f"the network node has forgotten locks on ML node {capacity.node_id}")
            await self._gpu.vacated()
            self._locks.clear()
            self._keep()
        await self._take(capacity)
        return None

    async def _take(self, capacity: Capacity) -> None:
        """Lock the places that are free, and lift the hold when all are ours."""
        others = [c.node_id for c in await self._manager.capacities() if c.node_id != capacity.node_id]
        while len(self._locks) < capacity.max_concurrent:
            lock = await self._manager.acquire(self._model, sorted(set(others)))
            if lock is None:
                break
            if lock.node_id != capacity.node_id:
                await self._manager.release(lock)
                break
            self._locks.append(lock)
            self._keep()
        if 0 < capacity.max_concurrent <= len(self._locks):
            self._claim.lift(f"all {len(self._locks)} places of ML node {capacity.node_id} are locked: the GPU is free")
        else:
            held = f"{len(self._locks)} of {capacity.max_concurrent} places of ML node {capacity.node_id}"
            self._claim.hold(f"{held} are locked; waiting for the requests that hold the others")

    async def _capacity(self) -> Capacity | None:
        """Return the node's line: of the locked one, of the named one, else of the first that does inference."""
        lines = [c for c in await self._manager.capacities() if c.model == self._model]
        wanted = self._locks[0].node_id if self._locks else self._node_id
        if wanted:
            return next((c for c in lines if c.node_id == wanted), None)
        return next((c for c in lines if c.status == _SERVING), lines[0] if lines else None)

    async def _give_back(self, why: str) -> None:
        """Have training leave, and only then let requests come back."""
        self._claim.hold(why)
        await self._gpu.vacated()
        while self._locks:
            await self._manager.release(self._locks[-1])
            self._locks.pop()
            self._keep()

    async def _give_back_former(self) -> None:
        """Give back, once, what a daemon before this one held when it was killed."""
        if self._former is None:
            self._former = self._read_kept()
        while self._former:
            try:
                await self._manager.release(Lock(self._former[-1], "", ""))
            except CallError as error:  # nothing that this daemon could do would change it
                _LOG.warning("lock %s of an earlier start was not given back: %s", self._former[-1], error)
            self._former.pop()

    def _read_kept(self) -> list[str]:
        try:
            kept = json.loads(self._kept.read_bytes())
            return [each for each in kept if isinstance(each, str)] if isinstance(kept, list) else []
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            _LOG.warning("%s cannot be read: %s; places of an earlier start may stay locked", self._kept, error)
            return []

    def _keep(self) -> None:
        try:
            self._kept.write_text(json.dumps([lock.id for lock in self._locks]))
        except OSError as error:
            _LOG.warning("%s cannot be written: %s", self._kept, error.strerror)

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._give_back("the daemon ends")
        except (NetworkNodeError, TimeoutError) as error:
            _LOG.warning("%d locks were not given back: %s", len(self._locks), error)
