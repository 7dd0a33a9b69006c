"""Looking transactions up by hash and by query: a hint for our client, and what others rely on."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from cosmpy.protos.cosmos.tx.v1beta1 import service_pb2 as tx_service
from google.protobuf.message import DecodeError
from node_world import TX, Node, account, block_at, code_of, indexed, outcome, put, signed

from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.transactions import send_message, tx_hash

ASC, DESC = tx_service.ORDER_BY_ASC, tx_service.ORDER_BY_DESC


def search(node: Node, query: str, page: int = 0, limit: int = 0, order: int = ASC) -> tx_service.GetTxsEventResponse:
    request = tx_service.GetTxsEventRequest(query=query, page=page, limit=limit, order_by=order)
    return tx_service.GetTxsEventResponse.FromString(node.call(TX + "GetTxsEvent", request))


async def sends(node: Node, chain: ChainClient, topic: str, memos: list[bytes]) -> list[str]:
    """Send with each memo, and wait for the index; the hashes in block order."""
    node.need("index", "sends")
    hashes = []
    for memo in memos:
        message = send_message(node.text(node.key(1)), topic, 1, node.denom)
        pending = await signed(node, chain, node.key(1), [message], memo)
        assert (await chain.tx.broadcast(pending.transaction)).code == 0
        assert (await outcome(node, chain, pending)).result.code == 0
        assert (await indexed(node, chain, pending.transaction)).code == 0
        hashes.append(tx_hash(pending.transaction))
    return hashes


async def test_pages(node: Node, chain: ChainClient) -> None:
    topic = node.topic()
    hashes = await sends(node, chain, topic, [b"one", b"two", b"three"])
    query = f"transfer.recipient='{topic}'"
    assert [each.txhash for each in search(node, query).tx_responses] == hashes
    first, second = search(node, query, 1, 2), search(node, query, 2, 2)
    assert (first.total, second.total) == (3, 3)
    assert [each.txhash for page in (first, second) for each in page.tx_responses] == hashes
    assert [each.txhash for each in search(node, query, 1, 2, DESC).tx_responses] == hashes[:0:-1]
    assert [each.txhash for each in search(node, query, 0, 2).tx_responses] == hashes[:2]
    with pytest.raises(grpc.RpcError) as caught:
        search(node, query, 3, 2)
    assert code_of(caught)[0] is grpc.StatusCode.INTERNAL
    assert "page should be within" in code_of(caught)[1]
    none = search(node, f"transfer.recipient='{node.topic()}'")
    assert (none.total, len(none.tx_responses)) == (0, 0)
    heights = await chain.tx.search_heights(query)
    assert heights == {each.height for each in search(node, query).tx_responses}


async def test_by_sender_and_height(node: Node, chain: ChainClient) -> None:
    topic, own = node.topic(), node.text(node.key(1))
    (digest,) = await sends(node, chain, topic, [b"by sender"])
    height = search(node, f"transfer.recipient='{topic}'").tx_responses[0].height
    both = f"transfer.recipient='{topic}' AND transfer.sender='{own}'"
    assert [each.txhash for each in search(node, both).tx_responses] == [digest]
    assert [each.txhash for each in search(node, f"{both} AND tx.height={height}").tx_responses] == [digest]
    assert not search(node, f"{both} AND tx.height={height + 1}").tx_responses
    assert not search(node, f"transfer.recipient='{topic}' AND message.sender='{own}'").tx_responses
    other = node.text(node.key(0))
    assert not search(node, f"transfer.recipient='{topic}' AND transfer.sender='{other}'").tx_responses


async def test_queries_that_are_none(node: Node) -> None:
    node.need("index")
    for query in ("", "transfer.recipient", "a='b' OR c='d'", "tx.height=x"):
        with pytest.raises(grpc.RpcError) as caught:
            search(node, query)
        assert code_of(caught)[0] is not grpc.StatusCode.UNAVAILABLE


async def test_bytes_that_blind_a_strict_reader(node: Node, chain: ChainClient) -> None:
    """One memo that is no text: the whole page is refused by strict protobuf, and read by our client."""
    topic = node.topic()
    message = send_message(node.text(node.key(1)), topic, 1, node.denom)
    node.need("index", "sends")
    pending = await signed(node, chain, node.key(1), [message], b"\xff\xfe")
    assert (await chain.tx.broadcast(pending.transaction)).code == 0
    included = await outcome(node, chain, pending)
    assert (await indexed(node, chain, pending.transaction)).height == included.height
    with pytest.raises(DecodeError):
        search(node, f"transfer.recipient='{topic}'")
    assert await chain.tx.search_heights(f"transfer.recipient='{topic}'") == {included.height}


async def test_hashes(node: Node, chain: ChainClient) -> None:
    (digest,) = await sends(node, chain, node.topic(), [b"hash"])
    for form in (digest, digest.lower()):
        raw = node.call(TX + "GetTx", tx_service.GetTxRequest(hash=form))
        assert tx_service.GetTxResponse.FromString(raw).tx_response.txhash == digest
    assert await chain.tx.find_transaction("00" * 32) is None
    for form in ("", "zz"):
        with pytest.raises(grpc.RpcError):
            node.call(TX + "GetTx", tx_service.GetTxRequest(hash=form))


async def test_a_failed_one_is_found_by_hash_and_not_by_its_messages(
    node: Node, chain: ChainClient, tmp_path: Path
) -> None:
    node.need("index")
    key, topic = await account(node, chain, tmp_path), node.topic()
    pending = await signed(node, chain, key, [send_message(node.text(key), topic, 10**30, node.denom)])
    assert (await chain.tx.broadcast(pending.transaction)).code == 0
    included = await outcome(node, chain, pending)
    said = await indexed(node, chain, pending.transaction)
    assert (said.code, said.height) == (5, included.height)
    assert not search(node, f"transfer.recipient='{topic}'").tx_responses


async def test_the_index_agrees_with_the_blocks(node: Node, chain: ChainClient) -> None:
    node.need("index")
    own = node.text(node.key(1))
    included = await put(node, chain, node.key(1), [send_message(own, "xyz", 1, node.denom)])
    block = await block_at(node, chain, included.height)
    for raw, result in zip(block.transactions, block.results, strict=True):
        said = await indexed(node, chain, raw)
        assert (said.height, said.code, said.codespace) == (block.height, result.code, result.codespace)
