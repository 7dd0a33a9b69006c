"""Several processes with one key, and many transactions of one process at once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from run_log_world import CHAIN_ID, Devnet, Run, block_at, client, devnet, grant, key, open_run, put, read, sender, text

from gonka_trainer.chain.attribution import decode_body, leaves
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.transactions import KV_TYPE
from gonka_trainer.round.records import Heartbeat

EACH = 100


def secret(name: str) -> str:
    number = key(name)._secret.private_numbers().private_value
    return f"{number:064x}"


async def process(net: Devnet, name: str, participant: str, where: str, first: int, folder: Path) -> dict[str, object]:
    """Run one of the processes to its end."""
    arguments = [net.grpc, f"http://{net.rpc}", CHAIN_ID, secret(name), participant, where, str(first), str(EACH)]
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.shared_key", *arguments, str(folder), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await running.communicate()
    assert running.returncode == 0
    said: dict[str, object] = json.loads(out)
    return said


async def failures(chain: ChainClient, start: int, end: int) -> int:
    """How many transactions of the blocks failed."""
    blocks = [await block_at(chain, height) for height in range(start, end + 1)]
    return sum(result.code != 0 for block in blocks for result in block.results)


@pytest.mark.slow
@pytest.mark.parametrize("carrier", ["kv", "memo"])
async def test_two_processes_share_a_warm_key_over_200_transactions(
    carrier: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with devnet(tmp_path / "home") as net:
        async with client(net) as chain:
            run = await open_run(carrier, chain, "shared", tmp_path)
            assert (await put(chain, "alice", [grant("alice", "bob", KV_TYPE)])).result.code == 0
            participant, where = (text("alice"), str(run.task_id)) if carrier == "kv" else ("", run.topic_text)
            start = (await chain.info()).height + 1
            said = await asyncio.gather(
                process(net, "bob", participant, where, 0, tmp_path / "one"),
                process(net, "bob", participant, where, EACH, tmp_path / "two"),
            )
            end = (await chain.info()).height
            found = await read(run.log(sender(chain, "carol", tmp_path)), chain, start, end)
            author = key("alice" if carrier == "kv" else "bob").address
            assert Counter((p.author, p.record) for p in found) == {
                (author, Heartbeat(0, step)): 1 for step in range(2 * EACH)
            }
            assert [each["published"] for each in said] == [EACH, EACH]
            assert await failures(chain, start, end) == 0
            record_property("sent again", json.dumps([each["again"] for each in said]))
            assert not [*(tmp_path / "one").iterdir(), *(tmp_path / "two").iterdir()]


@pytest.mark.parametrize("ordered", [True, False])
async def test_many_at_once(run: Run, chain: ChainClient, tmp_path: Path, ordered: bool) -> None:
    start = (await chain.info()).height + 1
    log = run.log(sender(chain, "carol", tmp_path, ordered=ordered))
    beats = [Heartbeat(7, step) for step in range(40)]
    receipts = await asyncio.wait_for(asyncio.gather(*(log.publish([beat]) for beat in beats)), 60)
    end = max(receipt.height for receipt in receipts)
    found = await read(log, chain, start, end + 1)
    assert Counter(placed.record for placed in found) == dict.fromkeys(beats, 1)
    assert await failures(chain, start, end) == 0


async def test_an_ordered_process_beside_another_one(run: Run, chain: ChainClient, tmp_path: Path) -> None:
    """They take each other's sequences, and both get through."""
    start = (await chain.info()).height + 1
    logs = [run.log(sender(chain, "carol", tmp_path / name, ordered=True)) for name in ("one", "two")]
    sent = [log.publish([Heartbeat(place, step)]) for place, log in enumerate(logs) for step in range(8)]
    receipts = await asyncio.wait_for(asyncio.gather(*sent), 60)
    found = await read(logs[0], chain, start, max(receipt.height for receipt in receipts) + 1)
    assert Counter(placed.record for placed in found) == {
        Heartbeat(place, step): 1 for place in range(2) for step in range(8)
    }


async def test_what_is_signed_by_grant_is_one_execution(tmp_path: Path, chain: ChainClient) -> None:
    run = await open_run("kv", chain, "by grant", tmp_path)
    assert (await put(chain, "alice", [grant("alice", "bob", KV_TYPE)])).result.code == 0
    acting = sender(chain, "bob", tmp_path, acts_for=key("alice").address)
    receipt = await run.log(acting).publish([Heartbeat(1, 1), Heartbeat(1, 2)])
    block = await block_at(chain, receipt.height)
    (body,) = [body for raw in block.transactions if (body := decode_body(raw)) is not None]
    assert [each.type_url for each in body.messages] == [b"/cosmos.authz.v1beta1.MsgExec"]
    assert [each.type_url for each in leaves(body)] == [KV_TYPE, KV_TYPE]
