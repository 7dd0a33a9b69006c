"""Faults on request, for tests alone: plain HTTP with JSON.

`GET /state` says what is switched on, `POST /NAME` with a JSON object switches. What is wrong with a request is a 400
with a text. The names, with their keys and defaults:

    blocks            {"on": bool} stop or go on; {"make": n} make n at once, a block's time apart; answers {"height"}
    drop              {"count": n} the next n accepted transactions vanish
    refuse            {"count": n, "codespace": "sdk", "code": 13, "log": "..."} the next n broadcasts are refused
    index             {"on": bool} as a node without a transaction index answers
    prune             {"below": h, "blocks": true} state below h is gone, and blocks and results; 0: nothing
    restart           {"seconds": s, "starting_seconds": 0.5} away for s seconds, then starting (gRPC answers code 26);
                      what the mempool knew is lost
    chain_id          {"value": "other" | null} another chain id in what the node says; it still checks with its own
    rewind            {"blocks": n} n blocks lower, until n new ones are made; 0: off
    fork              {"height": h} another history from h on (other hashes, headers and commits); 0: off
    clock             {"offset_seconds": s} block times are s off the system's clock, but never go back
    inject            {"tx_base64": "...", "count": 1} bytes for the next block, whatever CheckTx says; it may be called
                      more than once for one block
    confirmation_poc  {"grace_blocks": 2} a confirmation of proof of compute begins in the next block
    restrict          {"on": bool, "until": 1000000} bank sends between users fail in blocks below the height
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from gonka_devnet import balances
from gonka_devnet.control_body import BadRequestError, Body
from gonka_devnet.doors import Doors
from gonka_devnet.errors import DESCRIPTIONS, SDK
from gonka_devnet.faults import Pruned, Refusing, Rewound
from gonka_devnet.inference import epochs
from gonka_devnet.mempool import Verdict
from gonka_devnet.node import Node

MOST_BLOCKS = 100_000
MOST_CLOCK_SECONDS = 10 * 365 * 86_400
START_PHASE_SECONDS = 0.5
WITHOUT_CONFIRMATION = "0.2.0"
Answer = dict[str, Any]


class Control:
    """The switches of one node."""

    def __init__(self, node: Node, doors: Doors, chain_version: str) -> None:
        self._node = node
        self._faults = node.faults
        self._doors = doors
        self._chain_version = chain_version
        self._restarting: asyncio.Task[None] | None = None
        self._calls: dict[str, Callable[[Body], Awaitable[Answer]]] = {
            name: getattr(self, name)
            for name in (
                *("blocks", "drop", "refuse", "index", "prune", "restart", "chain_id", "rewind", "fork", "clock"),
                *("inject", "confirmation_poc", "restrict"),
            )
        }

    def application(self) -> web.Application:
        """Return the HTTP application."""
        made = web.Application(client_max_size=4 << 20)
        made.router.add_get("/state", self._get_state)
        made.router.add_post("/{name}", self._post)
        return made

    async def close(self) -> None:
        """End a restart that goes on."""
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.gather(self._restarting, return_exceptions=True)

    async def _get_state(self, _request: web.Request) -> web.Response:
        return web.json_response(self.state())

    async def _post(self, request: web.Request) -> web.Response:
        try:
            call = self._calls.get(request.match_info["name"])
            if call is None:
                raise BadRequestError(f"there is no such fault; there are {', '.join(self._calls)}")
            asked = json.loads(await request.read() or b"{}")
            if not isinstance(asked, dict):
                raise BadRequestError("the body must be a JSON object")
            return web.json_response(await call(Body(asked)))
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")

    def state(self) -> Answer:
        """Return everything that can be switched as it is now."""
        faults, node = self._faults, self._node
        refusing, pruned, rewound = faults.refusing, faults.pruned, faults.rewound
        return {
            "height": node.made_height,
            "shown_height": node.height,
            "blocks": faults.making,
            "drop": faults.drop,
            "refuse": refusing.count if refusing else 0,
            "index": faults.index,
            "prune": pruned.below if pruned else 0,
            "restart": "away" if faults.away else "starting" if faults.starting else None,
            "chain_id": faults.chain_id,
            "rewind": rewound.blocks if rewound and node.height < node.made_height else 0,
            "fork": faults.fork,
            "clock": node.clock.offset_ns / 10**9,
            "skipped_seconds": node.clock.skipped_ns / 10**9,
            "inject": len(faults.injected),
        }

    async def blocks(self, body: Body) -> Answer:
        """Stop or go on, or make some at once."""
        count = body.whole("make", 1, MOST_BLOCKS, 0) if body.has("make") else 0
        if not count or body.has("on"):
            making = body.switch("on")
            body.end()
            self._node.set_making(making)
        body.end()
        return {"height": await self._node.make(count) if count else self._node.made_height}

    async def drop(self, body: Body) -> Answer:
        """Lose the next accepted transactions."""
        count = body.whole("count", 0, MOST_BLOCKS)
        body.end()
        self._faults.drop = count
        return {}

    async def refuse(self, body: Body) -> Answer:
        """Refuse the next broadcasts."""
        count, code = body.whole("count", 0, MOST_BLOCKS), body.whole("code", 1, 2**32 - 1, 13)
        codespace = body.text("codespace", SDK)
        log = body.text("log", DESCRIPTIONS.get(code, "") if codespace == SDK else "")
        body.end()
        self._faults.refusing = Refusing(count, Verdict(code, codespace, log)) if count else None
        return {}

    async def index(self, body: Body) -> Answer:
        """Answer with or without a transaction index; it is written all the same."""
        on = body.switch("on")
        body.end()
        self._faults.index = on
        return {}

    async def prune(self, body: Body) -> Answer:
        """Forget what is below a height; the newest stays."""
        below = body.whole("below", 0, self._node.made_height)
        with_blocks = body.switch("blocks") if body.has("blocks") else True
        body.end()
        self._faults.pruned = Pruned(below, with_blocks) if below else None
        return {}

    async def restart(self, body: Body) -> Answer:
        """Go away; the answer comes when connections are refused."""
        seconds = body.seconds("seconds", 0, 3600)
        starting = body.seconds("starting_seconds", 0, 3600, START_PHASE_SECONDS)
        body.end()
        if self._restarting is not None and not self._restarting.done():
            raise BadRequestError("it is away already")
        self._faults.away = True
        await self._doors.close(0)
        await self._node.forget_mempool()
        self._restarting = asyncio.create_task(self._come_back(seconds, starting))
        return {}

    async def _come_back(self, seconds: float, starting_seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._faults.starting = True
        await self._doors.open_again()
        self._faults.away = False
        await asyncio.sleep(starting_seconds)
        self._faults.starting = False

    async def chain_id(self, body: Body) -> Answer:
        """Say another chain id."""
        value = body.text_or_none("value")
        body.end()
        self._node.show(value, self._faults.fork)
        return {}

    async def rewind(self, body: Body) -> Answer:
        """Look lower than before."""
        made = self._node.made_height
        blocks = body.whole("blocks", 0, max(made - 1, 0))
        body.end()
        self._faults.rewound = Rewound(blocks, made) if blocks else None
        return {"height": self._node.height}

    async def fork(self, body: Body) -> Answer:
        """Show another history."""
        height = body.whole("height", 0, 2**31)
        body.end()
        self._node.show(self._faults.chain_id, height)
        return {}

    async def clock(self, body: Body) -> Answer:
        """Put the clock forward or back."""
        offset = body.seconds("offset_seconds", -MOST_CLOCK_SECONDS, MOST_CLOCK_SECONDS)
        body.end()
        self._node.clock.offset_ns = int(offset * 10**9)
        return {}

    async def inject(self, body: Body) -> Answer:
        """Put bytes into the next block."""
        try:
            raw = base64.b64decode(body.text("tx_base64"), validate=True)
        except binascii.Error as error:
            raise BadRequestError(f"tx_base64: {error}") from error
        count = body.whole("count", 1, 100, 1)
        body.end()
        self._faults.injected += [raw] * count
        return {"height": self._node.made_height + 1}

    async def confirmation_poc(self, body: Body) -> Answer:
        """Begin a confirmation of proof of compute."""
        grace = body.whole("grace_blocks", 0, 100_000, 2)
        body.end()
        if self._chain_version == WITHOUT_CONFIRMATION:
            raise BadRequestError(f"chain version {self._chain_version} has no confirmation of proof of compute")
        return {"height": self._node.order(lambda context: epochs.trigger_confirmation(context, grace))}

    async def restrict(self, body: Body) -> Answer:
        """Forbid or allow sends between users."""
        on, until = body.switch("on"), body.whole("until", 1, 2**62, balances.RESTRICTED_UNTIL)
        body.end()
        return {"height": self._node.order(lambda context: balances.restrict(context, until if on else 0))}


async def start(control: Control, host: str, port: int) -> tuple[web.AppRunner, int]:
    """Listen; return what is to be cleaned up and the port."""
    runner = web.AppRunner(control.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner, int(runner.addresses[0][1])
