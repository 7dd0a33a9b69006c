"""The rules of sending that need no node: orderings, what a failure means, results inside MsgExec, settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chain_recordings import ADDRESSES, key
from hypothesis import given
from hypothesis import strategies as st

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, tx_pb2
from gonka_trainer.app.opening import acting_for, make_sender, open_client, open_run_log
from gonka_trainer.chain import refusals, transactions
from gonka_trainer.chain.refusals import Refusal
from gonka_trainer.chain.sequences import Sequences, Style
from gonka_trainer.chain.service import Account
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.errors import ConfigError, DecodeError
from gonka_trainer.ports import NodeInfo
from gonka_trainer.types import Height, sha256
from tests.support.tiny_run import make_run

SECOND = 10**9
MISMATCH = b"account sequence mismatch, expected %d, got %d: incorrect account sequence"


def info(height: int = 100, time_ns: int = 10**18) -> NodeInfo:
    return NodeInfo("chain-1", Height(height), Height(1), time_ns, False, "", False)


class Accounts:
    """The committed state of one account."""

    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        self.asked = 0

    async def __call__(self) -> Account:
        self.asked += 1
        return Account(7, self.sequence)


# -- orderings ---------------------------------------------------------------------------------------------------------


async def test_timestamps_come_from_the_blocks_time_and_none_comes_twice() -> None:
    accounts = Accounts()
    sequences = Sequences(Style(False, 60, 20), accounts, jitter=lambda _: 5)
    given_out = [(await sequences.next(info())).timeout_ns for _ in range(100)]
    assert given_out == [10**18 + 60 * SECOND + 5 + step for step in range(100)]
    assert accounts.asked == 0


async def test_the_jitter_is_below_a_second() -> None:
    asked = []
    await Sequences(Style(False, 60, 20), Accounts(), lambda below: asked.append(below) or 0).next(info())
    assert asked == [SECOND]


async def test_sequences_run_ahead_of_the_committed_one() -> None:
    accounts = Accounts(3)
    sequences = Sequences(Style(True, 60, 20), accounts)
    first = await sequences.next(info())
    assert (first.sequence, first.timeout_height, first.timeout_ns) == (3, 120, 0)
    assert (await sequences.next(info())).sequence == 3, "one that the node did not take uses nothing up"
    sequences.accepted(first)
    assert (await sequences.next(info())).sequence == 4
    accounts.sequence = 9
    assert (await sequences.next(info())).sequence == 9


async def test_the_node_says_which_sequence_it_expects() -> None:
    sequences = Sequences(Style(True, 60, 20), Accounts(3))
    sequences.mismatched(Refusal("sdk", 32, MISMATCH % (8, 3)))
    taken = await sequences.next(info())
    assert taken.sequence == 8
    sequences.accepted(taken)
    assert (await sequences.next(info())).sequence == 9
    sequences.mismatched(Refusal("sdk", 32, b"it does not say"))
    assert (await sequences.next(info())).sequence == 3


async def test_the_number_is_asked_once_until_it_is_forgotten() -> None:
    accounts = Accounts()
    sequences = Sequences(Style(False, 60, 20), accounts)
    assert [await sequences.number(), await sequences.number()] == [7, 7]
    assert accounts.asked == 1
    sequences.forget()
    await asyncio.gather(sequences.number())
    assert accounts.asked == 2


# -- what failures mean ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codespace", "code", "log", "expected"),
    [
        ("sdk", 5, b"failed to execute message; message index: 0: insufficient funds", True),
        ("authz", 2, b"failed to execute message; message index: 0: authorization not found", True),
        ("sdk", 11, b"out of gas in location: ReadFlat; gasWanted: 1, gasUsed: 2: out of gas", True),
        ("sdk", 18, b"failed to add unordered nonce: x has already used timeout 1: invalid request", True),
        ("sdk", 32, MISMATCH % (8, 3), True),
        ("sdk", 32, MISMATCH % (3, 8), False),
        ("sdk", 5, b"spendable balance 1ngonka is smaller than 5ngonka: insufficient funds", False),
        ("sdk", 38, b"\xff does not allow to pay fees for \xfe: fee-grant not found: not found", False),
        ("feegrant", 2, b"\xff does not allow to pay fees for \xfe: basic allowance: fee limit exceeded", False),
    ],
)
def test_whose_bytes_can_never_succeed_any_more(codespace: str, code: int, log: bytes, expected: bool) -> None:
    assert refusals.spent(Refusal(codespace, code, log)) is expected


def test_every_known_refusal_says_what_to_do() -> None:
    for (codespace, code), (_, remedy) in refusals._CURES.items():
        assert remedy, (codespace, code)
    assert "node's log" in refusals.as_error(Refusal("wasm", 5, b""), "gonka1x").remedy


def test_the_price_that_would_have_been_enough() -> None:
    low = Refusal("sdk", 13, b"insufficient fees; got: 1ngonka required: 50000ngonka: insufficient fee")
    assert refusals.as_error(low, "x", 200_000).remedy == "raise chain.gas_price to at least 0.25"
    assert refusals.as_error(low, "x", 30_000).remedy == "raise chain.gas_price to at least 1.666667"
    assert refusals.as_error(low, "x").remedy == "raise chain.gas_price to what the node requires"


def test_texts_are_for_people() -> None:
    raw = b"J\xff\n\x1b[2J does not allow to pay fees for \x00\xfe: fee-grant not found: not found"
    shown = refusals.as_error(Refusal("sdk", 38, raw), "gonka1x").what
    assert shown.endswith("(sdk 38): the fee granter does not allow to pay fees for it: fee-grant not found: not found")
    simulated = b"memo too large [cosmos/cosmos-sdk@v0.53.3/x/auth/ante/basic.go:68] with gas used: '2042'"
    assert refusals.as_error(Refusal("sdk", 12, simulated), "gonka1x").what.endswith("(sdk 12): memo too large")


@given(st.binary(max_size=300), st.integers(0, 50))
def test_any_log_is_survived(log: bytes, code: int) -> None:
    refusal = Refusal("sdk", code, log)
    assert refusals.as_error(refusal, "gonka1x", 1000).what.isprintable()
    refusals.cure(refusal)
    refusals.spent(refusal)


# -- results -----------------------------------------------------------------------------------------------------------


def packed(*entries: tuple[bytes, bytes]) -> bytes:
    return tx_pb2.TxMsgData(
        msg_responses=[tx_pb2.Any(type_url=url, value=value) for url, value in entries]
    ).SerializeToString()


def test_responses_inside_and_outside_of_an_execution() -> None:
    created = inference_pb2.MsgCreateTrainingTaskResponse(task=inference_pb2.TrainingTask(id=12)).SerializeToString()
    inside = tx_pb2.MsgExecResponse(results=[created, b""]).SerializeToString()
    executed = b"/cosmos.authz.v1beta1.MsgExecResponse"
    assert transactions.responses(packed((b"/inference.inference.Other", created))) == (created,)
    assert transactions.responses(packed((executed, inside), (b"/x", b"y"))) == (created, b"", b"y")
    assert transactions.responses(b"") == ()
    with pytest.raises(DecodeError):
        transactions.responses(b"\xff")
    with pytest.raises(DecodeError):
        transactions.responses(packed((executed, b"\xff")))


def test_a_fee_without_coins() -> None:
    send = transactions.send_message(ADDRESSES["alice"], ADDRESSES["bob"], 1, "ngonka")
    signer = transactions.Signer(key("alice"), "chain", 5)
    raw = transactions.build(
        [send], b"", transactions.Fee(90_000, 0, "ngonka"), transactions.Ordering(timeout_ns=1), signer
    )
    fee = tx_pb2.AuthInfo.FromString(tx_pb2.TxRaw.FromString(raw).auth_info_bytes).fee
    assert (list(fee.amount), fee.gas_limit, transactions.gas_limit(raw)) == ([], 90_000, 90_000)


# -- settings ----------------------------------------------------------------------------------------------------------


def config(folder: Path, **keys: str) -> Config:
    chain = ChainConfig("127.0.0.1:1", "http://127.0.0.1:1", "chain-1")
    exchange, worker = ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"), WorkerConfig("corpus")
    return Config(str(folder), chain, KeyConfig("key", **keys), exchange, worker)


def test_for_whom_a_key_acts(tmp_path: Path) -> None:
    alice, bob = ADDRESSES["alice"], key("bob")
    by_grant = config(tmp_path, participant=alice, speaks_by="authz")
    assert acting_for(by_grant, bob) == key("alice").address
    assert acting_for(by_grant, key("alice")) is None, "an account needs no grant of its own"
    assert acting_for(config(tmp_path, participant=alice), bob) is None
    assert acting_for(config(tmp_path, speaks_by="authz"), bob) is None


async def test_grants_are_not_for_the_memo_carrier(tmp_path: Path) -> None:
    chain = config(tmp_path).chain
    client = open_client(chain)
    sender = make_sender(client, chain, key("bob"), tmp_path / "sent", key("alice").address)
    assert (sender.author_text, sender.text) == (ADDRESSES["alice"], ADDRESSES["bob"])
    manifest = make_run(tmp_path).manifest
    assert manifest.carrier == "memo"
    with pytest.raises(ConfigError, match="participant's money"):
        await open_run_log(client, sender, manifest, sha256(b"run"))
