"""What clients ask of the net's one validator: queries of x/staking, x/consensus and x/distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cosmpy.protos.cosmos.base.v1beta1.coin_pb2 import DecCoin
from cosmpy.protos.cosmos.consensus.v1 import query_pb2 as consensus
from cosmpy.protos.cosmos.crypto.ed25519.keys_pb2 import PubKey
from cosmpy.protos.cosmos.distribution.v1beta1 import query_pb2 as distribution
from cosmpy.protos.cosmos.staking.v1beta1 import query_pb2 as query
from cosmpy.protos.cosmos.staking.v1beta1 import staking_pb2 as types
from google.protobuf.any_pb2 import Any as AnyMessage

from gonka_devnet import bech32, headers
from gonka_devnet.bank import served
from gonka_devnet.module import Context, Message

SERVICE = "/cosmos.staking.v1beta1.Query/"
ONE = 10**18
UNBONDING_SECONDS = 1_814_400
BONDED = 3


class Staking:
    """The module; `key` gives the validator's ed25519 key once there is one."""

    def __init__(self, power: int, key: Callable[[], bytes]) -> None:
        self._power = power
        self._key = key

    @property
    def messages(self) -> Mapping[str, Message]:
        """None: nobody can delegate."""
        return {}

    def _validator(self, context: Context) -> Any:
        key = self._key()
        pub_key = AnyMessage(type_url="/cosmos.crypto.ed25519.PubKey", value=PubKey(key=key).SerializeToString())
        return types.Validator(
            operator_address=bech32.encode(context.prefix + "valoper", bech32.module_account(key.hex())),
            consensus_pubkey=pub_key,
            status=BONDED,
            tokens=str(self._power),
            delegator_shares=str(self._power * ONE),
            description={"moniker": "devnet"},
            min_self_delegation="1",
            commission={"commission_rates": {"rate": "0", "max_rate": "0", "max_change_rate": "0"}},
        )

    def _validators(self, context: Context, request: Any) -> Any:
        wanted = request.status in {"", "BOND_STATUS_BONDED"}
        shown = [self._validator(context)] if wanted else []
        return query.QueryValidatorsResponse(validators=shown, pagination={"total": len(shown)})

    def _params(self, context: Context, _request: Any) -> Any:
        params = types.Params(max_validators=100, max_entries=7, historical_entries=10_000, bond_denom=context.denom)
        params.unbonding_time.seconds = UNBONDING_SECONDS
        params.min_commission_rate = "0"
        return query.QueryParamsResponse(params=params)

    def _pool(self, _context: Context, _request: Any) -> Any:
        return query.QueryPoolResponse(pool={"not_bonded_tokens": "0", "bonded_tokens": str(self._power)})

    @property
    def queries(self) -> Mapping[str, Callable[[Context, bytes], bytes]]:
        """Validators, parameters, and that nobody has delegated."""
        nobody = query.QueryDelegatorDelegationsResponse(pagination={})
        nothing = query.QueryDelegatorUnbondingDelegationsResponse(pagination={})
        return {
            SERVICE + "Validators": served(query.QueryValidatorsRequest, self._validators),
            SERVICE + "Params": served(query.QueryParamsRequest, self._params),
            SERVICE + "Pool": served(query.QueryPoolRequest, self._pool),
            SERVICE + "DelegatorDelegations": served(query.QueryDelegatorDelegationsRequest, lambda _c, _r: nobody),
            SERVICE + "DelegatorUnbondingDelegations": served(
                query.QueryDelegatorUnbondingDelegationsRequest, lambda _c, _r: nothing
            ),
            "/cosmos.consensus.v1.Query/Params": served(consensus.QueryParamsRequest, _consensus_params),
            "/cosmos.distribution.v1beta1.Query/DelegationTotalRewards": served(
                distribution.QueryDelegationTotalRewardsRequest, _no_rewards
            ),
        }

    def genesis(self, context: Context, document: Mapping[str, Any]) -> None:
        """Do nothing."""

    def begin_block(self, context: Context) -> None:
        """Do nothing."""

    def end_block(self, context: Context) -> None:
        """Do nothing."""


def _consensus_params(_context: Context, _request: Any) -> Any:
    return consensus.QueryParamsResponse(
        params={
            "block": {"max_bytes": headers.BLOCK_BYTES, "max_gas": headers.BLOCK_GAS},
            "validator": {"pub_key_types": ["ed25519"]},
            "version": {},
        }
    )


def _no_rewards(context: Context, _request: Any) -> Any:
    return distribution.QueryDelegationTotalRewardsResponse(total=[DecCoin(denom=context.denom, amount="0")])
