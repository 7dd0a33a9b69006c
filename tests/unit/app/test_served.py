"""Whether a served run still wants the GPUs: not known before its journal is read, no longer after a leave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gonka_trainer.app.accepted import accept
from gonka_trainer.app.rules import round_params
from gonka_trainer.app.served import ServedRun
from gonka_trainer.daemon.host import Host
from gonka_trainer.daemon.report import Reporter
from gonka_trainer.round.params import Local
from gonka_trainer.types import Address
from tests.support.tiny_run import make_run

OWN = Address(b"\x01" * 20)


async def test_a_run_wants_the_gpus_from_its_journals_end_until_it_is_over_or_left(tmp_path: Path) -> None:
    run = accept(make_run(tmp_path).manifest_path.read_bytes(), "manifest")
    unused: Any = None
    params = round_params(run.manifest, run.hash, "gonka")
    host = Host(params, Local(OWN, OWN, True), unused, unused, unused, unused)
    served = ServedRun(OWN, asyncio.Event())
    assert served.over is None
    with served.live(host, Reporter(tmp_path, str, "host", "run", OWN)):
        assert served.over is False
        host.wants_membership = False  # left, and no member any more
        assert served.over is True
        host.wants_membership = True
        served.ended.set()
        assert served.over is True
    assert served.over is None
