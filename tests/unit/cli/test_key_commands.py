"""`gonka-trainer keys`: files in, addresses out, and secrets nowhere: not in output, crashes, logs or data."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gonka_trainer.__main__ import main
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.keys import AccountKey, load_key
from gonka_trainer.chain.mnemonic import key_from_words
from tests.support.tiny_run import make_run

WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
SECRET = bytes(range(101, 133))
HEX = SECRET.hex()
PASSPHRASE = "an old passphrase of mine"
KEY = AccountKey.from_bytes(SECRET)
CONFIG = """\
data_dir = "data"
[chain]
grpc = "127.0.0.1:1"
rpc = "http://127.0.0.1:1"
chain_id = "x-1"
[keys]
account_file = "account.key"
[exchange]
bind = "127.0.0.1:0"
advertise = "127.0.0.1:0"
[worker]
data = "corpus.txt"
"""
CRASH = """
import sys
from gonka_trainer.app import daemon
def crash(self):
    key = self._sender._key
    raise RuntimeError("a crash with keys at hand", key, vars(self), vars(self._sender), vars(key))
daemon.Daemon.run = crash
from gonka_trainer.__main__ import main
sys.argv = ["gonka-trainer", "run", "--config", "gonka-trainer.toml"]
main()
"""


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `gonka-trainer` in the test's folder, as `python -m` does; return all that it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str = "", status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["gonka-trainer", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with pytest.raises(SystemExit) as ended:
            main()
        said = "".join(capfd.readouterr())
        assert (ended.value.code or 0) == status, said
        return said

    return run


def secret_file(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def leaks(text: str, words: str = WORDS) -> list[str]:
    """The forms of the secrets that the text holds."""
    from_words = key_from_words(words)
    secrets = [SECRET, bytes.fromhex(from_words.file_content(None).decode())]
    forms = [words, " ".join(words.split()[:3]), PASSPHRASE]
    for secret in secrets:
        forms += [secret.hex(), secret.hex().upper(), base64.b64encode(secret).decode(), str(int.from_bytes(secret))]
        forms += [secret.hex()[:24], repr(secret), base64.urlsafe_b64encode(secret).decode()]
    return [form for form in forms if form in text]


def test_leaks_are_found() -> None:
    assert leaks(f"x{HEX}y")
    assert leaks(f"{WORDS} and more")
    assert not leaks(encode_address(KEY.address, "gonka"))


def test_hex_is_imported_and_shown_without_the_secret(tmp_path: Path, keys: Callable[..., str]) -> None:
    said = keys("keys", "import", "a/key", given=HEX + "\n")
    assert said.strip() == encode_address(KEY.address, "gonka")
    assert (tmp_path / "a" / "key").stat().st_mode & 0o777 == 0o600
    shown = keys("keys", "show", "a/key")
    assert shown.splitlines()[0] == encode_address(KEY.address, "gonka")
    assert KEY.public_key.hex() in shown
    assert "encrypted   no" in shown
    assert leaks(said + shown) == []


def test_words_are_imported_at_gonkas_path(tmp_path: Path, keys: Callable[..., str]) -> None:
    said = keys("keys", "import", "key", given=WORDS)
    assert load_key(tmp_path / "key").address == key_from_words(WORDS).address
    other = keys("keys", "import", "other", "--index", "1", given=WORDS)
    assert said != other
    assert leaks(said + other) == []


def test_new_words_bring_the_key_back_and_are_in_no_file(tmp_path: Path, keys: Callable[..., str]) -> None:
    address, words = (line for line in keys("keys", "new", "key", "--mnemonic").splitlines() if "Write" not in line)
    assert len(words.split()) == 24
    assert keys("keys", "import", "again", given=words).strip() == address
    assert not any(words.split()[0] in path.read_text() for path in tmp_path.iterdir())


def test_encrypting_and_decrypting_in_place(tmp_path: Path, keys: Callable[..., str]) -> None:
    secret_file(tmp_path / "pass", PASSPHRASE + "\n")
    secret_file(tmp_path / "key", HEX)
    said = keys("keys", "encrypt", "key", "--passphrase-file", "pass")
    assert json.loads((tmp_path / "key").read_text())["format"] == "gonka-trainer-key/1"
    shown = keys("keys", "show", "key")
    assert shown.splitlines()[0] == encode_address(KEY.address, "gonka")
    assert "encrypted   yes" in shown
    assert leaks(said + shown + (tmp_path / "key").read_text()) == []
    keys("keys", "decrypt", "key", "--passphrase-file", "pass")
    assert (tmp_path / "key").read_text().strip() == HEX
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "pass"]


@pytest.mark.parametrize(
    ("arguments", "given", "says"),
    [
        (("import", "new"), HEX + "00", "does not hold a key"),
        (("import", "new"), HEX[:-1] + "x", "does not hold a key"),
        (("import", "new"), WORDS + " yellow", "13 words"),
        (("import", "new"), WORDS.replace("yellow", "year"), "checksum"),
        (("import", "new"), HEX * 100, "more than 4096"),
        (("import", "new", "--index", "3"), HEX, "neither a path"),
        (("import", "key"), HEX, "exists already"),
        (("import", "new", "--encrypt"), HEX, "no terminal"),
        (("import", "new", "--passphrase-file", "short"), HEX, "too short"),
        (("show", "wide"), "", "chmod 600"),
        (("show", "long"), "", "does not hold a key"),
        (("show", "torn"), "", "no JSON"),
        (("decrypt", "key"), "", "is not encrypted"),
        (("decrypt", "sealed", "--passphrase-file", "wrong"), "", "passphrase is wrong"),
        (("decrypt", "sealed"), "", "no terminal"),
        (("decrypt", "sealed", "--passphrase-file", "credential:p"), "", "systemd credential"),
    ],
)
def test_what_goes_wrong_is_said_without_the_secret(
    tmp_path: Path, keys: Callable[..., str], arguments: tuple[str, ...], given: str, says: str
) -> None:
    secret_file(tmp_path / "key", HEX)
    secret_file(tmp_path / "wide", HEX).chmod(0o644)
    secret_file(tmp_path / "long", HEX + " " + HEX)
    secret_file(tmp_path / "torn", '{"key": "' + HEX)
    secret_file(tmp_path / "sealed", KEY.file_content(PASSPHRASE.encode()).decode())
    secret_file(tmp_path / "wrong", "something else\n")
    secret_file(tmp_path / "short", "seven..\n")
    said = keys("keys", *arguments, given=given, status=1)
    assert says in said
    assert "  -> " in said
    assert "Traceback" not in said
    assert leaks(said) == []
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True])
def test_a_daemon_that_waits_or_crashes_shows_no_secret(tmp_path: Path, keys: Callable[..., str], sealed: bool) -> None:
    secret_file(tmp_path / "pass", PASSPHRASE)
    secret_file(tmp_path / "account.key", KEY.file_content(PASSPHRASE.encode() if sealed else None).decode())
    passphrase = '\npassphrase_file = "pass"' if sealed else ""
    text = CONFIG.replace('"account.key"', f'"account.key"{passphrase}')
    (tmp_path / "gonka-trainer.toml").write_text(text)
    crashed = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CRASH], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "a crash with keys at hand" in crashed.stderr
    assert encode_address(KEY.address, "gonka") in crashed.stderr  # what it had at hand was shown
    waiting, log = running(tmp_path)
    said = crashed.stdout + crashed.stderr + log + keys("status", "--config", "gonka-trainer.toml")
    assert waiting
    for path in (tmp_path / "data").rglob("*"):
        said += path.read_bytes().decode("latin-1") if path.is_file() else ""
    assert leaks(said) == []


def running(folder: Path) -> tuple[bool, str]:
    """Start the daemon with no node to reach, until it says so; then have it dump its stacks and end."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "gonka_trainer",
        "run",
        "-v",
        "--config",
        "gonka-trainer.toml",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    until = time.monotonic() + 60
    while "trying again" not in (folder / "log").read_text() and time.monotonic() < until:
        assert process.poll() is None, (folder / "log").read_text()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGABRT)
    process.wait()
    text = (folder / "log").read_text()
    return "trying again" in text and "Fatal Python error: Aborted" in text, text


OFFLINE = {"--account-number": "1", "--sequence": "2", "--height": "3", "--gas": "200000", "--gas-price": "0"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--gas-price", "NaN"),
        ("--gas-price", "Infinity"),
        ("--gas-price", "-1"),
        ("--gas", "-1"),
        ("--gas", str(1 << 64)),
        ("--fee", "-2"),
        ("--account-number", str(1 << 64)),
        ("--sequence", str(1 << 64)),
        ("--height", str(1 << 64)),
        ("--good-until", "-1"),
        ("--good-until", str(1 << 64)),
        ("--task", str(1 << 64)),
    ],
)
def test_numbers_that_no_transaction_has(tmp_path: Path, keys: Callable[..., str], option: str, value: str) -> None:
    secret_file(tmp_path / "key", HEX)
    make_run(tmp_path)
    given = [text for pair in {**OFFLINE, option: value}.items() for text in pair]
    speaker = encode_address(KEY.address, "gonka")
    status = 1 if option == "--gas-price" else 2
    said = keys(
        "keys", "delegate", "manifest.json", speaker, "--key", "key", "--offline", "slip", *given, status=status
    )
    assert option in said
    assert not (tmp_path / "slip").exists()


def test_what_a_slip_says_of_itself_is_shown_without_control_characters(
    tmp_path: Path, keys: Callable[..., str]
) -> None:
    secret_file(tmp_path / "key", HEX)
    make_run(tmp_path)
    given = [text for pair in OFFLINE.items() for text in pair]
    speaker = encode_address(KEY.address, "gonka")
    keys("keys", "delegate", "manifest.json", speaker, "--key", "key", "--offline", "slip", *given)
    slip = json.loads((tmp_path / "slip").read_text())
    (tmp_path / "slip").write_text(json.dumps({**slip, "says": "\x1b]0;\x07all is well"}))
    said = keys("keys", "broadcast", "slip", "--grpc", "127.0.0.1:1", "--rpc", "http://127.0.0.1:1", status=1)
    assert "\x07" not in said
    assert "all is well" in said


def test_a_disk_that_is_full_is_said(keys: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        said = keys("keys", "import", "key", given=HEX, status=1)
    assert "key cannot be written: No space left" in said
    assert leaks(said) == []
    assert keys("keys", "import", "key", given=HEX), "no half of a file is in the way"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, keys: Callable[..., str]) -> None:
    secret_file(tmp_path / "key", HEX)
    (tmp_path / ".key.sent").write_text("a file where a folder is to be")
    chain = ["--grpc", "127.0.0.1:1", "--rpc", "http://127.0.0.1:1"]
    said = keys("task", "claim", "1", "--key", "key", *chain, status=1)
    assert ".key.sent" in said
