"""Preparing a new account key for a daemon that goes on: made, funded, delegated to, and left for it to take over.

Each step can be made again: what a former try has done is found and kept. The new key is a draft until everything on
chain that it needs is there; only then it gets the name at which the daemon looks (`rotation`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gonka_trainer.app.accepted import Accepted
from gonka_trainer.app.key_grants import find_grants
from gonka_trainer.app.keys import account_path, next_key_path, promote_key
from gonka_trainer.app.leaving import publish_record
from gonka_trainer.app.opening import make_sender, open_client
from gonka_trainer.app.rules import parse_address
from gonka_trainer.chain.address import encode_address
from gonka_trainer.chain.client import ChainClient
from gonka_trainer.chain.keyfiles import is_credential, replace_secret, sync_folder
from gonka_trainer.chain.keys import AccountKey, describe_key, load_key, new_key
from gonka_trainer.chain.transactions import send_message
from gonka_trainer.config import Config
from gonka_trainer.errors import ChainError, ChainUnavailableError, ConfigError
from gonka_trainer.round.records import Delegate
from gonka_trainer.types import Address, sha256, u64


@dataclass(frozen=True)
class Change:
    """What a change is made with. `signer` is the participant's key (not needed with grants), `fund` smallest units.

    `begun` are the runs that the daemon is in; `say` is told of each step.
    """

    config: Config
    old: AccountKey
    signer: AccountKey | None
    passphrase: Callable[[], bytes]
    fund: int
    begun: tuple[Accepted, ...]
    say: Callable[[str], None]

    @property
    def participant(self) -> Address:
        """For whom the daemon speaks."""
        keys, prefix = self.config.keys, self.config.chain.prefix
        return parse_address(keys.participant, prefix, "keys.participant")

    def name(self, address: Address) -> str:
        """Render an address for people."""
        return encode_address(address, self.config.chain.prefix)


async def change_account(change: Change) -> None:
    """Make everything ready for the daemon. UserError says what is missing; the command can then be given again."""
    _check(change)
    waiting = next_key_path(change.config.keys)
    draft = waiting.with_name(f"{waiting.name}.draft")
    if waiting.exists():
        raise ConfigError(f"{waiting} waits already: the daemon has not taken it over yet", "see the daemon's log")
    key = _draft(change, draft)
    change.say(f"new account key {change.name(key.address)}")
    async with open_client(change.config.chain) as client:
        await _fund(change, client, key.address)
        await _granted(change, client, key.address)
    for run in change.begun if change.config.keys.speaks_by == "delegate" else ():
        await _delegate(change, run, key.address)
    draft.replace(waiting)
    sync_folder(waiting.parent)
    if change.begun:
        change.say("ready: the daemon takes it over, and a round to come names it (its log says when)")
        if change.old.address == change.participant:
            change.say("the old key is the participant's own: keep its file, the account still signs with it")
        return
    kept = promote_key(change.config.keys, change.name(change.old.address))
    change.say(f"no run has begun here, so it is in place now: start the daemon again. The old key is {kept}")


def _check(change: Change) -> None:
    keys = change.config.keys
    if is_credential(keys.account_file):
        raise ConfigError(
            "keys.account_file is a systemd credential: nothing but systemd can put another key there",
            "keep an encrypted key file, and its passphrase as the credential (keys.passphrase_file)",
        )
    if not keys.participant:
        raise ConfigError(
            "keys.participant is empty: with another account key the daemon would be another participant",
            f'write participant = "{change.name(change.old.address)}" into [keys] and restart the daemon; '
            "it means what is so now",
        )
    by_record = keys.speaks_by == "delegate"
    if by_record and change.begun and (change.signer is None or change.signer.address != change.participant):
        raise ConfigError(
            f"the delegate record for the new key is {change.name(change.participant)}'s to sign", "give its --key FILE"
        )


def _draft(change: Change, draft: Path) -> AccountKey:
    """Return the draft's key, made now unless a former try made it; encrypted when the old one is."""
    if not draft.exists():
        sealed = describe_key(account_path(change.config.keys))[1]
        replace_secret(draft, new_key().file_content(change.passphrase() if sealed else None))
    return load_key(draft, change.passphrase)


async def _fund(change: Change, client: ChainClient, key: Address) -> None:
    """See that the new account is on chain, with the coins that it was to get."""
    chain, text = change.config.chain, change.name(key)
    held = await client.tx.balance(key, chain.denom)
    if held < change.fund:
        sender = make_sender(client, chain, change.old, change.config.data_path / "sent-by-hand")
        message = send_message(sender.text, text, change.fund - held, chain.denom)
        digest = sha256(b"gonka-trainer/fund/1", key, u64(held), u64(change.fund))
        receipt, _ = await sender.deliver(digest, [message])
        change.say(f"sent it {change.fund - held} {chain.denom} in block {receipt.height}")
    try:
        await client.tx.account(key)
    except ChainUnavailableError:
        raise
    except ChainError as error:
        raise ChainError(
            error.what, f"send {text} some coins, or give --fund AMOUNT; then this command again"
        ) from error


async def _granted(change: Change, client: ChainClient, key: Address) -> None:
    """With grants: see that the new key has those that it needs, before the daemon relies on them."""
    if change.config.keys.speaks_by != "authz":
        return
    lacks = [found for found in await find_grants(client, change.config, key, {}) if not found.good]
    if lacks:
        remedy = "\n     ".join(found.command for found in lacks)
        raise ChainError("; ".join(found.what for found in lacks), f"{remedy}\n     then this command again")


async def _delegate(change: Change, run: Accepted, key: Address) -> None:
    if key == change.participant:
        return
    assert change.signer is not None
    folder = change.config.data_path / "sent-by-hand"
    work = publish_record(change.config.chain, folder, change.signer, run, lambda height: Delegate(key, height))
    receipt = await work
    change.say(f"run {run.manifest.name}: delegated to it in block {receipt.height}")
