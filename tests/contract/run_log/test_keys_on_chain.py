"""What keys have granted to each other, and records that were signed without network, on a real chain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cosmpy.protos.cosmos.authz.v1beta1.authz_pb2 import GenericAuthorization, Grant
from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgGrant
from google.protobuf.any_pb2 import Any as WireAny
from google.protobuf.timestamp_pb2 import Timestamp
from run_log_world import CHAIN_ID, Devnet, fee_grant, fee_revocation, key, put, sender, text

from gonka_trainer.app.accepted import Accepted, accept
from gonka_trainer.app.key_change import Change, change_account
from gonka_trainer.app.key_delegation import Slip, Terms, broadcast, read_slip, sign_record, write_slip
from gonka_trainer.app.key_grants import Finding, find_grants, judge_allowance, judge_authorizations
from gonka_trainer.app.reading import RunReader
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.grants import Allowance, Authorization
from gonka_trainer.chain.keyfiles import write_secret
from gonka_trainer.chain.keys import describe_key
from gonka_trainer.chain.sources import announce_on_kv
from gonka_trainer.chain.transactions import KV_TYPE, Fee, Message
from gonka_trainer.config import ChainConfig, Config, ExchangeConfig, KeyConfig, WorkerConfig
from gonka_trainer.errors import ChainError, ConfigError
from gonka_trainer.manifest import render_manifest
from gonka_trainer.round.membership import Membership
from gonka_trainer.round.records import Announce, Delegate
from gonka_trainer.types import Height
from tests.e2e.harness import WINDOWS, toy_manifest
from tests.support.tiny_run import text as corpus

NOW = 1_700_000_000 * 10**9
DAY = 86400 * 10**9
KV = KV_TYPE.decode()


async def a_run(chain: ChainClient, folder: Path, carrier: str, seed: str) -> Accepted:
    """A run that no other test has; announced where it needs a task."""
    data = folder / "corpus.txt"
    data.write_bytes(corpus())
    stage: Any = SimpleNamespace(
        chain=SimpleNamespace(chain_id=CHAIN_ID), hosts=[SimpleNamespace(address=text(n)) for n in ("alice", "bob")]
    )
    height = max(1, (await chain.info()).height)
    document = render_manifest(toy_manifest(stage, height, data, carrier, 3, WINDOWS, 2, name=seed))
    return accept(document, "manifest.json")


async def terms(chain: ChainClient, name: str, **changes: Any) -> Terms:
    account = await chain.tx.account(key(name).address)
    values = Terms("gonka", account.number, account.sequence, 0, Fee(300_000, 0, "ngonka"))
    return replace(values, **changes)


async def members(chain: ChainClient, run: Accepted) -> Membership:
    reader = RunReader(chain, run, 0.05)
    async for _ in reader.to_tip():
        pass
    return reader.state.membership


@pytest.mark.parametrize("carrier", ["memo", "kv"])
async def test_a_record_signed_without_network_counts_when_it_is_sent(
    chain: ChainClient, tmp_path: Path, carrier: str
) -> None:
    run = await a_run(chain, tmp_path, carrier, f"offline {carrier}")
    task = 0
    if carrier == "kv":
        task, _ = await announce_on_kv(chain, sender(chain, "alice", tmp_path), Announce(run.hash, b""))
    record = Delegate(key("warm").address, (await chain.info()).height)
    slip = sign_record(key("bob"), run, record, await terms(chain, "bob", task_id=task))
    write_slip(tmp_path / "slip", slip)
    assert read_slip(tmp_path / "slip") == slip
    found = await broadcast(chain, read_slip(tmp_path / "slip"), 30, 0.05)
    standing = (await members(chain, run)).standing(key("bob").address)
    assert standing.delegate == key("warm").address
    assert standing.delegated.height == found.height
    with pytest.raises(ChainError, match=rf"in block {found.height} already|sequence \d+ of .* is used"):
        await broadcast(chain, slip, 30, 0.05)


async def test_what_went_wrong_is_told_apart(chain: ChainClient, tmp_path: Path) -> None:
    run = await a_run(chain, tmp_path, "memo", "refused")
    info = await chain.info()

    async def slip(who: str = "carol", **changes: Any) -> Slip:
        record = Delegate(key("warm").address, Height(info.height))
        return sign_record(key(who), run, record, await terms(chain, "carol", **changes))

    async def error_of(made: Slip) -> str:
        with pytest.raises(ChainError) as caught:
            await broadcast(chain, made, 30, 0.05)
        assert caught.value.remedy
        return str(caught.value)

    account = await chain.tx.account(key("carol").address)
    assert "account number" in await error_of(await slip(account_number=account.number + 100))
    assert f"at sequence {account.sequence}" in await error_of(await slip(sequence=account.sequence + 7))
    assert "good until block 1," in await error_of(await slip(timeout_height=1))
    assert "other-1" in await error_of(replace(await slip(), chain_id="other-1"))
    assert "not on chain" in await error_of(await slip("nobody"))
    too_little = await slip(fee=Fee(1000, 0, "ngonka"))
    assert "--gas" in await error_of(too_little)
    # Sent all the same, by another way: the sequence is used.
    good = await slip()
    await broadcast(chain, good, 30, 0.05)
    late = await slip(sequence=account.sequence, fee=Fee(300_001, 0, "ngonka"))
    assert f"sequence {account.sequence} of {text('carol')} is used" in await error_of(late)


def test_a_file_that_is_no_slip_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"[]", b"{}", b'{"format": "gonka-trainer-transaction/1"}', b"{" * 3000, b"\xff"):
        (tmp_path / "slip").write_bytes(content)
        with pytest.raises(ConfigError, match="no signed transaction"):
            read_slip(tmp_path / "slip")
    with pytest.raises(ConfigError, match="No such file"):
        read_slip(tmp_path / "none")


def settings(net: Devnet, participant: str, **changes: Any) -> Config:
    chain = ChainConfig(net.grpc, f"http://{net.rpc}", CHAIN_ID, **changes.pop("chain", {}))
    folder = changes.pop("data_dir", "data")
    keys = KeyConfig(**{"account_file": "account.key", "participant": participant, **changes})
    return Config(folder, chain, keys, ExchangeConfig("127.0.0.1:0", "127.0.0.1:0"), WorkerConfig("corpus"))


def missing(findings: list[Finding]) -> list[Finding]:
    return [found for found in findings if not found.good]


def authorization(grantee: str, kind: str, ends: int) -> Message:
    """Alice lets the grantee send messages of this kind in her name, in cosmpy's types."""
    generic = GenericAuthorization(msg=kind).SerializeToString()
    value = WireAny(type_url="/cosmos.authz.v1beta1.GenericAuthorization", value=generic)
    grant = Grant(authorization=value, expiration=Timestamp(seconds=ends))
    message = MsgGrant(granter=text("alice"), grantee=grantee, grant=grant)
    return Message(b"/cosmos.authz.v1beta1.MsgGrant", message.SerializeToString())


async def test_a_warm_key_lacks_the_grant_until_it_is_given(chain: ChainClient, shared_net: Devnet) -> None:
    config = settings(shared_net, text("alice"), speaks_by="authz")
    lacks = missing(await find_grants(chain, config, key("bob").address, {}))
    assert len(lacks) == 1
    assert "not granted" in lacks[0].what
    command = lacks[0].command.split()
    assert command[:6] == ["inferenced", "tx", "authz", "grant", text("bob"), "generic"]
    flags = dict(zip(command[6::2], command[7::2], strict=True))
    assert flags["--msg-type"] == KV
    assert flags["--from"] == text("alice")
    assert flags["--chain-id"] == CHAIN_ID
    ends = int(flags["--expiration"])
    assert 364 < (ends - (await chain.info()).time_ns / 10**9) / 86400 < 366

    await put(chain, "alice", [authorization(text("bob"), flags["--msg-type"], ends)])
    findings = await find_grants(chain, config, key("bob").address, {})
    assert missing(findings) == []
    assert any("GenericAuthorization, until" in found.what for found in findings)


async def test_fees_and_accounts_are_looked_up(chain: ChainClient, shared_net: Devnet) -> None:
    config = settings(shared_net, text("alice"), chain={"fee_granter": text("carol"), "gas_price": "0.25"})
    lacks = missing(await find_grants(chain, config, key("bob").address, {}))
    assert ["no allowance" in found.what for found in lacks] == [True]
    assert f"tx feegrant grant {text('carol')} {text('bob')} --spend-limit" in lacks[0].command
    assert f'--allowed-messages "{KV}"' in lacks[0].command
    assert "--gas-prices 0.25ngonka" in lacks[0].command
    await put(chain, "carol", [fee_grant("carol", "bob")])
    findings = await find_grants(chain, config, key("bob").address, {})
    assert missing(findings) == []
    assert any("BasicAllowance, no limit, without end" in found.what for found in findings)
    await put(chain, "carol", [fee_revocation("carol", "bob")])

    poor = missing(await find_grants(chain, settings(shared_net, text("alice")), key("nobody").address, {}))
    assert "not on chain yet" in poor[0].what
    assert f"tx bank send {text('alice')} {text('nobody')}" in poor[0].command


async def test_a_delegate_record_is_looked_up_in_the_run(
    chain: ChainClient, shared_net: Devnet, tmp_path: Path
) -> None:
    run = await a_run(chain, tmp_path, "memo", "delegates")
    config = settings(shared_net, text("alice"))
    lacks = missing(await find_grants(chain, config, key("bob").address, {"run.json": run}))
    assert lacks[0].command.startswith(f"gonka-trainer keys delegate run.json {text('bob')} --key COLD.key")
    record = Delegate(key("bob").address, (await chain.info()).height)
    await broadcast(chain, sign_record(key("alice"), run, record, await terms(chain, "alice")), 30, 0.05)
    assert missing(await find_grants(chain, config, key("bob").address, {"run.json": run})) == []


async def test_a_key_is_changed_only_when_the_new_one_has_what_it_needs(
    chain: ChainClient, shared_net: Devnet, tmp_path: Path
) -> None:
    """With grants: the command says what is missing, keeps its draft, and goes on with it when given again."""
    path = tmp_path / "account.key"
    write_secret(path, key("bob").file_content(None))
    config = settings(shared_net, text("alice"), speaks_by="authz", account_file=str(path), data_dir=str(tmp_path))
    said: list[str] = []
    change = Change(config, key("bob"), None, lambda: b"", 0, (), said.append)
    with pytest.raises(ChainError, match="--fund AMOUNT"):
        await change_account(change)
    funded = replace(change, fund=5000)
    with pytest.raises(ChainError, match="not granted") as caught:
        await change_account(funded)
    draft = describe_key(tmp_path / "account.key.next.draft")[0]
    new = encode_address(draft.address, "gonka")
    assert f"inferenced tx authz grant {new} generic --msg-type {KV}" in caught.value.remedy
    assert describe_key(path)[0].address == key("bob").address
    assert await chain.tx.balance(draft.address, "ngonka") == 5000
    ends = int((await chain.info()).time_ns // 10**9) + 86400
    await put(chain, "alice", [authorization(new, KV, ends)])
    await change_account(funded)
    assert await chain.tx.balance(draft.address, "ngonka") == 5000
    assert describe_key(path)[0] == draft
    assert describe_key(tmp_path / f"account.key.former-{text('bob')}")[0].address == key("bob").address
    assert "start the daemon again" in said[-1]


async def test_changes_that_cannot_be_made_are_refused_before_anything_is_done(
    shared_net: Devnet, tmp_path: Path
) -> None:
    path = tmp_path / "account.key"
    write_secret(path, key("bob").file_content(None))

    async def refusal(participant: str, **changes: Any) -> str:
        config = settings(shared_net, participant, data_dir=str(tmp_path), **{"account_file": str(path), **changes})
        with pytest.raises(ConfigError) as caught:
            await change_account(Change(config, key("bob"), key("bob"), lambda: b"", 0, (SimpleNamespace(),), print))  # type: ignore[arg-type]
        return str(caught.value)

    assert f'participant = "{text("bob")}"' in await refusal("")
    assert f"is {text('alice')}'s to sign" in await refusal(text("alice"))
    assert "systemd credential" in await refusal(text("bob"), account_file="credential:key")
    assert [each.name for each in tmp_path.iterdir()] == ["account.key"]


@pytest.mark.parametrize(
    ("found", "good", "says"),
    [
        (None, False, "no allowance"),
        (Allowance("BasicAllowance", None, None, None), True, "no limit, without end"),
        (Allowance("BasicAllowance", {"ngonka": 99}, None, None), False, "99 ngonka left"),
        (Allowance("BasicAllowance", {"other": 10**9}, None, None), False, "0 ngonka left"),
        (Allowance("BasicAllowance", {"ngonka": 100}, None, NOW + 100 * DAY), True, "until 2024-02-22"),
        (Allowance("BasicAllowance", None, None, NOW + DAY), True, "renew it"),
        (Allowance("BasicAllowance", None, None, NOW), False, "ended"),
        (Allowance("BasicAllowance", None, frozenset({KV}), None), True, "no limit"),
        (Allowance("BasicAllowance", None, frozenset({"/other"}), None), False, f"other messages than {KV}"),
    ],
)
def test_what_an_allowance_is_worth(found: Allowance | None, good: bool, says: str) -> None:
    verdict, what = judge_allowance(found, KV, NOW, "ngonka", 100)
    assert verdict is good
    assert says in what


@pytest.mark.parametrize(
    ("found", "good", "says"),
    [
        ([], False, "not granted"),
        ([Authorization("GenericAuthorization", KV, None, False)], True, "without end"),
        ([Authorization("GenericAuthorization", KV, NOW, False)], False, "ended"),
        ([Authorization("GenericAuthorization", KV, NOW + 1, False)], True, "renew it"),
        ([Authorization("SomeAuthorization", KV, None, True)], False, "not granted"),
        ([Authorization("GenericAuthorization", "/other", None, False)], False, "besides: /other"),
    ],
)
def test_what_authorizations_are_worth(found: list[Authorization], good: bool, says: str) -> None:
    verdict, what = judge_authorizations(found, KV, NOW)
    assert verdict is good
    assert says in what
