"""Keys from words against the published vectors of BIP-39 and BIP-32, and against another implementation."""

from __future__ import annotations

import pytest
from cosmpy.mnemonic import (
    derive_child_key_from_index,
    derive_child_key_from_mnemonic,
    derive_master_key,
    derive_seed_from_mnemonic,
)
from mnemonic import Mnemonic

from gonka_trainer.chain.mnemonic import GONKA_COIN, KeyPath, derive, key_from_words, new_words
from gonka_trainer.errors import ConfigError

HARD = 1 << 31
WORDS = "abandon " * 11 + "about"
# BIP-32, test vectors 1, 2 and 3: seed, path, private key.
SEED_1 = "000102030405060708090a0b0c0d0e0f"
SEED_2 = (
    "fffcf9f6f3f0edeae7e4e1dedbd8d5d2cfccc9c6c3c0bdbab7b4b1aeaba8a5a2"
    "9f9c999693908d8a8784817e7b7875726f6c696663605d5a5754514e4b484542"
)
BIP32 = [
    (SEED_1, (), "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35"),
    (SEED_1, (0 | HARD,), "edb2e14f9ee77d26dd93b4ecede8d16ed408ce149b6cd80b0715a2d911a0afea"),
    (SEED_1, (0 | HARD, 1), "3c6cb8d0f6a264c91ea8b5030fadaa8e538b020f0a387421a12de9319dc93368"),
    (SEED_1, (0 | HARD, 1, 2 | HARD), "cbce0d719ecf7431d88e6a89fa1483e02e35092af60c042b1df2ff59fa424dca"),
    (SEED_1, (0 | HARD, 1, 2 | HARD, 2), "0f479245fb19a38a1954c5c7c0ebab2f9bdfd96a17563ef28a6a4b1a2a764ef4"),
    (SEED_1, (0 | HARD, 1, 2 | HARD, 2, 10**9), "471b76e389e528d6de6d816857e012c5455051cad6660850e58372a6c3e6e7c8"),
    (SEED_2, (), "4b03d6fc340455b363f51020ad3ecca4f0850280cf436c70c727923f6db46c3e"),
    (SEED_2, (0,), "abe74a98f6c7eabee0428f53798f0ab8aa1bd37873999041703c742f15ac7e1e"),
]


@pytest.mark.parametrize(("seed", "steps", "secret"), BIP32)
def test_bip32_vectors(seed: str, steps: tuple[int, ...], secret: str) -> None:
    assert derive(bytes.fromhex(seed), steps).hex() == secret


def test_a_private_key_with_leading_zeros_keeps_them() -> None:
    """BIP-32's third vector: the parent's 32 bytes are hashed whole."""
    seed = (
        "4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4ac"
        "ba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be"
    )
    assert derive(bytes.fromhex(seed), ()).hex() == "00ddb80b067e0d4993197fe10f2657a844a384589847602d56f0c629c81aae32"
    child = "491f7a2eebc7b57028e0d3faa0acda02e75c33b03c48fb288c41e2ea44e1daef"
    assert derive(bytes.fromhex(seed), (0 | HARD,)).hex() == child


def test_the_seed_is_bip39s() -> None:
    """The first vector of BIP-39's list, whose passphrase is TREZOR."""
    seed = (
        "c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e5349553"
        "1f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04"
    )
    assert Mnemonic.to_seed(WORDS, "TREZOR").hex() == seed
    assert key_from_words(WORDS, "TREZOR").address != key_from_words(WORDS).address


def theirs(words: str, extra: str, path: KeyPath) -> str:
    """cosmpy's derivation, step by step: its reader of paths takes no coin type of four digits."""
    secret, chain = derive_master_key(derive_seed_from_mnemonic(words, extra))
    for step in (44 | HARD, path.coin | HARD, path.account | HARD, 0, path.index):
        secret, chain = derive_child_key_from_index(secret, chain, step)
    return bytes(secret).hex()


@pytest.mark.parametrize("coin", [118, GONKA_COIN])
@pytest.mark.parametrize(("account", "index"), [(0, 0), (0, 5), (3, 0), (2147483647, 2147483647)])
def test_as_another_implementation_derives_it(coin: int, account: int, index: int) -> None:
    path = KeyPath(account, index, coin)
    for words, extra in [(WORDS, ""), (WORDS, "a passphrase"), (new_words(), "")]:
        assert key_from_words(words, extra, path).file_content(None).decode().strip() == theirs(words, extra, path)


def test_as_cosmos_wallets_derive_it() -> None:
    whole = derive_child_key_from_mnemonic(WORDS, "", "m/44'/118'/0'/0/0")
    assert key_from_words(WORDS, "", KeyPath(coin=118)).file_content(None).decode().strip() == bytes(whole).hex()


def test_new_words_are_24_with_a_checksum_and_fresh() -> None:
    first, second = new_words(), new_words()
    assert first != second
    assert len(first.split()) == 24
    assert key_from_words(first).address != key_from_words(second).address


def test_blanks_and_capitals_do_not_matter() -> None:
    assert key_from_words(f"  {WORDS.upper()}\n").address == key_from_words("\n".join(WORDS.split())).address


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("abandon " * 12, "checksum"),
        ("about " + "abandon " * 11, "checksum"),
        ("abandon " * 11, "11 words"),
        ("", "0 words"),
        ("abandon " * 10 + "abandonn about", "word 11 is not"),
        ("abandon " * 25, "25 words"),
    ],
)
def test_slips_are_found_and_no_word_is_shown(words: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        key_from_words(words)
    assert "abandon" not in str(caught.value)


@pytest.mark.parametrize("path", [KeyPath(-1), KeyPath(0, HARD), KeyPath(0, 0, -1)])
def test_paths_out_of_range_are_refused(path: KeyPath) -> None:
    with pytest.raises(ConfigError, match="0 to 2147483647"):
        key_from_words(WORDS, "", path)
