"""What is believed of a node that is not one's own: a chain with several validators who come and go."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from chain_recordings import rpc
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from gonka_devnet._pb.wire.wire_pb2 import CanonicalVote
from signed_chain import SignedChain, Voter, served

from gonka_trainer.chain import light
from gonka_trainer.chain.client import ChainClient, NodeAddress, TrustedBlock
from gonka_trainer.chain.headers import parse_header
from gonka_trainer.chain.transport import NotYetError
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.types import Digest, Height

FOUR = tuple(Voter(name) for name in "abcd")


def always(voters: Sequence[Voter]) -> Callable[[int], Sequence[Voter]]:
    return lambda _: voters


@asynccontextmanager
async def reader(chain: SignedChain, **settings: Any) -> AsyncIterator[ChainClient]:
    async with served(chain) as url, ChainClient(NodeAddress("127.0.0.1:1", url), verify=True, **settings) as client:
        yield client


async def read(client: ChainClient, heights: Sequence[int]) -> None:
    for height in heights:
        assert (await client.block(Height(height))).height == height


async def refused(chain: SignedChain, heights: Sequence[int], text: str, **settings: Any) -> None:
    async with reader(chain, **settings) as client:
        with pytest.raises(ChainError, match=text) as caught:
            await read(client, heights)
        assert not isinstance(caught.value, ChainUnavailableError)


def test_a_recorded_vote_was_signed_over_these_bytes() -> None:
    said = rpc("status")["validator_info"]
    rows = [{"pub_key": said["pub_key"], "voting_power": said["voting_power"]}]
    validators = light.parse_validators(rows)
    block = rpc("block_two_txs")["block"]
    assert validators.hash == parse_header(block["header"]).validators_hash
    assert validators.members[0].address.hex().upper() == said["address"]
    commit = light.parse_commit(block["last_commit"])
    (vote,) = commit.votes
    assert vote is not None
    key = Ed25519PublicKey.from_public_bytes(validators.members[0].key)
    key.verify(vote.signature, light.vote_bytes("gonka-golden", commit, vote))
    with pytest.raises(InvalidSignature):
        key.verify(vote.signature, light.vote_bytes("gonka-golden2", commit, vote))


@pytest.mark.parametrize("round_", [0, 1, 300])
def test_a_vote_is_encoded_as_cometbft_does(round_: int) -> None:
    row = {"block_id_flag": 2, "timestamp": "2026-11-30T15:08:15.000000007Z", "signature": "AAAA"}
    parts = {"total": 3, "hash": "22" * 32}
    shown = {"height": "1234567", "round": round_, "block_id": {"hash": "11" * 32, "parts": parts}}
    commit = light.parse_commit({**shown, "signatures": [row]})
    vote = CanonicalVote(type=2, height=1234567, round=round_, chain_id="signed-1")
    vote.block_id.hash = bytes([0x11]) * 32
    vote.block_id.part_set_header.total, vote.block_id.part_set_header.hash = 3, bytes([0x22]) * 32
    vote.timestamp.seconds, vote.timestamp.nanos = 1796051295, 7
    assert commit.votes[0] is not None
    expected = vote.SerializeToString()
    assert light.vote_bytes("signed-1", commit, commit.votes[0]) == bytes([len(expected)]) + expected


async def test_blocks_are_read_one_behind() -> None:
    async with reader(SignedChain(always(FOUR), length=12)) as client:
        await read(client, range(1, 12))
        with pytest.raises(NotYetError):
            await client.block(Height(12))


async def test_where_trust_begins_is_said(caplog: pytest.LogCaptureFixture) -> None:
    chain = SignedChain(always(FOUR), length=12)
    async with reader(chain) as client:
        await read(client, range(3, 8))
    assert f"compare 4:{chain.ids[4].hash.hex().upper()} with a source" in caplog.text
    assert caplog.text.count("are taken as") == 1
    caplog.clear()
    async with reader(chain, trusted=TrustedBlock(Height(2), Digest(chain.ids[2].hash))) as client:
        await read(client, range(3, 8))
    assert "are taken as" not in caplog.text


async def test_another_trusted_block() -> None:
    chain = SignedChain(always(FOUR), length=12)
    trusted = TrustedBlock(Height(2), Digest(bytes(32)))
    await refused(chain, [5], "chain.trusted_block says 0000", trusted=trusted)


async def test_two_thirds_are_needed() -> None:
    def with_away(count: int) -> SignedChain:
        return SignedChain(always([Voter(name, signs=i >= count) for i, name in enumerate("abcdefg")]), length=6)

    async with reader(with_away(2)) as client:
        await read(client, range(1, 6))
    await refused(with_away(3), [1], "signed by 40 of 70 of its validators' power")
    two_of_three = [Voter("a"), Voter("b"), Voter("c", signs=False)]
    await refused(SignedChain(always(two_of_three), length=6), [1], "signed by 20 of 30 of its validators' power")


async def test_power_counts_not_heads() -> None:
    one_is_enough = [Voter("a", 70), Voter("b", signs=False), Voter("c", signs=False)]
    async with reader(SignedChain(always(one_is_enough))) as client:
        await read(client, range(1, 6))
    heads = [Voter("a", 70, signs=False), Voter("b"), Voter("c"), Voter("d")]
    await refused(SignedChain(always(heads), length=6), [1], "signed by 30 of 100 of its validators' power")


async def test_a_third_of_the_power_is_not_enough_across_a_gap() -> None:
    def voters(height: int) -> Sequence[Voter]:
        return [Voter("a"), Voter("b"), Voter("c")] if height < 10 else [Voter("a"), Voter("d"), Voter("e")]

    chain = SignedChain(voters, length=40)
    async with reader(chain) as client:
        await read(client, [1, 30])
    assert len([each for each in chain.asked if each.startswith("commit")]) > 2


async def test_a_vote_that_another_cast_does_not_count() -> None:
    class Copied(SignedChain):
        def _signature(self, height: int, place: int, voter: Voter) -> dict[str, Any]:
            return super()._signature(height, 0, FOUR[0])

    await refused(Copied(always(FOUR), length=6), [1], "signature of validator .* over block 2 is wrong")


def changing(height: int) -> Sequence[Voter]:
    """One of four leaves and another comes at every tenth block."""
    first = height // 10
    return [Voter(f"v{n}") for n in range(first, first + 4)]


async def test_validators_who_change_are_followed_from_block_to_block() -> None:
    async with reader(SignedChain(changing, length=60)) as client:
        await read(client, range(1, 60))


async def test_a_gap_is_crossed_by_halves() -> None:
    chain = SignedChain(changing, length=200)
    async with reader(chain) as client:
        await read(client, [1, 2])
        chain.asked.clear()
        await read(client, [190])
    commits = [each for each in chain.asked if each.startswith("commit")]
    assert 3 < len(commits) < 40


async def test_a_gap_with_enough_of_the_same_validators_is_crossed_at_once() -> None:
    chain = SignedChain(changing, length=40)
    async with reader(chain) as client:
        await read(client, [1, 20])
    assert [each for each in chain.asked if each.startswith("commit")] == ["commit 2", "commit 21"]


def usurped(height: int) -> Sequence[Voter]:
    return FOUR if height < 20 else [Voter(f"stranger {n}") for n in range(4)]


class Usurped(SignedChain):
    """From block 20 on strangers sign, whom block 19 does not name."""

    def _header(self, height: int, previous: Any) -> Any:
        message = super()._header(height, previous)
        if height == 19:
            message.next_validators_hash = message.validators_hash
        return message


@pytest.mark.parametrize("heights", [range(1, 25), [1, 30]])
async def test_validators_whom_nobody_named_are_refused(heights: Sequence[int]) -> None:
    text = "has other validators than block 19 names|is signed by other validators than block 19 names"
    await refused(Usurped(usurped, length=40), heights, text)


async def test_a_later_change_of_history_is_refused() -> None:
    honest, forked = SignedChain(always(FOUR), length=12), SignedChain(always(FOUR), length=12, fork=6)
    async with reader(honest) as client:
        await read(client, range(1, 9))
        honest.messages, honest.ids, honest.fork = forked.messages, forked.ids, forked.fork
        with pytest.raises(ChainError, match=r"the chain was reset|does not follow"):
            await read(client, range(9, 12))


async def test_without_signatures_the_hashes_are_checked_still(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    chain = SignedChain(always(FOUR), length=12, methods=("status", "block", "block_results", "header"))
    async with reader(chain) as client:
        await read(client, range(1, 12))
    assert caplog.text.count("checked by their hashes alone") == 1

    class Lying(SignedChain):
        def answer(self, method: str, height: int) -> dict[str, Any]:
            found = super().answer(method, height)
            if method == "block_results" and height == 5:
                found["txs_results"][0]["code"] = 11
            return found

    await refused(Lying(always(FOUR), methods=chain.methods), range(1, 7), "results of block 5 do not hash")


async def test_signatures_that_are_no_longer_given() -> None:
    chain = SignedChain(always(FOUR), length=12)
    async with reader(chain) as client:
        await read(client, range(1, 4))
        chain.methods = ("status", "block", "block_results", "header")
        with pytest.raises(ChainError, match="gave the validators' signatures and no longer does"):
            await read(client, [4])


async def test_a_second_page_of_validators() -> None:
    voters = [Voter(f"many {n}") for n in range(130)]

    class Paged(SignedChain):
        async def respond(self, request: Any) -> Any:
            self.page = int(request.query.get("page", 1))
            return await super().respond(request)

        def _validators(self, height: int) -> dict[str, Any]:
            whole = super()._validators(height)
            first = (self.page - 1) * 100
            return {**whole, "validators": whole["validators"][first : first + 100]}

    async with reader(Paged(always(voters), length=4)) as client:
        await read(client, [1, 2])


async def test_blocks_below_the_trusted_one_must_lead_to_it(caplog: pytest.LogCaptureFixture) -> None:
    honest, forked = SignedChain(always(FOUR), length=12), SignedChain(always(FOUR), length=12, fork=3)
    trusted = TrustedBlock(Height(8), Digest(honest.ids[8].hash))
    async with reader(honest, trusted=trusted) as client:
        await read(client, range(2, 11))
    assert caplog.text.count("blocks before 8, where trust begins") == 1
    async with reader(forked, trusted=trusted) as client:
        with pytest.raises(ChainError, match=r"chain\.trusted_block says"):
            await read(client, range(2, 11))


async def test_a_missing_trusted_block_is_said() -> None:
    chain = SignedChain(always(FOUR), length=12)
    async with reader(chain, trusted=TrustedBlock(Height(40), Digest(bytes(32)))) as client:
        with pytest.raises(NotYetError):
            await client.block(Height(3))


@pytest.mark.parametrize("kept", [("commit",), ("validators",), ()])
async def test_who_names_a_trusted_block_wants_signatures(kept: tuple[str, ...]) -> None:
    """Else a node need only keep them back to have an invented chain believed: nothing would lead to the block."""
    chain = SignedChain(always(FOUR), length=12, methods=("status", "block", "block_results", "header", *kept))
    trusted = TrustedBlock(Height(2), Digest(chain.ids[2].hash))
    await refused(chain, [5], "no (commit|validators).*chain.trusted_block", trusted=trusted)


async def test_a_tip_below_the_trusted_block_is_no_tip() -> None:
    """Blocks below it are checked for themselves: a node could stay there for ever, with a history of its own."""
    chain = SignedChain(always(FOUR), length=12)
    async with reader(chain, trusted=TrustedBlock(Height(12), Digest(chain.ids[12].hash))) as client:
        with pytest.raises(ChainUnavailableError, match=r"can prove block 11, chain\.trusted_block is 12"):
            await client.info()
