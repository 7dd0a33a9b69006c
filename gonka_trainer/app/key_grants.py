"""What the daemon's key needs on chain to speak and to pay, what of it is there, and the command that grants the rest.

What is needed follows from the settings and the run's carrier:

* an account that exists, with coins for the records (a memo's send moves one smallest unit) and for fees;
* `fee_granter`: a fee allowance for the transactions that the daemon sends, not ended, with something left;
* `speaks_by = authz` on `kv`: the participant's grant of the key-value message to the key, not ended;
* `speaks_by = delegate` with a participant of its own: its delegate record, in each run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.reading import RunReader
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.grants import Allowance, Authorization, allowance, authorizations
from gonka_trainer.chain.transactions import EXEC_TYPE, KV_TYPE, SEND_TYPE
from gonka_trainer.config import Config
from gonka_trainer.errors import ChainError, ChainUnavailableError
from gonka_trainer.types import Address

_NANOSECONDS: Final = 1_000_000_000
_SOON_NS: Final = 14 * 24 * 3600 * _NANOSECONDS
_GRANT_DAYS: Final = 365
_LAST_SECOND: Final = 221_845_392_000  # the year 9000
_RECORDS: Final = 10_000  # what commands here grant at once: some 2,000 rounds
_RECORD_GAS: Final = 150_000  # a rough price for one record, for amounts to suggest
_LOW_RECORDS: Final = 500


@dataclass(frozen=True)
class Finding:
    """One thing that the key needs: whether it is there, in words, and the command that grants it (else "")."""

    good: bool
    what: str
    command: str = ""


@dataclass(frozen=True)
class Asked:
    """Whose key it is, on which chain: addresses as bech32 text, `now_ns` the latest block's time in nanoseconds."""

    config: Config
    key: str
    participant: str
    carrier: str
    chain_id: str
    now_ns: int

    @property
    def by_grant(self) -> bool:
        """Whether the key sends the participant's own messages."""
        return self.config.keys.speaks_by == "authz" and self.key != self.participant

    @property
    def sends(self) -> str:
        """The type of the transactions' messages."""
        if self.by_grant:
            return EXEC_TYPE.decode()
        return (SEND_TYPE if self.carrier == "memo" else KV_TYPE).decode()

    @property
    def record_cost(self) -> int:
        """About what one record costs, in the smallest unit."""
        return int(Decimal(self.config.chain.gas_price) * _RECORD_GAS) + (self.carrier == "memo")

    def line(self, command: str) -> str:
        """Return a whole command line of the chain's program, to be run where the granter's key is."""
        chain = self.config.chain
        chain_id = shlex.quote(self.chain_id)  # a node said it, and a person will paste the line into a shell
        line = f"inferenced tx {command} --chain-id {chain_id} --node {chain.rpc} --gas auto --gas-adjustment 1.4"
        return line + (f" --gas-prices {chain.gas_price}{chain.denom}" if Decimal(chain.gas_price) else "")


async def find_grants(chain: ChainClient, config: Config, key: Address, runs: Mapping[str, Accepted]) -> list[Finding]:
    """Say what the key has and lacks; each run's records are read to the end for its delegate. ChainError as usual.

    `runs` are named by their manifests' files.
    """
    info = await chain.info()
    prefix, named = config.chain.prefix, config.keys.participant
    participant = parse_address(named, prefix, "keys.participant") if named else key
    carriers = [run.manifest.carrier for run in runs.values()] or ["kv" if info.training_module else "memo"]
    texts = encode_address(key, prefix), encode_address(participant, prefix)
    asked = Asked(config, *texts, carriers[0], info.chain_id, info.time_ns)
    findings = await _account(chain, asked, key)
    if config.chain.fee_granter:
        findings.append(await _fees(chain, asked))
    if key == participant:
        findings.append(Finding(True, f"{asked.key} is the participant itself: nobody needs to grant it anything"))
    elif asked.by_grant:
        findings.append(await _authz(chain, asked))
    else:
        findings += [await _delegate(chain, asked, name, run, key, participant) for name, run in runs.items()]
        findings += [] if runs else [Finding(True, "name a run's manifest to have its delegate record looked up")]
    return findings


async def _account(chain: ChainClient, asked: Asked, key: Address) -> list[Finding]:
    chain_config = asked.config.chain
    amount = max(1, asked.record_cost) * _RECORDS
    giver = chain_config.fee_granter or asked.participant
    giver = giver if giver != asked.key else "GIVER"
    send = asked.line(f"bank send {giver} {asked.key} {amount}{chain_config.denom}")
    try:
        await chain.tx.account(key)
    except ChainUnavailableError:
        raise
    except ChainError:
        return [Finding(False, f"account {asked.key} is not on chain yet: its first coins open it", send)]
    held = await chain.tx.balance(key, chain_config.denom)
    paid_by_itself = asked.record_cost if not chain_config.fee_granter else int(asked.carrier == "memo")
    enough = held >= paid_by_itself * _LOW_RECORDS
    what = f"account {asked.key} holds {held} {chain_config.denom}; a record costs about {paid_by_itself}"
    return [Finding(enough, what, "" if enough else send)]


async def _fees(chain: ChainClient, asked: Asked) -> Finding:
    granter, denom = asked.config.chain.fee_granter, asked.config.chain.denom
    found = await allowance(chain.tx, granter, asked.key)
    amount, end = max(1, asked.record_cost) * _RECORDS, _end(asked.now_ns)
    command = asked.line(
        f"feegrant grant {granter} {asked.key} --spend-limit {amount}{denom} --expiration {end:%Y-%m-%dT%H:%M:%SZ}"
        f' --allowed-messages "{asked.sends}"'
    )
    if found is not None:  # a second grant beside one that stands is refused
        command = asked.line(f"feegrant revoke {granter} {asked.key}") + "\n" + command
    good, what = judge_allowance(found, asked.sends, asked.now_ns, denom, asked.record_cost)
    return Finding(good, f"fees paid by {granter}: {what}", "" if good else command)


def judge_allowance(found: Allowance | None, sends: str, now_ns: int, denom: str, cost: int) -> tuple[bool, str]:
    """Return whether a fee allowance will do for messages of the type `sends`, and what is to be said of it."""
    if found is None:
        return False, "no allowance"
    if found.expires_ns is not None and found.expires_ns <= now_ns:
        return False, f"{found.kind}, ended {_day(found.expires_ns)}"
    if found.messages is not None and sends not in found.messages:
        return False, f"{found.kind} for other messages than {sends}"
    left = None if found.limits is None else found.limits.get(denom, 0)
    what = f"{found.kind}, {'no limit' if left is None else f'{left} {denom} left'}, {_until(found.expires_ns, now_ns)}"
    return left is None or left >= cost, what


async def _authz(chain: ChainClient, asked: Asked) -> Finding:
    needed = KV_TYPE.decode()
    found = await authorizations(chain.tx, asked.participant, asked.key)
    command = asked.line(
        f"authz grant {asked.key} generic --msg-type {needed} --expiration {int(_end(asked.now_ns).timestamp())}"
        f" --from {asked.participant}"
    )
    good, what = judge_authorizations(found, needed, asked.now_ns)
    return Finding(good, f"{asked.participant} grants {needed}: {what}", "" if good else command)


def judge_authorizations(found: list[Authorization], needed: str, now_ns: int) -> tuple[bool, str]:
    """Return whether the grants allow every message of the type `needed`, and what is to be said of them."""
    matching = [each for each in found if each.message == needed and not each.limited]
    alive = [each for each in matching if each.expires_ns is None or each.expires_ns > now_ns]
    others = sorted({each.message or each.kind for each in found if each.message != needed})
    rest = f"; besides: {', '.join(others)}" if others else ""
    if alive:
        return True, f"{alive[0].kind}, {_until(alive[0].expires_ns, now_ns)}{rest}"
    if matching and matching[0].expires_ns is not None:
        return False, f"{matching[0].kind}, ended {_day(matching[0].expires_ns)}{rest}"
    return False, f"not granted{rest}"


async def _delegate(
    chain: ChainClient, asked: Asked, name: str, run: Accepted, key: Address, participant: Address
) -> Finding:
    reader = RunReader(chain, run)
    async for _ in reader.to_tip():
        pass
    standing, config = reader.state.membership.standing(participant), asked.config.chain
    if standing.delegate == key:
        speaks = "and it speaks" if standing.speaker == key else "and its join is to come"
        return Finding(True, f"run {run.manifest.name}: {asked.participant} delegates to {asked.key}, {speaks}")
    command = (
        f"gonka-trainer keys delegate {name} {asked.key} --key COLD.key --grpc {config.grpc} --rpc {config.rpc}"
        f" --prefix {config.prefix} --denom {config.denom} --gas-price {config.gas_price}"
    )
    return Finding(False, f"run {run.manifest.name}: {asked.participant} does not delegate to {asked.key}", command)


def _end(now_ns: int) -> datetime:
    return _moment(now_ns) + timedelta(days=_GRANT_DAYS)


def _day(time_ns: int) -> str:
    return f"{_moment(time_ns):%Y-%m-%d %H:%M} UTC"


def _moment(time_ns: int) -> datetime:
    """Return a node's time; one that no calendar has becomes the nearest that is safe to reckon with."""
    return datetime.fromtimestamp(min(max(time_ns // _NANOSECONDS, 0), _LAST_SECOND), UTC)


def _until(expires_ns: int | None, now_ns: int) -> str:
    if expires_ns is None:
        return "without end"
    return f"until {_day(expires_ns)}" + (" (soon: renew it)" if expires_ns - now_ns < _SOON_NS else "")
