from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import Any

from gonka_trainer.app.operations import ErrorEvents
from gonka_trainer.control.events import EventHub


async def test_what_happened_before_is_not_told() -> None:
    hub = EventHub()
    hub.tell("phase", {"round": 1})
    with hub.reading() as reader:
        hub.tell("phase", {"round": 2})
        event = await anext(reader)
    assert (event.sequence, event.kind, event.details) == (2, "phase", {"round": 2})


async def test_a_full_queue_drops_the_oldest_and_says_how_many() -> None:
    hub = EventHub(limit=3)
    with hub.reading() as slow, hub.reading() as fast:
        seen = []
        for number in range(1, 11):
            hub.tell("phase", {"round": number})
            seen.append((await anext(fast)).details["round"])
        assert seen == list(range(1, 11))
        missed = await anext(slow)
        assert (missed.kind, missed.details, missed.sequence) == ("missed", {"count": 7}, 7)
        assert [(await anext(slow)).sequence for _ in range(3)] == [8, 9, 10]
        for number in range(11, 16):
            hub.tell("phase", {"round": number})
        assert (await anext(slow)).details == {"count": 2}  # counted anew


async def test_a_reader_that_has_gone_takes_nothing() -> None:
    hub = EventHub(limit=3)
    with hub.reading():
        pass
    hub.tell("phase", {})
    assert not hub._readers


async def test_details_are_those_at_the_time() -> None:
    hub, details = EventHub(), {"round": 1}
    with hub.reading() as reader:
        hub.tell("phase", details)
        details["round"] = 2
        assert (await anext(reader)).details == {"round": 1}


async def test_errors_of_any_thread_become_events() -> None:
    told: list[tuple[str, Mapping[str, Any]]] = []
    arrived = asyncio.Event()

    def tell(kind: str, details: Mapping[str, Any]) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append((kind, details))
        arrived.set()

    log = logging.getLogger("gonka_trainer.test")
    handler = ErrorEvents(tell, asyncio.get_running_loop())
    log.addHandler(handler)
    try:
        log.warning("no error")
        await asyncio.to_thread(log.error, "disk %s is full", "sda")
        await asyncio.wait_for(arrived.wait(), 30)
    finally:
        log.removeHandler(handler)
    assert told == [("error", {"text": "disk sda is full"})]
