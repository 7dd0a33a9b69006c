from __future__ import annotations

import copy
import hashlib
import pickle
from pathlib import Path

import pytest
from bech32 import bech32_encode, convertbits
from chain_recordings import ADDRESSES, RECORDED, key
from cosmpy.aerial.tx import SigningCfg, Transaction, TxFee
from cosmpy.crypto.address import Address as CosmpyAddress
from cosmpy.crypto.keypairs import PrivateKey, PublicKey
from cosmpy.protos.cosmos.bank.v1beta1.tx_pb2 import MsgSend
from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import Coin
from cosmpy.protos.cosmos.tx.v1beta1.tx_pb2 import SignDoc, Tx
from hypothesis import given, settings
from hypothesis import strategies as st

from gonka_trainer.chain import keys, transactions
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.ripemd160 import portable, ripemd160
from gonka_trainer.errors import ConfigError, DecodeError
from gonka_trainer.types import Address

HALF_ORDER = keys._ORDER // 2


@pytest.mark.parametrize("name", sorted(RECORDED["keys"]["private"]))
def test_addresses_of_the_recorded_keys(name: str) -> None:
    assert encode_address(key(name).address, "gonka") == ADDRESSES[name]
    assert decode_address(ADDRESSES[name], "gonka") == key(name).address


@given(st.binary(min_size=20, max_size=20), st.sampled_from(["gonka", "cosmos", "g"]))
def test_addresses_as_cosmpy_writes_them(raw: bytes, prefix: str) -> None:
    text = encode_address(Address(raw), prefix)
    assert text == str(CosmpyAddress(raw, prefix))
    assert decode_address(text, prefix) == raw
    assert decode_address(text.encode(), prefix) == raw


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        str.title,
        lambda t: t + " ",
        lambda t: " " + t,
        lambda t: t[:-1],
        lambda t: t + "q",
        lambda t: t[:-1] + ("q" if t[-1] != "q" else "p"),
        lambda t: t.replace("gonka1", "gonka"),
        lambda t: t.replace("gonka1", "gonka11"),
        lambda t: t.replace("gonka", "cosmos"),
        lambda t: t[:10] + "b" + t[11:],
        lambda t: t[:10] + "é" + t[11:],
        lambda t: "",
        lambda t: "gonka1",
    ],
)
def test_other_texts_are_no_address(change: object) -> None:
    with pytest.raises(DecodeError):
        decode_address(change(ADDRESSES["alice"]), "gonka")  # type: ignore[operator]


def test_addresses_of_other_lengths_are_refused() -> None:
    with pytest.raises(DecodeError):
        decode_address(bech32_encode("gonka", convertbits(bytes(32), 8, 5)), "gonka")
    with pytest.raises(ValueError):
        encode_address(Address(bytes(32)), "gonka")
    with pytest.raises(DecodeError):
        decode_address(b"gonka1\xff" + bytes(37), "gonka")


@given(st.binary(max_size=200))
def test_portable_ripemd160(data: bytes) -> None:
    assert portable(data) == ripemd160(data)


def test_ripemd160_of_its_paper() -> None:
    assert portable(b"abc").hex() == "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"
    assert portable(b"a" * 1000).hex() == portable(b"a" * 1000).hex() != portable(b"a" * 1001).hex()


@settings(max_examples=30)
@given(st.integers(1, keys._ORDER - 1), st.binary(max_size=100))
def test_signatures_are_those_of_cosmpy(number: int, message: bytes) -> None:
    secret = number.to_bytes(32, "big")
    mine, theirs = keys.AccountKey.from_bytes(secret), PrivateKey(secret)
    assert mine.public_key == theirs.public_key.public_key_bytes
    signature = mine.sign(message)
    assert signature == mine.sign(message)
    assert signature == theirs.sign(message, deterministic=True)
    assert PublicKey(mine.public_key).verify(message, signature)
    assert int.from_bytes(signature[32:], "big") <= HALF_ORDER


def test_a_signed_transaction_is_cosmpys_bytes() -> None:
    alice = key("alice")
    send = transactions.send_message(ADDRESSES["alice"], ADDRESSES["bob"], 1, "ngonka")
    fee = transactions.Fee(200_000, 50_000, "ngonka")
    signer = transactions.Signer(alice, "gonka-golden", 7)
    mine = transactions.build([send], b"hello", fee, transactions.Ordering(sequence=3), signer)
    theirs = Transaction()
    coin = Coin(denom="ngonka", amount="1")
    theirs.add_message(MsgSend(from_address=ADDRESSES["alice"], to_address=ADDRESSES["bob"], amount=[coin]))
    secret = PrivateKey(bytes.fromhex(RECORDED["keys"]["private"]["alice"]))
    theirs.seal(SigningCfg.direct(secret.public_key, 3), TxFee("50000ngonka", 200_000), memo="hello")
    theirs.sign(_Wallet(secret), "gonka-golden", 7, deterministic=True)  # type: ignore[arg-type]
    theirs.complete()
    assert mine == theirs.tx.SerializeToString()


class _Wallet:
    """What cosmpy's Transaction.sign asks of a signer."""

    def __init__(self, secret: PrivateKey) -> None:
        self._secret = secret

    def sign(self, message: bytes, deterministic: bool = False, canonicalise: bool = True) -> bytes:
        return self._secret.sign(message, deterministic, canonicalise)


def test_an_unordered_transaction_read_by_cosmpy() -> None:
    send = transactions.send_message(ADDRESSES["alice"], ADDRESSES["bob"], 1, "ngonka")
    signer = transactions.Signer(key("alice"), "chain", 5)
    ordering = transactions.Ordering(timeout_ns=1796051361_037509874)
    fee = transactions.Fee(90_000, 0, "ngonka", granter=ADDRESSES["carol"])
    tx = Tx.FromString(transactions.build([send], b"memo", fee, ordering, signer))
    assert tx.body.unordered
    assert tx.body.timeout_timestamp.ToNanoseconds() == 1796051361_037509874
    assert tx.body.memo == "memo"
    info = tx.auth_info.signer_infos[0]
    assert (info.sequence, info.public_key.type_url) == (0, "/cosmos.crypto.secp256k1.PubKey")
    assert (tx.auth_info.fee.granter, len(tx.auth_info.fee.amount)) == (ADDRESSES["carol"], 0)
    document = SignDoc(
        body_bytes=tx.body.SerializeToString(),
        auth_info_bytes=tx.auth_info.SerializeToString(),
        chain_id="chain",
        account_number=5,
    )
    assert PublicKey(key("alice").public_key).verify(document.SerializeToString(), tx.signatures[0])


def test_the_hash_is_the_chains() -> None:
    assert transactions.tx_hash(b"x") == hashlib.sha256(b"x").hexdigest().upper()


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = keys.create_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert keys.load_key(path).address == made.address
    with pytest.raises(ConfigError, match="exists already"):
        keys.create_key(path)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=r"chmod 600"):
        keys.load_key(path)


@pytest.mark.parametrize("content", ["", "00" * 32, "ff" * 32, "zz" * 32, "11" * 31, "11" * 33, "11" * 32 + "\n11\n"])
def test_other_files_are_refused_without_showing_them(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        keys.load_key(path)
    assert content[:8] not in str(caught.value) or not content


def test_a_missing_key_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        keys.load_key(tmp_path / "none")
    with pytest.raises(ConfigError, match="cannot be written"):
        keys.create_key(tmp_path / "none" / "key")


def test_a_key_shows_nothing_and_is_not_copied() -> None:
    alice = key("alice")
    assert RECORDED["keys"]["private"]["alice"] not in f"{alice!r} {alice} {vars(alice)}"
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copying(alice)
    keys.check_curve()
