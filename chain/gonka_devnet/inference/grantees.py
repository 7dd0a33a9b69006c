"""Who may act for a participant: the warm keys, read from the grants that authz keeps."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from cosmpy.protos.cosmos.authz.v1beta1 import authz_pb2 as authz
from cosmpy.protos.cosmos.authz.v1beta1 import query_pb2 as authz_query

from gonka_devnet import accounts
from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.authorizations import GENERIC
from gonka_devnet.authz import SERVICE, Authz
from gonka_devnet.inference.addresses import address_bytes
from gonka_devnet.inference.errors import internal, invalid_argument
from gonka_devnet.module import AbciError, Context, QueryError


def by_message_type(
    context: Context, request: pb.QueryGranteesByMessageTypeRequest
) -> pb.QueryGranteesByMessageTypeResponse:
    """Answer the accounts to which a granter gave a generic authorization for a message type.

    As on the chain, only the first page (100) of the granter's grants is looked at.
    """
    if not request.granter_address:
        raise invalid_argument("granter address cannot be empty")
    if not request.message_type_url:
        raise invalid_argument("message type URL cannot be empty")
    wanted = request.message_type_url
    found = [address for url, address in _grants(context, request.granter_address) if url == wanted]
    return pb.QueryGranteesByMessageTypeResponse(
        grantees=[pb.Grantee(address=address, pub_key=_key(context, address)) for address in found]
    )


def _grants(context: Context, granter: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield type URL and grantee of each generic grant that is in force."""
    request = authz_query.QueryGranterGrantsRequest(granter=granter.decode("utf-8", "replace"))
    ask = Authz(dict).queries[SERVICE + "GranterGrants"]
    try:
        answer = authz_query.QueryGranterGrantsResponse.FromString(ask(context, request.SerializeToString()))
    except (AbciError, QueryError) as error:
        raise internal("failed to get grants") from error
    for grant in answer.grants:
        if grant.authorization.type_url == GENERIC:
            generic = authz.GenericAuthorization.FromString(grant.authorization.value)
            yield generic.msg.encode(), grant.grantee.encode()


def _key(context: Context, address: bytes) -> bytes:
    """Return the account's public key in base64; empty before its first transaction."""
    account = accounts.get(context, address_bytes(address) or b"")
    key = None if account is None else accounts.public_key(account)
    return base64.b64encode(key) if key else b""
