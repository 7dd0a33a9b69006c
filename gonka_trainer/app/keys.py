"""The daemon's account key: from the settings' files, credentials and passphrases to a key in memory."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from pathlib import Path

from gonka_trainer.chain import keyfiles
from gonka_trainer.chain.keys import AccountKey, load_key
from gonka_trainer.chain.keystore import MIN_PASSPHRASE_LETTERS, passphrase_bytes
from gonka_trainer.config import KeyConfig
from gonka_trainer.errors import ConfigError
from gonka_trainer.types import Address


class Passphrase:
    """Called, it gives the passphrase: of the file if one is named, else typed at the terminal, once a process.

    Never from an argument or an environment variable: other users can read those.
    """

    def __init__(self, file: str, what: str) -> None:
        self._file = file
        self._what = what
        self._known: bytes | None = None

    def __call__(self) -> bytes:
        """Return it; ConfigError when there is neither file nor terminal."""
        if self._file:
            return keyfiles.read_passphrase(keyfiles.secret_path(self._file))
        if self._known is None:
            instead = "name keys.passphrase_file (or --passphrase-file)"
            self._known = passphrase_bytes(ask(f"passphrase of {self._what}: ", instead))
        return self._known


def ask(prompt: str, instead: str) -> str:
    """Ask at the terminal, showing nothing of what is typed; ConfigError, with `instead` to do, where there is none."""
    if not sys.stdin.isatty():
        raise ConfigError(f"there is no terminal to ask at for the {prompt.rstrip(': ')}", instead)
    return getpass.getpass(prompt)


def ask_new_passphrase() -> bytes:
    """Ask for a new passphrase, twice; ConfigError when it is too short or the two differ."""
    instead = "name --passphrase-file"
    first = ask(f"new passphrase (at least {MIN_PASSPHRASE_LETTERS} letters): ", instead)
    if len(first) < MIN_PASSPHRASE_LETTERS:
        raise ConfigError(f"a passphrase of {len(first)} letters", f"at least {MIN_PASSPHRASE_LETTERS} are needed")
    if ask("the same again: ", instead) != first:
        raise ConfigError("the two passphrases differ", "try again; nothing was changed")
    return passphrase_bytes(first)


def passphrase_of(keys: KeyConfig) -> Passphrase:
    """Return where the account key's passphrase comes from by the settings."""
    return Passphrase(keys.passphrase_file, keys.account_file)


def account_path(keys: KeyConfig) -> Path:
    """Return the account key's file."""
    return keyfiles.secret_path(keys.account_file)


def open_account(keys: KeyConfig, passphrase: Callable[[], bytes] | None = None) -> AccountKey:
    """Load the account key that the settings name; ConfigError when it cannot be."""
    return load_key(account_path(keys), passphrase or passphrase_of(keys))


def next_key_path(keys: KeyConfig) -> Path:
    """Return where the key that is to replace the account key waits until it speaks: beside it."""
    path = account_path(keys)
    return path.with_name(f"{path.name}.next")


def promote_key(keys: KeyConfig, former: str) -> Path:
    """Put the waiting key in the account key's place, and keep the old one beside under `former`, its address.

    A crash leaves one of the two in place, whole, and the call can be made again. Returns the old key's new file.
    """
    path, waiting = account_path(keys), next_key_path(keys)
    kept = path.with_name(f"{path.name}.former-{former}")
    if not kept.exists():
        keyfiles.replace_secret(kept, keyfiles.read_secret(path, "key file"))
    try:
        waiting.replace(path)
        keyfiles.sync_folder(path.parent)
    except OSError as error:
        remedy = f"move {waiting} to {path} by hand, or give the daemon's user the right to"
        raise ConfigError(f"{path} cannot be replaced: {error.strerror}", remedy) from error
    return kept


def sent_folder(data: Path, key: Address) -> Path:
    """Return where the unfinished transactions of a key are remembered: one folder a key."""
    return data / "sent" / key.hex()[:16]
