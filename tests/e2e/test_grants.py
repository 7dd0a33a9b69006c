"""A daemon whose key sends its participant's messages by grant (x/authz): the cold account speaks, nobody delegates."""

from __future__ import annotations

from pathlib import Path

import pytest
from cosmpy.protos.cosmos.authz.v1beta1.authz_pb2 import GenericAuthorization, Grant
from cosmpy.protos.cosmos.authz.v1beta1.tx_pb2 import MsgGrant
from google.protobuf.any_pb2 import Any as WireAny

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.opening import make_sender, open_client
from gonka_trainer.chain.address import decode_address, encode_address
from gonka_trainer.chain.attribution import decode_body
from gonka_trainer.chain.keys import create_key, load_key
from gonka_trainer.chain.transactions import EXEC_TYPE, KV_TYPE, Message
from gonka_trainer.round.records import Delegate
from gonka_trainer.types import Height, sha256
from tests.e2e.harness import CastStage, toy_net

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


async def warm_key(stage: CastStage, _run: Accepted) -> None:
    """Give host-1 another account key, which its own account has granted the records to."""
    host, prefix = stage.hosts[0], stage.chain.prefix
    warm = encode_address(create_key(host.folder / "warm.key").address, prefix)
    kind = GenericAuthorization(msg=KV_TYPE.decode()).SerializeToString()
    granted = Grant(authorization=WireAny(type_url="/cosmos.authz.v1beta1.GenericAuthorization", value=kind))
    message = MsgGrant(granter=host.address, grantee=warm, grant=granted)
    async with open_client(stage.chain) as client:
        cold = make_sender(client, stage.chain, load_key(host.folder / "account.key"), host.folder / "sent")
        grant = Message(b"/cosmos.authz.v1beta1.MsgGrant", message.SerializeToString())
        await cold.deliver(sha256(b"grant"), [grant])
    own = f'account_file = "warm.key"\nparticipant = "{host.address}"\nspeaks_by = "authz"'
    stage.edits[host.name] = {'account_file = "account.key"': own}


async def test_a_host_by_grant_takes_part(tmp_path: Path) -> None:
    async with toy_net(tmp_path, hosts=2, rounds=2, chain_version="0.2.0", before_start=warm_key) as net:
        await net.until_ended()
        await net.assert_same_roots()
        await net.assert_single_words()
        host = net.hosts[0]
        rounds = net.rounds(host)
        assert [host.address in r["included"] and host.address in r["states"] for r in rounds] == [True, True]
        records = await net.records()
        members = {decode_address(each.address, net.stage.chain.prefix) for each in net.hosts}
        assert members <= {placed.author for placed in records}
        assert not [placed for placed in records if isinstance(placed.record, Delegate)]
        async with open_client(net.stage.chain) as client:
            tip = (await client.info()).height
            blocks = [await client.block(Height(height)) for height in range(net.run.manifest.log_height + 1, tip + 1)]
        bodies = [decode_body(raw) for block in blocks for raw in block.transactions]
        kinds = [body.messages[0].type_url for body in bodies if body is not None]
        assert kinds.count(EXEC_TYPE) >= 6, "join, and commit, attest and state of two rounds"
