"""The recorded questions asked again: a devnet answers as the real nodes did."""

from __future__ import annotations

from pathlib import Path

import pytest
from devnet_process import devnet
from recorded_replay import Replay, cases

FLAGS = {"gonka": (), "sdk": ("--denom", "stake")}
PREFIX = {"gonka": "gonka", "sdk": "cosmos"}


def plain_sdk(replay: Replay, folder: str) -> None:
    """The order in which the real nodes were asked."""
    for topic in ("chain", "accounts", "heights", "simulate"):
        replay.run(cases(folder, topic))
    replay.run(cases(folder, "refused", last="mode_block"))
    replay.run(cases(folder, "included", last="same_bytes_while_pending"))
    replay.run(cases(folder, "refused", first="sequence_too_low"))
    replay.run(cases(folder, "included", first="sequence_n"))
    replay.run(cases(folder, "get_tx"))
    replay.run(cases(folder, "search", last="double_quotes"))
    replay.run(cases(folder, "blocks"))
    replay.run(cases(folder, "not_utf8"))
    replay.run(cases(folder, "search", first="failed_tx_by_fee_payer", last="by_acc_seq"))
    replay.run(cases(folder, "rpc"))


def warm_keys(replay: Replay, folder: str) -> None:
    """Grants of authority and of fees."""
    replay.run(cases(folder, "authz", last="revoke_nothing_tx"))
    replay.run(cases(folder, "not_utf8_logs"))
    replay.run(cases(folder, "authz", first="search_by_recipient_finds_exec"))
    replay.run(cases(folder, "feegrant"))


@pytest.mark.parametrize("folder", ["gonka", pytest.param("sdk", marks=pytest.mark.slow)])
def test_transactions_blocks_and_searches(folder: str, tmp_path: Path) -> None:
    with devnet(tmp_path, *FLAGS[folder], prefix=PREFIX[folder]) as net:
        replay = Replay(net, folder)
        plain_sdk(replay, folder)
    assert not replay.differences, "\n".join(replay.differences)
    assert replay.asked > 160


@pytest.mark.parametrize("folder", ["gonka", pytest.param("sdk", marks=pytest.mark.slow)])
def test_warm_keys(folder: str, tmp_path: Path) -> None:
    with devnet(tmp_path, *FLAGS[folder], prefix=PREFIX[folder]) as net:
        replay = Replay(net, folder)
        warm_keys(replay, folder)
    assert not replay.differences, "\n".join(replay.differences)
    assert replay.asked > 50


def test_fees(tmp_path: Path) -> None:
    with devnet(tmp_path, "--min-gas-price", "0.25ngonka") as net:
        replay = Replay(net, "gonka")
        replay.run(cases("gonka", "fees"))
    assert not replay.differences, "\n".join(replay.differences)
    assert replay.asked > 15
