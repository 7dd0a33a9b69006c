"""Warm keys: the recorded grants, made through the devnet's authz, and what the query says of them."""

from __future__ import annotations

import base64

import pytest
from gonka_devnet import accounts
from gonka_devnet._pb.inference import inference_pb2 as pb
from gonka_devnet.authz import Authz
from gonka_devnet.inference import build
from gonka_devnet.inference.addresses import address_bytes
from gonka_devnet.module import QueryError
from inference_replay import Chain, expected_of_query, find, messages_of, outcome_of_query

METHOD = "/inference.inference.Query/GranteesByMessageType"
NAMES = ("grantees", "grantees_other_type", "grantees_bad_address", "grantees_no_account")
WARM = b"gonka150aw4gpkyp9n7jww7mdcrcku866tp5lm4uv90r"
KEY = bytes([2, *range(32)])


@pytest.fixture
def chain() -> Chain:
    on = Chain(build("0.2.0"))
    authz = Authz(lambda: on.module.messages)
    for url, value in messages_of(find("grants", "grant_all")):
        authz.messages[url].handle(on.context(1), value)
    return on


@pytest.mark.parametrize("name", NAMES)
def test_grantees_are_as_recorded(chain: Chain, name: str) -> None:
    case = find("grants", name)
    assert outcome_of_query(chain, case, 1) == expected_of_query(case)


def test_nobody_is_granted_anything_before() -> None:
    case = find("grants", "grantees_none")
    assert outcome_of_query(Chain(build("0.2.0")), case, 1) == expected_of_query(case)


def test_key_is_answered_once_it_is_known(chain: Chain) -> None:
    raw = address_bytes(WARM)
    assert raw is not None
    account = accounts.get(chain.context(1), raw)
    assert account is not None
    accounts.set_public_key(account, KEY)
    accounts.put(chain.context(1), raw, account)
    asked = base64.b64decode(find("grants", "grantees")["request_base64"])
    answer = pb.QueryGranteesByMessageTypeResponse.FromString(chain.ask(METHOD, asked))
    assert list(answer.grantees) == [pb.Grantee(address=WARM, pub_key=base64.b64encode(KEY))]


def test_expired_grant_is_left_out(chain: Chain) -> None:
    chain.times_ns[2] = 10**9 * 2**31  # 2038; the grants end in 2027
    chain.height = 2
    asked = base64.b64decode(find("grants", "grantees")["request_base64"])
    assert chain.ask(METHOD, asked) == b""


@pytest.mark.parametrize(
    ("asked", "details"),
    [
        (pb.QueryGranteesByMessageTypeRequest(message_type_url=b"/x"), "granter address cannot be empty"),
        (pb.QueryGranteesByMessageTypeRequest(granter_address=WARM), "message type URL cannot be empty"),
    ],
)
def test_empty_fields_are_refused(chain: Chain, asked: pb.QueryGranteesByMessageTypeRequest, details: str) -> None:
    with pytest.raises(QueryError) as refused:
        chain.ask(METHOD, asked.SerializeToString())
    assert (refused.value.status.name, refused.value.details) == ("INVALID_ARGUMENT", details)
