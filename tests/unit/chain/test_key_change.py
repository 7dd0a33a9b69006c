"""Which key speaks while a host holds two, and files that change places: a crash at any instant is harmless."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gonka_trainer.app import keys as app_keys
from gonka_trainer.app import rotation
from gonka_trainer.app.keys import account_path, next_key_path, open_account, promote_key
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient, NodeAddress
from gonka_trainer.chain.keys import create_key, describe_key, load_key
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.daemon.voice import Voices, speaking
from gonka_trainer.errors import ConfigError
from gonka_trainer.round.membership import Membership, Standing
from gonka_trainer.types import Address, Digest

RUN = Digest(bytes(32))
P, OLD, NEW, OTHER = (Address(bytes([n]) * 20) for n in (1, 2, 3, 4))


def state(named: Address | None = None, speaker: Address | None = None, delegate: Address | None = None) -> Any:
    """What `speaking` looks at of the core's state."""
    current = None if named is None else SimpleNamespace(roster=SimpleNamespace(keys={named: P}))
    membership = Membership(participants={P: Standing(speaker=speaker, delegate=delegate)})
    return SimpleNamespace(current=current, membership=membership)


@pytest.mark.parametrize(
    ("now", "key"),
    [
        (state(), OLD),  # nothing is known: the first
        (state(OLD, OLD, OLD), OLD),
        (state(OLD, OLD, NEW), OLD),  # delegated to, not joined
        (state(OLD, NEW, NEW), OLD),  # joined: the round that goes on still names the old one
        (state(NEW, NEW, NEW), NEW),
        (state(None, NEW, NEW), NEW),  # between rounds
        (state(None, None, NEW), NEW),  # the old one was revoked
        (state(None, OLD, NEW), OLD),
        (state(OTHER, OTHER, OTHER), OLD),  # a key that is not here speaks: as if nothing were known
        (state(P, P, None), OLD),
    ],
)
def test_who_speaks(now: Any, key: Address) -> None:
    assert speaking(now, P, (OLD, NEW)) == key
    assert speaking(now, P, (OLD,)) == OLD
    assert speaking(now, None, (OLD, NEW)) == OLD


class Log:
    """Takes note of what is published."""

    def __init__(self, name: str, said: list[tuple[str, Any]]) -> None:
        self.name, self.said = name, said

    def records(self, block: Any) -> tuple[()]:
        return ()

    async def publish(self, records: Any) -> Any:
        self.said.append((self.name, records))


async def test_records_go_out_under_the_key_that_speaks() -> None:
    said: list[tuple[str, Any]] = []
    now = [state(OLD, OLD, NEW)]
    voices = Voices(P, OLD, Log("old", said), lambda: now[0])
    voices.take(NEW, Log("new", said))
    await voices.publish(())
    await voices.publish_as(NEW, ())
    now[0] = state(NEW, NEW, NEW)
    await voices.publish(())
    voices.retire(OLD)
    await voices.publish(())
    assert [name for name, _ in said] == ["old", "new", "new", "new"]
    assert voices.held == (NEW,)
    with pytest.raises(ValueError, match="without a key"):
        voices.retire(NEW)


def pair(tmp_path: Path) -> tuple[KeyConfig, Address, Address]:
    settings = KeyConfig(str(tmp_path / "account.key"), "gonka1...")
    old, new = create_key(account_path(settings)), create_key(next_key_path(settings))
    return settings, old.address, new.address


def test_the_new_key_takes_the_old_ones_place_and_the_old_one_is_kept(tmp_path: Path) -> None:
    settings, old, new = pair(tmp_path)
    kept = promote_key(settings, "gonka1old")
    assert open_account(settings).address == new
    assert describe_key(kept)[0].address == old
    assert kept.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["account.key", "account.key.former-gonka1old"]


@pytest.mark.parametrize("instant", range(6))
def test_a_crash_in_between_loses_neither_and_the_next_try_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: int
) -> None:
    settings, old, new = pair(tmp_path)
    calls = [0]

    def crashing(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == instant + 1:
                raise KeyboardInterrupt
            return real(*arguments, **named)

        return call

    with monkeypatch.context() as patched:
        for module, name in [(os, "open"), (os, "fsync"), (Path, "replace")]:
            patched.setattr(module, name, crashing(getattr(module, name)))
        with pytest.raises(KeyboardInterrupt):
            promote_key(settings, "gonka1old")
    if next_key_path(settings).exists():
        assert open_account(settings).address == old
        promote_key(settings, "gonka1old")
    assert open_account(settings).address == new
    assert describe_key(tmp_path / "account.key.former-gonka1old")[0].address == old


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _, _ = pair(tmp_path)

    def refuse(_self: Path, _target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(ConfigError, match="cannot be replaced"):
        promote_key(settings, "gonka1old")


def test_a_passphrase_without_terminal_or_file_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = KeyConfig(str(tmp_path / "key"))
    create_key(tmp_path / "key", b"a passphrase")
    monkeypatch.setattr("sys.stdin", (tmp_path / "key").open())
    with pytest.raises(ConfigError, match="no terminal"):
        open_account(settings)
    file = tmp_path / "pass"
    file.write_text("a passphrase\n")
    file.chmod(0o600)
    assert open_account(replace(settings, passphrase_file=str(file)))


def test_credentials_hold_key_and_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_key(tmp_path / "key", b"a passphrase")
    (tmp_path / "pass").write_text("a passphrase")
    for name in ("key", "pass"):
        (tmp_path / name).chmod(0o400)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert open_account(KeyConfig("credential:key", "", "credential:pass")).address == made.address


def test_a_passphrase_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(app_keys, "ask", lambda prompt, _instead: asked.append(prompt) or "typed")
    passphrase = app_keys.Passphrase("", "account.key")
    assert (passphrase(), passphrase()) == (b"typed", b"typed")
    assert asked == ["passphrase of account.key: "]
    assert "typed" not in f"{passphrase!r} {passphrase}"


async def test_with_grants_the_new_key_takes_over_at_once_and_the_author_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records' author is the participant, whichever key sends them: no round has to name the new one."""
    settings, old, new = pair(tmp_path)
    prefix = "gonka"
    settings = replace(settings, participant=encode_address(P, prefix), speaks_by="authz")
    config = Config(
        str(tmp_path / "data"),
        ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", "x-1"),
        settings,
        ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"),
        WorkerConfig("corpus"),
    )
    said: list[tuple[str, Any]] = []
    voices = Voices(P, P, Log("old", said), lambda: state(P, P))
    taken: list[Address] = []

    async def open_log(*_: Any) -> Log:
        return Log("new", said)

    opened_in: list[int] = []

    def load(*arguments: Any) -> Any:
        opened_in.append(threading.get_ident())
        return load_key(*arguments)

    monkeypatch.setattr(rotation, "open_run_log", open_log)
    monkeypatch.setattr(rotation, "load_key", load)
    async with ChainClient(NodeAddress("127.0.0.1:1", "http://127.0.0.1:1")) as chain:
        sender = SimpleNamespace(text=encode_address(old, prefix))

        def took(key: Any, _sender: Any) -> None:
            taken.append(key.address)

        lent: Any = rotation.Succession(config, chain, lambda: b"", lambda: sender, took)  # type: ignore[arg-type,return-value]
        kit: Any = SimpleNamespace(
            log=voices,
            run=SimpleNamespace(manifest=None, manifest_hash=Digest(bytes(32)), params=SimpleNamespace(run_id=RUN)),
            reporter=SimpleNamespace(also=lambda _: None),
            endpoint=SimpleNamespace(participant=P),
            state=lambda: state(P, P),
        )
        change = rotation.AccountChange(lent, kit, None)  # type: ignore[arg-type]
        await change.look()
        await change.look()
    assert taken == [new]
    assert opened_in != [threading.get_ident()], "an encrypted key takes a second to open: blocks must not wait for it"
    assert open_account(settings).address == new
    assert voices.held == (P,)
    await voices.publish(())
    assert [name for name, _ in said] == ["new"]
