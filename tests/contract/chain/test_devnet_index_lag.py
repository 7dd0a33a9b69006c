from __future__ import annotations

from pathlib import Path

from devnet_process import TX, Devnet, devnet, eventually, golden_key, topic_address
from gonka_devnet._pb.wire import wire_pb2 as wire

ALICE, CAROL = golden_key("alice"), golden_key("carol")
FEEGRANT = "/cosmos.feegrant.v1beta1."
TOPIC = topic_address("lag")


def found_in_block(net: Devnet, height: int) -> int:
    query = wire.GetTxsEventRequest(query=f"tx.height={height}".encode())
    return wire.GetTxsEventResponse.FromString(net.call(TX + "GetTxsEvent", query)).total


def test_block_and_results_are_there_before_the_index(tmp_path: Path) -> None:
    with devnet(tmp_path, "--index-lag-seconds", "3") as net:
        start = net.next_block()
        sent = [net.send(ALICE, TOPIC, sequence=place) for place in range(5)]
        for raw in sent:
            assert net.broadcast(raw).code == 0

        def block_of_first() -> int | None:
            for height in range(start, net.height() + 1):
                if net.get(f"block?height={height}")["result"]["block"]["data"]["txs"]:
                    return height
            return None

        height = eventually(block_of_first)
        in_block = len(net.get(f"block?height={height}")["result"]["block"]["data"]["txs"])
        results = net.get(f"block_results?height={height}")["result"]["txs_results"]
        assert [result["code"] for result in results] == [0] * in_block
        assert found_in_block(net, height) == 0
        assert net.find(sent[0]) is None
        # all of the block's transactions come at once
        assert eventually(lambda: found_in_block(net, height) or None) == in_block
        assert eventually(lambda: net.find(sent[0])).height == height


def allow(net: Devnet) -> bytes:
    allowance = wire.AnyValue(type_url=b"/cosmos.feegrant.v1beta1.BasicAllowance")
    grant = wire.MsgGrantAllowance(
        granter=ALICE.address().encode(), grantee=CAROL.address().encode(), allowance=allowance
    )
    return net.sign(ALICE, [(FEEGRANT + "MsgGrantAllowance", grant.SerializeToString())])


def paid_by_alice(net: Devnet) -> bytes:
    """Carol's send whose fee Alice pays."""
    import time

    raw = net.send(CAROL, TOPIC, timeout_ns=time.time_ns() + 300 * 10**9)
    parts = wire.TxRaw.FromString(raw)
    auth = wire.AuthInfo.FromString(parts.auth_info_bytes)
    auth.fee.granter = ALICE.address().encode()
    auth.fee.amount.add(denom=b"ngonka", amount=b"1000")
    parts.auth_info_bytes = auth.SerializeToString()
    document = wire.SignDoc(
        body_bytes=parts.body_bytes,
        auth_info_bytes=parts.auth_info_bytes,
        chain_id=net.chain_id.encode(),
        account_number=net.account(CAROL.address()).account_number,
    )
    parts.signatures[0] = CAROL.sign(document.SerializeToString())
    return parts.SerializeToString()


def test_index_keeps_the_last_of_the_same_bytes_in_two_blocks(tmp_path: Path) -> None:
    """A transaction that failed before its fee was taken, sent again after a new grant: the index forgets the first."""
    with devnet(tmp_path, "--index-lag-seconds", "0") as net:
        net.included(allow(net))
        names = {"granter": ALICE.address().encode(), "grantee": CAROL.address().encode()}
        revoke = [(FEEGRANT + "MsgRevokeAllowance", wire.MsgRevokeAllowance(**names).SerializeToString())]
        sent = [net.sign(ALICE, revoke), paid_by_alice(net)]
        net.next_block()
        assert [net.broadcast(raw).code for raw in sent] == [0, 0]
        first = eventually(lambda: net.find(sent[1]))
        assert (first.codespace, first.code) == (b"sdk", 38)
        assert net.broadcast(sent[1]).code == 38
        net.included(allow(net))
        assert net.broadcast(sent[1]).code == 0
        second = eventually(lambda: found if (found := net.find(sent[1])).height > first.height else None)
        assert second.code == 0
        query = wire.GetTxsEventRequest(query=f"tx.height={first.height}".encode(), order_by=1)
        listed = wire.GetTxsEventResponse.FromString(net.call(TX + "GetTxsEvent", query)).tx_responses
        assert [(said.height, said.code) for said in listed][-1] == (second.height, 0)
        # the blocks' own results stay what they were
        codes = [result["code"] for result in net.get(f"block_results?height={first.height}")["result"]["txs_results"]]
        assert codes == [0, 38]
