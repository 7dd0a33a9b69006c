"""`gonka-trainer keys rotate`: new keys for a daemon that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gonka_trainer.app.accepted import AcceptedRuns
from gonka_trainer.app.host import has_begun
from gonka_trainer.app.key_change import Change, change_account
from gonka_trainer.app.keys import open_account, passphrase_of
from gonka_trainer.cli.key_options import PassphraseFile, open_key
from gonka_trainer.cli.options import DEFAULT_CONFIG, ConfigPath, host_config, run_async
from gonka_trainer.config import Config
from gonka_trainer.errors import ConfigError
from gonka_trainer.exchange.identity import load_or_create_identity, next_identity, next_path


def rotate(
    config: ConfigPath = DEFAULT_CONFIG,
    tls: Annotated[bool, typer.Option("--tls", help="A new TLS key instead of a new account key.")] = False,
    key: Annotated[Path | None, typer.Option("--key", help="The participant's key, if it is another.")] = None,
    passphrase_file: PassphraseFile = "",
    fund: Annotated[int, typer.Option(min=0, help="Send the new account this many of the smallest unit.")] = 0,
) -> None:
    """Give the daemon a new account key (or TLS key) without stopping it: no round is missed.

    --passphrase-file is for --key; the daemon's own key is opened as its configuration says.
    """
    settings = host_config(config)
    if tls:
        _rotate_tls(settings)
        return
    passphrase = passphrase_of(settings.keys)
    old = open_account(settings.keys, passphrase)
    signer = old if key is None else open_key(key, passphrase_file)
    runs = AcceptedRuns(settings.data_path)
    begun = tuple(run for run in runs.all() if has_begun(settings, run) and not runs.has_left(run.hash))
    change = Change(settings, old, signer, passphrase, fund, begun, typer.echo)
    run_async(change_account(change))


def _rotate_tls(settings: Config) -> None:
    path = settings.data_path / "tls.pem"
    if not path.exists():
        raise ConfigError(f"{path}: this daemon has no TLS key yet", "its first start makes one")
    if next_identity(path) is not None:
        raise ConfigError(f"{next_path(path)} waits already", "the daemon takes it over when its run knows it")
    identity = load_or_create_identity(next_path(path))
    typer.echo(f"new TLS key, SPKI {identity.spki.hex()}: the daemon joins again with it, and then shows it")
