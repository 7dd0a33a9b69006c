"""Encrypted key files: what opens them, what is refused, and what they never show."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import stat
import traceback
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer.chain import keyfiles, keys
from gonka_trainer.chain.keystore import Cost, WrongPassphraseError, open_sealed, passphrase_bytes, seal, sealed_public
from gonka_trainer.errors import ConfigError

CHEAP = Cost(1 << 14)
SECRET = bytes(range(1, 33))
KEY = keys.AccountKey.from_bytes(SECRET)
PASSPHRASE = b"correct horse battery"
SEALED = seal(SECRET, KEY.public, PASSPHRASE, CHEAP)


def written(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def changed(**changes: Any) -> bytes:
    """The sealed document with values put in: DOTTED__NAME=value."""
    document = json.loads(SEALED)
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        if inner:
            document[outer][inner] = value
        else:
            document[outer] = value
    return json.dumps(document).encode()


def test_what_was_sealed_is_opened_by_the_passphrase_alone() -> None:
    assert open_sealed(SEALED, PASSPHRASE, "it") == (SECRET, KEY.public)
    assert sealed_public(SEALED, "it") == KEY.public
    with pytest.raises(WrongPassphraseError, match="passphrase is wrong"):
        open_sealed(SEALED, PASSPHRASE + b" ", "it")


def test_the_format_is_what_is_written_down() -> None:
    """Opened by other code, from the format's description alone."""
    document = json.loads(SEALED)
    raw = {name: base64.b64decode(document[part][name]) for part, name in [("kdf", "salt"), ("cipher", "nonce")]}
    sealed = base64.b64decode(document.pop("ciphertext"))
    key = Scrypt(salt=raw["salt"], length=32, n=16384, r=8, p=1).derive(PASSPHRASE)
    associated = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    assert ChaCha20Poly1305(key).decrypt(raw["nonce"], sealed, associated) == SECRET
    assert document["address"] == KEY.address.hex()
    assert document["public_key"] == KEY.public_key.hex()
    assert document["format"] == "gonka-trainer-key/1"


def test_salt_and_nonce_are_fresh() -> None:
    first, second = json.loads(SEALED), json.loads(seal(SECRET, KEY.public, PASSPHRASE, CHEAP))
    assert first["kdf"]["salt"] != second["kdf"]["salt"]
    assert first["cipher"]["nonce"] != second["cipher"]["nonce"]
    assert first["ciphertext"] != second["ciphertext"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (changed(format="gonka-trainer-key/2"), "another format"),
        (changed(kdf__name="argon2id"), "another kdf"),
        (changed(cipher__name="aes-128"), "another kdf or cipher"),
        (changed(kdf__n=1 << 30), "out of bounds"),
        (changed(kdf__n=1 << 10), "out of bounds"),
        (changed(kdf__n=(1 << 17) + 1), "out of bounds"),
        (changed(kdf__n=131072.0), "out of bounds"),
        (changed(kdf__n=True), "out of bounds"),
        (changed(kdf__n=1 << 20, kdf__r=32), "out of bounds"),
        (changed(kdf__r=0), "out of bounds"),
        (changed(kdf__p=1000), "out of bounds"),
        (changed(kdf__salt="AAAA"), "not 16 bytes"),
        (changed(kdf__salt=None), "not 16 bytes"),
        (changed(cipher__nonce="!" * 16), "not 12 bytes"),
        (changed(ciphertext=base64.b64encode(bytes(47)).decode()), "not 48 bytes"),
        (changed(address="00"), "not in lower-case hex"),
        (changed(public_key="G" * 66), "not in lower-case hex"),
        (changed(extra=1), "other fields"),
        (changed(kdf="scrypt"), "other fields"),
        (b"[]", "other fields"),
        (b"{" * 2000, "no JSON"),
        (b'{"format": 1, "format": 1}', "no JSON"),
        (b"{" + b" " * 5000 + SEALED[1:], "other fields"),
        (b"{\xff}", "no JSON"),
    ],
)
def test_other_documents_are_refused_before_anything_is_computed(document: bytes, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        open_sealed(document, PASSPHRASE, "the file")
    assert not isinstance(caught.value, WrongPassphraseError)
    assert caught.value.remedy


@pytest.mark.parametrize("field", ["address", "public_key", "kdf__salt", "cipher__nonce", "ciphertext"])
def test_nothing_of_it_can_be_changed(field: str) -> None:
    outer, _, inner = field.partition("__")
    value = json.loads(SEALED)[outer]
    value = value[inner] if inner else value
    other = ("1" if value[0] != "1" else "2") + value[1:] if outer in {"address", "public_key"} else flipped(value)
    with pytest.raises(WrongPassphraseError):
        open_sealed(changed(**{field: other}), PASSPHRASE, "it")


def flipped(text: str) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[0] ^= 1
    return base64.b64encode(raw).decode()


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_a_clear_error(document: bytes) -> None:
    with pytest.raises(ConfigError):
        open_sealed(b"{" + document, PASSPHRASE, "it")


def test_a_passphrase_is_the_same_however_its_letters_are_composed() -> None:
    assert passphrase_bytes("caf\u00e9") == passphrase_bytes("cafe\u0301")


def test_a_key_file_is_told_apart_by_its_content(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain", SECRET.hex().encode())
    sealed = written(tmp_path / "sealed", SEALED)
    assert keys.load_key(plain).address == keys.load_key(sealed, lambda: PASSPHRASE).address == KEY.address
    assert keys.describe_key(plain) == (KEY.public, False)
    assert keys.describe_key(sealed) == (KEY.public, True)
    with pytest.raises(ConfigError, match="is encrypted"):
        keys.load_key(sealed)


def test_a_file_that_is_no_key_file_is_refused_before_the_passphrase_is_asked_for(tmp_path: Path) -> None:
    def asked() -> bytes:
        raise AssertionError("asked")

    with pytest.raises(ConfigError, match="out of bounds"):
        keys.load_key(written(tmp_path / "key", changed(kdf__n=1 << 30)), asked)


def test_a_new_key_can_be_encrypted(tmp_path: Path) -> None:
    made = keys.create_key(tmp_path / "key", PASSPHRASE)
    content = (tmp_path / "key").read_bytes()
    assert json.loads(content)["kdf"]["n"] == 1 << 17
    assert keys.load_key(tmp_path / "key", lambda: PASSPHRASE).address == made.address
    assert made.file_content(None).strip() not in content


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_modes_that_others_cannot_use_are_taken(tmp_path: Path, mode: int) -> None:
    assert keys.load_key(written(tmp_path / "key", SECRET.hex().encode(), mode)).address == KEY.address


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o440])
def test_modes_that_let_others_in_are_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="can be read by others"):
        keys.load_key(written(tmp_path / "key", SECRET.hex().encode(), mode))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        keyfiles.read_secret(tmp_path / "pipe", "key file")
    with pytest.raises(ConfigError, match="more than 4096 bytes"):
        keyfiles.read_secret(written(tmp_path / "long", b"1" * 5000), "key file")


def stat_of(mode: int, owner: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 0, 0, 1, owner, owner, 0, 0, 0, 0))


def test_credentials_as_systemd_makes_them_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's, 0400, with an access list for the service's user: then the group's read bit shows its mask."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    path = Path("/run/credentials/x.service/key")
    for mode, owner, credential, good in [
        (0o400, 0, True, True),
        (0o440, 0, True, True),
        (0o400, 1000, True, True),
        (0o440, 0, False, False),
        (0o440, 1000, True, False),
        (0o444, 0, True, False),
        (0o460, 0, True, False),
        (0o600, 1001, False, False),
        (0o600, 1000, False, True),
    ]:
        try:
            keyfiles._check(path, "key file", stat_of(mode, owner), credential)
        except ConfigError:
            assert not good, (mode, owner)
        else:
            assert good, (mode, owner)


def test_a_credential_is_a_file_below_its_directory(tmp_path: Path) -> None:
    where = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert keyfiles.secret_path("credential:key", where) == tmp_path / "key"
    assert keyfiles.secret_path("a/key", where) == Path("a/key")
    for name in ("credential:", "credential:../key", "credential:..", "credential:a/b"):
        with pytest.raises(ConfigError, match="names no credential"):
            keyfiles.secret_path(name, where)
    with pytest.raises(ConfigError, match="LoadCredential=key:FILE"):
        keyfiles.secret_path("credential:key", {})


def test_a_passphrase_file_holds_one_line(tmp_path: Path) -> None:
    assert keyfiles.read_passphrase(written(tmp_path / "a", b"two words\n")) == b"two words"
    assert keyfiles.read_passphrase(written(tmp_path / "b", b"two words\r\n")) == b"two words"
    for content in (b"", b"\n", b"one\ntwo\n", b"\xff\xff"):
        with pytest.raises(ConfigError, match="passphrase file"):
            keyfiles.read_passphrase(written(tmp_path / "c", content))
    with pytest.raises(ConfigError, match="can be read by others"):
        keyfiles.read_passphrase(written(tmp_path / "d", b"two words", 0o644))


def test_replacing_leaves_one_whole_file_and_no_other(tmp_path: Path) -> None:
    path = written(tmp_path / "key", b"old")
    written(tmp_path / ".key.new", b"half of a former tr")
    keyfiles.replace_secret(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["key"]


def test_a_key_object_leaks_nothing() -> None:
    shown = [repr(KEY), str(KEY), f"{KEY}", str(vars(KEY)), repr([KEY])]
    try:
        raise RuntimeError("a crash with the key at hand", KEY)
    except RuntimeError as error:
        shown += traceback.TracebackException.from_exception(error, capture_locals=True).format()
    secret = int.from_bytes(SECRET, "big")
    for form in (SECRET.hex(), base64.b64encode(SECRET).decode(), str(secret), repr(SECRET)):
        assert not any(form in text for text in shown)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not to be copied"):
            take(KEY)
