"""What is found out about a chain at the start, on chains of every generation and on what is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from devnet_process import Devnet, devnet, golden_key
from reading_proxy import grpc_proxy, reader, rpc_proxy
from typer.testing import CliRunner

from gonka_trainer._pb.gonka_trainer.chain.v1 import inference_pb2, node_pb2
from gonka_trainer.app.discovering import carriers, rows, warnings
from gonka_trainer.chain.address import decode_address
from gonka_trainer.chain.discovery import discover
from gonka_trainer.chain.transport import UnknownAnswerError
from gonka_trainer.cli.commands import app
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.types import Address

ALICE = golden_key("alice")
SIGNER = Address(decode_address(ALICE.address(), "gonka"))


@pytest.fixture(scope="module", params=["0.2.0", "0.2.16"])
def net(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet(tmp_path_factory.mktemp("found") / "home", "--chain-version", request.param) as running:
        running.fault("blocks", make=5)
        yield running


def settings(net: Devnet, **chain: Any) -> Config:
    chain_config = ChainConfig(net.grpc, f"http://{net.rpc}", net.chain_id, **chain)
    return Config("data", chain_config, KeyConfig("key"), ExchangeConfig("h:1", "h:1"), WorkerConfig("corpus"))


async def test_what_a_devnet_says(net: Devnet) -> None:
    async with reader(net, f"http://{net.rpc}") as client:
        found = await discover(client, SIGNER)
    version = found.application.split()[-1]
    assert found.chain_id == net.chain_id
    assert found.comet == "0.38.17"
    assert found.height >= 5
    assert found.earliest_height == 1
    assert found.tx_index is True
    assert found.memo_limit_bytes in {None, 256}
    assert found.block_seconds is not None
    assert found.training_module is (version != "0.2.16")
    assert not found.is_later
    config = settings(net)
    assert carriers(found) == (("memo", "kv") if found.training_module else ("memo",))
    assert rows(config, found, SIGNER)["transaction index"] == "on"
    assert not warnings(config, found)


async def test_faults_are_found(net: Devnet) -> None:
    net.fault("index", on=False)
    net.fault("prune", below=3)
    try:
        async with reader(net, f"http://{net.rpc}") as client:
            found = await discover(client, SIGNER)
    finally:
        net.fault("index", on=True)
        net.fault("prune", below=0)
    assert found.tx_index is False
    assert found.earliest_height == 3
    assert rows(settings(net), found, SIGNER)["blocks kept"] == "from 3 on"


async def with_epoch_info(net: Devnet, change: Callable[[bytes], bytes]) -> None:
    def alter(method: str, answer: bytes) -> bytes:
        return change(answer) if method.endswith("/EpochInfo") else answer

    async with grpc_proxy(net.grpc, alter) as altered, reader(net, f"http://{net.rpc}", grpcs=[altered]) as client:
        await discover(client, SIGNER)


def without_params(answer: bytes) -> bytes:
    found = inference_pb2.QueryEpochInfoResponse.FromString(answer)
    found.ClearField("params")
    return found.SerializeToString()


def of_another_form(answer: bytes) -> bytes:
    found = inference_pb2.QueryEpochInfoResponse.FromString(answer)
    found.params.epoch_params.epoch_length = 1
    found.params.epoch_params.poc_stage_duration = 1000
    return found.SerializeToString()


@pytest.mark.parametrize("change", [without_params, of_another_form, lambda _: b"\xff\xff\xff", lambda _: b""])
async def test_an_unknown_form_is_a_clear_message(net: Devnet, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UnknownAnswerError, match="EpochInfo in a form that is not known") as caught:
        await with_epoch_info(net, change)
    assert "knows Gonka 0.2.0 - 0.2.16" in caught.value.remedy


@pytest.mark.parametrize("missing", ["sync_info", "node_info"])
async def test_a_status_that_lacks_fields(net: Devnet, missing: str) -> None:
    def alter(method: str, _height: int, result: Any) -> Any:
        if method == "status":
            del result[missing]
        return result

    async with rpc_proxy(net.rpc, alter) as proxy, reader(net, proxy.url) as client:
        with pytest.raises(ChainError, match="answers status in a form that is not known") as caught:
            await discover(client, SIGNER)
        assert not isinstance(caught.value, ChainUnavailableError)
        assert "knows Gonka 0.2.0 - 0.2.16" in caught.value.remedy


def write_config(net: Devnet, folder: Path) -> Path:
    key = folder / "key"
    key.write_text(ALICE.secret.hex())
    key.chmod(0o600)
    path = folder / "host.toml"
    path.write_text(
        f'data_dir = "data"\n[chain]\ngrpc = "{net.grpc}"\nrpc = "http://{net.rpc}"\nchain_id = "{net.chain_id}"\n'
        '[keys]\naccount_file = "key"\n[exchange]\nbind = "127.0.0.1:1"\nadvertise = "127.0.0.1:1"\n'
        '[worker]\ndata = "corpus"\n'
    )
    return path


def test_the_command_shows_it(net: Devnet, tmp_path: Path) -> None:
    path = write_config(net, tmp_path)
    shown = CliRunner().invoke(app, ["chain", "--config", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "minimum gas price" in shown.output
    found = CliRunner().invoke(app, ["chain", "--config", str(path), "--json"])
    said = json.loads(found.output)
    assert said["chain_id"] == net.chain_id
    assert said["signer"] == ALICE.address()
    assert said["nodes"] == [{"name": f"http://{net.rpc}", "standing": "one's own, in use"}]


async def test_a_fee_that_is_too_low_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    with devnet(tmp_path / "home", "--min-gas-price", "0.25ngonka") as running:
        async with reader(running, f"http://{running.rpc}") as client:
            found = await discover(client, SIGNER)
        assert any('set gas_price = "0.25"' in text for text in warnings(settings(running), found))
        assert not warnings(settings(running, gas_price="0.3"), found)


async def test_the_allow_lists_say_who_may(tmp_path: Path) -> None:
    bob = golden_key("bob").address()
    with devnet(tmp_path / "home", "--chain-version", "0.2.11", "--allow-training", bob) as running:
        async with reader(running, f"http://{running.rpc}") as client:
            found = [await discover(client, Address(decode_address(who, "gonka"))) for who in (bob, ALICE.address())]
    assert [(each.may_execute, each.may_start) for each in found] == [(True, True), (False, False)]
    assert [carriers(each) for each in found] == [("memo", "kv"), ("memo",)]
    assert any("not on the chain's allow list" in text for text in warnings(settings(running), found[1]))


async def test_restricted_sends_leave_no_memo_carrier(net: Devnet) -> None:
    status = "/inference.restrictions.Query/TransferRestrictionStatus"
    for answer, memo in (
        (node_pb2.QueryTransferRestrictionStatusResponse(is_active=True, restriction_end_block=1_000_000), False),
        (node_pb2.QueryTransferRestrictionStatusResponse(restriction_end_block=3), True),
    ):
        answers = {status: answer.SerializeToString()}
        async with (
            grpc_proxy(net.grpc, **answers) as altered,
            reader(net, f"http://{net.rpc}", grpcs=[altered]) as client,
        ):
            found = await discover(client, SIGNER)
        assert found.sends_restricted is not memo
        assert ("memo" in carriers(found)) is memo
        assert any("until block 1000000" in text for text in warnings(settings(net), found)) is not memo


async def test_a_height_that_goes_back_while_it_is_found_out(net: Devnet) -> None:
    asked: list[str] = []

    def back(method: str, _height: int, result: Any) -> Any:
        asked.append(method)
        if method == "status" and asked.count("status") > 1:
            result["sync_info"]["latest_block_height"] = "1"
        return result

    async with rpc_proxy(net.rpc, back) as proxy, reader(net, proxy.url) as client:
        assert (await discover(client, SIGNER)).block_seconds is None
