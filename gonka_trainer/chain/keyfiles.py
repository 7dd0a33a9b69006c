"""Files with secrets: where they are, who may read them, and how they are written."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gonka_trainer.chain.keystore import passphrase_bytes
from gonka_trainer.errors import ConfigError

CREDENTIAL: Final = "credential:"
_CREDENTIALS_DIRECTORY: Final = "CREDENTIALS_DIRECTORY"
_MAX_BYTES: Final = 4096


def is_credential(text: str) -> bool:
    """Whether the setting names a systemd credential rather than a file."""
    return text.startswith(CREDENTIAL)


def secret_path(text: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file that a setting names: a path, or `credential:NAME` below $CREDENTIALS_DIRECTORY.

    ConfigError when there are no credentials here, or NAME is not the name of one.
    """
    if not is_credential(text):
        return Path(text)
    name, folder = text.removeprefix(CREDENTIAL), environment.get(_CREDENTIALS_DIRECTORY, "")
    if not name or "/" in name or name in {".", ".."}:
        raise ConfigError(f"{text!r:.80} names no credential", "write credential:NAME, as in LoadCredential=NAME:FILE")
    if not folder:
        raise ConfigError(
            f"{text} is a systemd credential, and this process was given none",
            f"start it as a service with LoadCredential={name}:FILE, or name a file",
        )
    return Path(folder) / name


def read_secret(path: Path, what: str, environment: Mapping[str, str] = os.environ) -> bytes:
    """Return a secret file's content, at most 4 KiB; ConfigError when it is missing, too long, or others can read it.

    It must be a regular file of this user or of root, mode 0600 or stricter. What systemd puts into
    $CREDENTIALS_DIRECTORY is root's, and shows the group's read bit where an access list lets the service's user in.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(
            f"{what} {path}: {error.strerror}", "name an existing file that this user can read"
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        folder = environment.get(_CREDENTIALS_DIRECTORY, "")
        _check(path, what, os.fstat(descriptor), bool(folder) and path.parent == Path(folder))
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"{what} {path} has more than {_MAX_BYTES} bytes", "name the right file")
    return content


def _check(path: Path, what: str, found: os.stat_result, credential: bool) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{what} {path} is not a regular file", "name a file")
    if mode & (0o037 if credential and found.st_uid == 0 else 0o077):
        raise ConfigError(f"{what} {path} can be read by others (mode {mode:04o})", f"chmod 600 {path}")
    if os.geteuid() not in {0, found.st_uid} and found.st_uid != 0:
        raise ConfigError(
            f"{what} {path} belongs to another user (uid {found.st_uid})", f"chown it to uid {os.geteuid()}"
        )


def read_passphrase(path: Path, environment: Mapping[str, str] = os.environ) -> bytes:
    """Return the passphrase that a file holds: its one line, without the line's end."""
    content = read_secret(path, "passphrase file", environment)
    try:
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigError(f"passphrase file {path} is not UTF-8", "write the passphrase as text") from None
    if not text or "\n" in text:
        raise ConfigError(f"passphrase file {path} does not hold one line", "write the passphrase and nothing else")
    return passphrase_bytes(text)


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file of mode 0600, on disk when this returns; ConfigError when it exists or cannot be written."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already", "name another file; a key is never overwritten") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", "name a file in a writable folder") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)  # half a key is none, and would be in the way of the next try
        raise ConfigError(f"{path} cannot be written: {error.strerror}", "make room on the disk") from error


def replace_secret(path: Path, content: bytes) -> None:
    """Put a file of mode 0600 in the place of the former one: after a crash there is one of the two, whole."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        write_secret(beside, content)
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be replaced: {error.strerror}", "check its folder's owner and mode"
        ) from error


def sync_folder(folder: Path) -> None:
    """Put the folder's entries on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
