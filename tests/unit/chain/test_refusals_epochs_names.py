from __future__ import annotations

import hashlib

import pytest
from chain_recordings import ADDRESSES, RECORDED, grpc

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.chain import epochs, refusals
from gonka_trainer.chain.address import decode_address
from gonka_trainer.chain.refusals import Cure, Refusal
from gonka_trainer.round.environment import EpochSchedule
from gonka_trainer.round.naming import registry_topic, run_id, topic
from gonka_trainer.text import printable
from gonka_trainer.types import Digest

REFUSALS = {name: Refusal(space, code, log.encode()) for name, space, code, log in RECORDED["refusals"]}
SIMULATIONS = {name: details for name, _, details in RECORDED["simulations"]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("refused/bad_signature", Cure.RETRY),
        ("refused/sequence_too_high", Cure.RESEQUENCE),
        ("refused/sequence_too_low", Cure.RESEQUENCE),
        ("refused/missing_account", Cure.NONE),
        ("refused/memo_257", Cure.NONE),
        ("refused/unknown_type", Cure.NONE),
        ("refused/gas_too_low_for_ante", Cure.MORE_GAS),
        ("refused/fee_over_balance", Cure.NONE),
        ("refused/feegrant_missing", Cure.NONE),
        ("refused/unordered_too_far", Cure.RETRY),
        ("refused/unordered_expired", Cure.RETRY),
        ("included/same_bytes_while_pending", Cure.PENDING),
        ("included/unordered_other_memo_same_timestamp", Cure.USED),
        ("included/execution_fails_insufficient_funds_tx", Cure.NONE),
        ("included/out_of_gas_in_execution_tx", Cure.MORE_GAS),
        ("fees/no_fee", Cure.NONE),
        ("restart/same_unordered_bytes", Cure.USED),
        ("restart/same_ordered_bytes", Cure.RESEQUENCE),
        ("feegrant/over_the_limit", Cure.NONE),
    ],
)
def test_cures_of_recorded_refusals(name: str, expected: Cure) -> None:
    assert refusals.cure(REFUSALS[name]) is expected


@pytest.mark.parametrize(
    ("name", "codespace", "code"),
    [
        ("wrong_sequence", "sdk", 32),
        ("insufficient_funds", "sdk", 5),
        ("memo_257", "sdk", 12),
        ("missing_account", "sdk", 9),
        ("unknown_type", "sdk", 2),
        ("no_signatures_at_all", "", 0),
    ],
)
def test_recorded_simulation_errors_by_their_text(name: str, codespace: str, code: int) -> None:
    found = refusals.from_text(SIMULATIONS[name])
    assert (found.codespace, found.code) == (codespace, code)


def test_simulations_text_agrees_with_the_code_where_both_are_known() -> None:
    known = set(refusals._CURES) | {("sdk", 18)}
    for name, refusal in REFUSALS.items():
        found = refusals.from_text(refusal.log.decode())
        if (refusal.codespace, refusal.code) in known and found.code:
            assert (found.codespace, found.code) == (refusal.codespace, refusal.code), name


def test_the_expected_sequence_is_read() -> None:
    assert refusals.expected_sequence(REFUSALS["refused/sequence_too_low"]) == 5
    assert refusals.expected_sequence(REFUSALS["refused/memo_257"]) is None
    beyond = b"account sequence mismatch, expected 99999999999999999999, got 4: incorrect account sequence"
    assert refusals.expected_sequence(refusals.Refusal("sdk", 32, beyond)) is None, (
        "no account has it: it cannot be sent"
    )


def test_errors_say_what_to_do() -> None:
    error = refusals.as_error(REFUSALS["fees/no_fee"], "gonka1x")
    assert "required: 50000ngonka" in error.what
    assert "chain.gas_price" in error.remedy
    restricted = refusals.as_error(Refusal("restrictions", 1108, b"user-to-user transfers are restricted"), "gonka1x")
    assert "carrier = kv" in restricted.remedy


def test_foreign_text_cannot_write_to_a_terminal() -> None:
    shown = printable(b"a\x1b[2Jb\xff\nc\x00")
    assert shown == "a\\x1b[2Jb\\xff\\nc\\x00"
    assert len(printable("x" * 1000)) < 500


def test_the_schedule_of_a_recorded_answer() -> None:
    answer = inference_pb2.QueryEpochInfoResponse.FromString(grpc("epoch_info_later"))
    assert epochs.schedule(answer) == EpochSchedule(3, 150, 50, 4, 1, 4)  # type: ignore[arg-type]
    first = inference_pb2.QueryEpochInfoResponse.FromString(grpc("epoch_info"))
    assert epochs.schedule(first).index == 0


def test_the_weights_of_a_recorded_answer() -> None:
    answer = inference_pb2.QueryCurrentEpochGroupDataResponse.FromString(grpc("current_epoch_group_data"))
    member = decode_address("gonka1td7qf467fvcxf5w9e4plf7rru44dem26uncvjf", "gonka")
    assert epochs.weights(answer.epoch_group_data.validation_weights, "gonka") == ((member, 1_000_000),)


def test_weights_are_sorted_positive_and_the_first_of_a_name() -> None:
    def weight(address: str, value: int) -> inference_pb2.ValidationWeight:
        return inference_pb2.ValidationWeight(member_address=address.encode(), weight=value)

    a, b, c = ADDRESSES["alice"], ADDRESSES["bob"], ADDRESSES["carol"]
    members = [weight(b, 2), weight("junk", 9), weight(a, 1), weight(c, 0), weight(b, 7), weight(ADDRESSES["dave"], -1)]
    alice, bob = decode_address(a, "gonka"), decode_address(b, "gonka")
    assert epochs.weights(members, "gonka") == tuple(sorted([(alice, 1), (bob, 2)]))


def test_a_recorded_account() -> None:
    answer = node_pb2.QueryAccountResponse.FromString(grpc("present"))
    account = node_pb2.BaseAccount.FromString(answer.account.value)
    assert (account.address, account.account_number, account.sequence) == (ADDRESSES["alice"].encode(), 1, 0)


def test_names_byte_for_byte() -> None:
    manifest = Digest(bytes(range(32)))
    preimage = b"gonka-trainer/run/1" + b"\x00\x00\x00\x07" + b"chain-1" + manifest
    run = hashlib.sha256(preimage).digest()
    assert run_id("chain-1", manifest) == run
    assert topic(Digest(run)) == hashlib.sha256(b"gonka-trainer/topic/1" + run).digest()[:20]
    registry = hashlib.sha256(b"gonka-trainer/registry/1" + b"\x00\x00\x00\x07" + b"chain-1").digest()
    assert registry_topic("chain-1") == hashlib.sha256(b"gonka-trainer/topic/1" + registry).digest()[:20]
    with pytest.raises(ValueError):
        run_id("chain-1", Digest(b"short"))
