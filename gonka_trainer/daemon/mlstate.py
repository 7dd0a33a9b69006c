"""Watching an ML node's state: when it turns to POW the GPUs are its own, whatever the chain's schedule says."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any, Final

import aiohttp

from gonka_trainer.controls import Gpu

HOLDER: Final = "ml node state"
_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 2.0
_LOST_SECONDS: Final = 60.0
_LOST_IN_PROOF_SECONDS: Final = 900.0  # longer than a proof of compute takes
_MAX_ANSWER_BYTES: Final = 1 << 16


class MlStateWatch:
    """Asks `URL/api/v1/state` every second.

    One that does not answer for a minute is taken to be off the GPUs; one whose last word was POW, for a quarter of an
    hour: of a challenge that only it knows, nothing else tells.
    """

    def __init__(self, url: str, gpu: Gpu, look_seconds: float = _LOOK_SECONDS) -> None:
        self._url = url.rstrip("/") + "/api/v1/state"
        self._gpu = gpu
        self._look_seconds = look_seconds
        self._answered = time.monotonic()
        self._silent = False
        self._in_proof = False

    async def run(self) -> None:
        """Watch until cancelled; before the first answer the GPUs are held."""
        self._gpu.hold(HOLDER, "the ML node has not been asked yet")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as session:
            while True:
                self._take(await self._ask(session))
                await asyncio.sleep(self._look_seconds)

    async def _ask(self, session: aiohttp.ClientSession) -> str | None:
        """Return the state, None without an answer that says one."""
        try:
            async with session.get(self._url, allow_redirects=False) as answer:
                body: Any = json.loads(await _whole(answer))
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
            return None
        state = body.get("state") if isinstance(body, dict) else None
        return state if isinstance(state, str) else None

    def _take(self, state: str | None) -> None:
        if state is None:
            self._unanswered()
            return
        if self._silent:
            _LOG.info("ML node: answers again")
        self._answered, self._silent = time.monotonic(), False
        self._in_proof = state == "POW"
        if self._in_proof:
            self._gpu.hold(HOLDER, "the ML node's state is POW")
        else:
            self._gpu.lift(HOLDER)

    def _unanswered(self) -> None:
        if not self._silent:
            _LOG.warning("ML node: no state from %s", self._url)
            self._silent = True
        lost_seconds = _LOST_IN_PROOF_SECONDS if self._in_proof else _LOST_SECONDS
        if time.monotonic() - self._answered > lost_seconds:
            self._gpu.lift(HOLDER)


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body, however many pieces it comes in; one that is too long is cut, and no JSON then."""
    body = b""
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _MAX_ANSWER_BYTES:
            break
    return body
