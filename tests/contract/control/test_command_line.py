"""What an operator types, and the documented example, as processes of their own."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from control_world import RUN, World, until

ROOT = Path(__file__).parents[3]
CONFIG = """\
data_dir = "{data}"

[chain]
grpc = "127.0.0.1:1"
rpc = "http://127.0.0.1:1"
chain_id = "gonka-devnet"

[keys]
account_file = "account.key"

[exchange]
bind = "127.0.0.1:0"
advertise = "127.0.0.1:0"

[worker]
data = "corpus.txt"
"""


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )


async def ran(*arguments: str) -> tuple[int | None, str, str]:
    process = await start(*arguments)
    out, err = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def config(world: World) -> str:
    path = world.folder / "gonka-trainer.toml"
    path.write_text(CONFIG.format(data=world.folder))
    return str(path)


def cli(command: str, config: str, *more: str) -> tuple[str, ...]:
    return ("-m", "gonka_trainer", command, "--config", config, *more)


async def test_pause_drain_resume_and_stop(world: World, config: str) -> None:
    code, out, err = await ran(*cli("pause", config, "--why", "a new driver"))
    assert (code, err) == (0, "")
    assert "paused" in out
    assert dict(world.gpu.holds) == {"operator": "a new driver"}
    assert (await ran(*cli("resume", config)))[:2] == (0, "resumed\n")
    assert not world.gpu.holds
    world.run.trained.set()
    world.run.in_block.set()
    assert (await ran(*cli("drain", config)))[0] == 0
    assert world.operations.status()["asked"] == "drain"
    assert (await ran(*cli("stop", config)))[0] == 0
    assert world.stopped.is_set()


async def test_events_are_shown_until_the_daemon_ends(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "gonka-trainer.toml").write_text(CONFIG.format(data=tmp_path))
    async with world.serving():
        process = await start(*cli("events", str(tmp_path / "gonka-trainer.toml"), "--json", "--kind", "phase"))
        await until(lambda: len(world.operations._hub._readers) == 1)
        world.operations.tell("error", {"text": "not asked for"})
        world.operations.tell("phase", {"round": 2, "phase": "attest", "height": 9})
        assert process.stdout is not None
        said = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
        assert (said["kind"], said["details"]) == ("phase", {"round": 2, "phase": "attest", "height": 9})
    assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_without_a_daemon_every_command_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "gonka-trainer.toml"
    path.write_text(CONFIG.format(data=tmp_path))
    code, out, err = await ran(*cli("pause", str(path)))
    assert (code, out) == (1, "")
    assert f"no daemon runs: {tmp_path}/control.sock is not there" in err
    assert "-> start it with `gonka-trainer run`" in err
    assert "Traceback" not in err


async def test_the_example_runs(world: World) -> None:
    world.gpu.hold("proof of compute", "blocks 50 to 59")
    process = await start("examples/control.py", f"unix:{world.socket}", "--events", "1")
    await until(lambda: len(world.operations._hub._readers) == 1)
    world.operations.tell("phase", {"round": 3, "phase": "commit", "height": 120})
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, err) == (0, b"")
    assert out.decode().splitlines() == [
        "gonka1participant is serving, round 3, train",
        "GPUs held for proof of compute: blocks 50 to 59",
        "phase {'height': 120.0, 'phase': 'commit', 'round': 3.0}",
    ]
    code, _, told = await ran("examples/control.py", f"unix:{world.folder}/nowhere.sock")
    assert (code, told.startswith("UNAVAILABLE")) == (1, True)


async def test_the_documented_python_runs(world: World) -> None:
    """The Python block of docs/control.md, as it stands there, against this socket."""
    text = (ROOT / "docs" / "control.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    assert "data/control.sock" in block
    script = world.folder / "documented.py"
    script.write_text(block.replace("data/control.sock", str(world.socket)))
    code, out, err = await ran(str(script))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "serving, round 3 (train)",
        f"{RUN.hex()} serving",
        "cd" * 32 + " refused: you did not agree",
    ]
    assert dict(world.gpu.holds) == {"operator": "a new driver"}
