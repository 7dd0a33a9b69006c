from __future__ import annotations

import pytest
from cosmpy.aerial.client import LedgerClient
from cosmpy.aerial.config import NetworkConfig
from cosmpy.aerial.wallet import LocalWallet
from cosmpy.crypto.address import Address
from cosmpy.crypto.keypairs import PrivateKey
from devnet_process import Devnet, golden_key, topic_address


@pytest.fixture
def ledger(shared_devnet: Devnet) -> LedgerClient:
    config = NetworkConfig(
        chain_id=shared_devnet.chain_id,
        url=f"grpc+http://{shared_devnet.grpc}",
        fee_minimum_gas_price=0.25,
        fee_denomination="ngonka",
        staking_denomination="ngonka",
    )
    return LedgerClient(config, query_interval_secs=1, query_timeout_secs=30)


def wallet(name: str) -> LocalWallet:
    return LocalWallet(PrivateKey(golden_key(name).secret), prefix="gonka")


def test_a_sent_amount_arrives(ledger: LedgerClient) -> None:
    sender, recipient = wallet("bob"), Address(topic_address("cosmpy"))
    assert str(sender.address()) == golden_key("bob").address()
    before = ledger.query_bank_balance(sender.address())
    sent = ledger.send_tokens(recipient, 7, "ngonka", sender, memo="by cosmpy")
    sent.wait_to_complete()
    assert ledger.query_bank_balance(recipient) == 7
    assert ledger.query_bank_balance(sender.address()) < before - 7
    assert sent.response is not None
    assert sent.response.events["transfer"]["recipient"] == str(recipient)
    assert ledger.query_account(sender.address()).sequence == 1
    assert ledger.query_height() >= sent.response.height
    assert sent.response.hash in ledger.query_block(sent.response.height).tx_hashes


def test_what_a_client_asks_first(ledger: LedgerClient) -> None:
    assert ledger.query_chain_id() == "gonka-devnet"
    assert ledger.query_latest_block().height > 0
    assert [coin.denom for coin in ledger.query_bank_all_balances(wallet("carol").address())] == ["ngonka"]
    assert [validator.tokens for validator in ledger.query_validators()] == [1_000_000]
    assert ledger.query_node_info().app_name == "inference"
    assert ledger.query_consensus_params().params.block.max_gas == -1
