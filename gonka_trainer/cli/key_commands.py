"""`gonka-trainer keys`: the host's account key, and who speaks for whom."""

from __future__ import annotations

from typing import Annotated

import typer

from gonka_trainer.app.keys import ask
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.keyfiles import replace_secret, write_secret
from gonka_trainer.chain.keys import AccountKey, create_key, describe_key, parse_hex_key
from gonka_trainer.chain.mnemonic import GONKA_COIN, KeyPath, key_from_words, new_words
from gonka_trainer.cli import key_delegation, key_grants, key_rotation
from gonka_trainer.cli.key_options import (
    Encrypt,
    KeyFile,
    PassphraseFile,
    make_folder,
    new_passphrase,
    open_key,
    read_input,
)
from gonka_trainer.cli.options import Prefix
from gonka_trainer.errors import ConfigError

app = typer.Typer(no_args_is_help=True)
Account = Annotated[int, typer.Option(help="m/44'/1200'/ACCOUNT'/0/INDEX.")]
Index = Annotated[int, typer.Option(help="m/44'/1200'/ACCOUNT'/0/INDEX.")]


@app.command()
def new(
    file: KeyFile,
    prefix: Prefix = "gonka",
    encrypt: Encrypt = False,
    passphrase_file: PassphraseFile = "",
    mnemonic: Annotated[bool, typer.Option("--mnemonic", help="Show 24 words that bring it back, once.")] = False,
) -> None:
    """Make an account key in a new file that only you can read, and say its address."""
    make_folder(file)
    passphrase = new_passphrase(encrypt, passphrase_file)
    if not mnemonic:
        typer.echo(encode_address(create_key(file, passphrase).address, prefix))
        return
    words = new_words()
    key = key_from_words(words)
    write_secret(file, key.file_content(passphrase))
    typer.echo(encode_address(key.address, prefix))
    typer.echo("Write these words down: whoever has them has the key, and they are not shown again.", err=True)
    typer.echo(words)


@app.command("import")
def import_(
    file: KeyFile,
    prefix: Prefix = "gonka",
    encrypt: Encrypt = False,
    passphrase_file: PassphraseFile = "",
    account: Account = 0,
    index: Index = 0,
    bip39_passphrase: Annotated[
        bool, typer.Option("--bip39-passphrase", help="Ask for the words' own passphrase ('25th word').")
    ] = False,
) -> None:
    """Put a key into a new file: from its words (BIP-39) or its 64 hex digits, typed unseen or on standard input."""
    make_folder(file)
    text = read_input("words, or 64 hex digits")
    extra = ask("the words' own passphrase: ", "leave --bip39-passphrase away") if bip39_passphrase else ""
    key = _imported(text, extra, KeyPath(account, index, GONKA_COIN))
    write_secret(file, key.file_content(new_passphrase(encrypt, passphrase_file)))
    typer.echo(encode_address(key.address, prefix))


def _imported(text: str, passphrase: str, path: KeyPath) -> AccountKey:
    """Tell one word from many: one is meant to be hex. Nothing of the text is shown, whatever it is."""
    if len(text.split()) != 1:
        return key_from_words(text, passphrase, path)
    if passphrase or path != KeyPath():
        raise ConfigError("a key in hex has neither a path nor a passphrase of its own", "leave these options away")
    return parse_hex_key(text.strip().removeprefix("0x").encode())


@app.command()
def show(file: KeyFile, prefix: Prefix = "gonka") -> None:
    """Say what a key's file holds, never the secret: address, public key, and whether it is encrypted."""
    public, encrypted = describe_key(file)
    typer.echo(encode_address(public.address, prefix))
    typer.echo(f"public key  {public.key.hex()} (secp256k1, compressed)")
    typer.echo(f"encrypted   {'yes' if encrypted else 'no'}")
    typer.echo(f"file        {file}")


@app.command()
def encrypt(file: KeyFile, passphrase_file: PassphraseFile = "") -> None:
    """Encrypt a key's file in place, under a passphrase; an encrypted one gets a new passphrase instead.

    The former passphrase is asked for at the terminal. What the disk held before may still be found on it.
    """
    key = open_key(file)
    replace_secret(file, key.file_content(new_passphrase(True, passphrase_file)))
    typer.echo(f"{file} is encrypted")


@app.command()
def decrypt(file: KeyFile, passphrase_file: PassphraseFile = "") -> None:
    """Take the encryption away from a key's file, in place."""
    if not describe_key(file)[1]:
        raise ConfigError(f"{file} is not encrypted", "nothing is left to do")
    replace_secret(file, open_key(file, passphrase_file).file_content(None))
    typer.echo(f"{file} is not encrypted any more: only its mode guards it")


app.command()(key_grants.grants)
app.command()(key_delegation.delegate)
app.command()(key_delegation.broadcast)
app.command()(key_rotation.rotate)
