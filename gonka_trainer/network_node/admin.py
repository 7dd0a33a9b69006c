"""The client of a network node's admin API: which ML nodes it has, and taking one out of service and back.

Two facts of the network node rule this file. Disabling takes effect only at the next start of proof of compute, and
costs the epoch's proof; enabling takes effect at once. And an id that it does not know wedges it for good: so an id is
sent only when the list that was read just before names it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import aiohttp

from gonka_trainer.errors import NetworkNodeError, NetworkNodeUnavailableError
from gonka_trainer.text import printable

_NODES: Final = "/admin/v1/nodes"
_MAX_ANSWER_BYTES: Final = 16 << 20
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_CHECK: Final = "check that it runs and that gpu.admin_url is its admin port (9200)"


@dataclass(frozen=True, slots=True)
class MlNode:
    """An ML node as the network node sees it. `admin_epoch` is the epoch in which `enabled` was last changed."""

    id: str
    enabled: bool
    admin_epoch: int
    intended_status: str
    current_status: str
    lock_count: int
    poc_weight: int

    @property
    def drained(self) -> bool:
        """Whether the disabling has taken effect: the node is stopped and left alone."""
        return not self.enabled and {self.intended_status, self.current_status} == {"STOPPED"}


class AdminApi:
    """The admin API at a URL. Use as `async with`."""

    def __init__(self, url: str, timeout_seconds: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AdminApi:
        self._session = aiohttp.ClientSession(timeout=self._timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def nodes(self) -> tuple[MlNode, ...]:
        """Return the ML nodes; NetworkNodeError when the answer has another form."""
        answer = await self._call("GET", _NODES)
        try:
            return tuple(_node(entry) for entry in answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NetworkNodeError(
                f"{self.url}{_NODES} has another form than this version knows: {printable(repr(error))}",
                "gonka-trainer knows network nodes of v0.2.0 - v0.2.16",
            ) from error

    async def node(self, node_id: str) -> MlNode:
        """Return one ML node; NetworkNodeError names those that there are."""
        found = await self.nodes()
        for node in found:
            if node.id == node_id:
                return node
        names = ", ".join(printable(node.id, 60) for node in found) or "none"
        raise NetworkNodeError(
            f"the network node at {self.url} has no ML node {printable(node_id, 60)!r} (it has: {names})",
            "mend gpu.node; an unknown id is never sent, since it would wedge the network node",
        )

    async def disable(self, node_id: str) -> None:
        """Take the ML node out of service from the next start of proof of compute on."""
        await self._switch(node_id, "disable")

    async def enable(self, node_id: str) -> None:
        """Put the ML node back into service: the network node starts inference on it within seconds."""
        await self._switch(node_id, "enable")

    async def _switch(self, node_id: str, word: str) -> None:
        node = await self.node(node_id)
        if not set(node.id) <= _PLAIN:  # it goes into a path: what the node would read there must be this very id
            raise NetworkNodeError(f"ML node id {printable(node.id)!r} cannot be named in a URL", "rename the ML node")
        await self._call("POST", f"{_NODES}/{node.id}/{word}")

    async def _call(self, method: str, path: str) -> Any:
        assert self._session is not None, "used outside `async with`"
        try:
            async with self._session.request(method, self.url + path, allow_redirects=False) as response:
                body, status = await _whole(response), response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = printable(str(error) or type(error).__name__)
            raise NetworkNodeUnavailableError(f"network node {self.url} does not answer: {reason}", _CHECK) from error
        if status != 200:
            raise NetworkNodeError(f"network node {self.url} answers {method} {path} with {status}: {printable(body)}")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise NetworkNodeError(f"{self.url}{path} does not answer with JSON", _CHECK) from error


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, however many pieces it comes in; one that is too long is cut, and no JSON then."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _MAX_ANSWER_BYTES:
            break
    return bytes(body)


def _node(entry: Any) -> MlNode:
    state = entry["state"]
    weights = (state.get("epoch_ml_nodes") or {}).values()
    return MlNode(
        id=_text(entry["node"]["id"]),
        enabled=bool(state["admin_state"]["enabled"]),
        admin_epoch=int(state["admin_state"]["epoch"]),
        intended_status=_text(state["intended_status"]),
        current_status=_text(state["current_status"]),
        lock_count=int(state.get("lock_count") or 0),
        poc_weight=sum(int(weight.get("poc_weight") or 0) for weight in weights),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is no text")
    return value
