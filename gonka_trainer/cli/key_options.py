"""How the key commands are told of secrets: files, a terminal or standard input, never arguments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gonka_trainer.app.keys import Passphrase, ask, ask_new_passphrase
from gonka_trainer.chain.keyfiles import read_passphrase, secret_path
from gonka_trainer.chain.keys import AccountKey, load_key
from gonka_trainer.chain.keystore import MIN_PASSPHRASE_LETTERS
from gonka_trainer.errors import ConfigError

KeyFile = Annotated[Path, typer.Argument(help="The key's file.")]
Encrypt = Annotated[bool, typer.Option("--encrypt", help="Keep it encrypted under a passphrase.")]
PassphraseFile = Annotated[
    str,
    typer.Option("--passphrase-file", help="File with the passphrase (or credential:NAME); else it is asked for."),
]
_MAX_INPUT: Final = 4096


def open_key(path: Path, passphrase_file: str = "") -> AccountKey:
    """Load a key that a command line names; the passphrase of an encrypted one comes from the file or the terminal."""
    return load_key(path, Passphrase(passphrase_file, str(path)))


def new_passphrase(encrypt: bool, passphrase_file: str) -> bytes | None:
    """Return the passphrase for a new file: None unless it is to be encrypted (a passphrase's file says so, too)."""
    if passphrase_file:
        found = read_passphrase(secret_path(passphrase_file))
        if len(found.decode()) < MIN_PASSPHRASE_LETTERS:
            raise ConfigError("the passphrase is too short", f"at least {MIN_PASSPHRASE_LETTERS} letters are needed")
        return found
    return ask_new_passphrase() if encrypt else None


def read_input(what: str) -> str:
    """Return what is typed unseen at the terminal, or what standard input holds when it is a pipe or a file."""
    if sys.stdin.isatty():
        return ask(f"{what}: ", "")
    text = sys.stdin.read(_MAX_INPUT + 1)
    if len(text) > _MAX_INPUT:
        raise ConfigError(f"standard input has more than {_MAX_INPUT} letters", f"give the {what} and nothing else")
    return text


def make_folder(path: Path) -> None:
    """Make the folder that a new key's file is to be in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"{path.parent}: {error.strerror}", "name a file in a folder that can be written") from error
