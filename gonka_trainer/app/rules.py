"""From a manifest to the core's rules; the only place where a manifest's bech32 text becomes addresses."""

from __future__ import annotations

from gonka_trainer.chain.address import decode_address
from gonka_trainer.errors import ConfigError, DecodeError
from gonka_trainer.manifest import Manifest
from gonka_trainer.round.naming import run_id
from gonka_trainer.round.params import RoundParams
from gonka_trainer.types import Address, Digest, Height


def parse_address(text: str, prefix: str, where: str) -> Address:
    """Read an account's bech32 text; ConfigError says where it stands."""
    try:
        return decode_address(text, prefix)
    except DecodeError as error:
        raise ConfigError(f"{where}: {text!r:.80}: {error}", f"an account's address begins with {prefix}1") from error


def round_params(manifest: Manifest, manifest_hash: Digest, prefix: str) -> RoundParams:
    """Return the rules of the run; ConfigError for a participant that is no address of this chain."""
    listed = manifest.membership.participants
    members = tuple(sorted(parse_address(p, prefix, "manifest: membership.participants") for p in listed))
    windows = manifest.windows
    return RoundParams(
        run_id=run_id(manifest.chain_id, manifest_hash),
        initial_root=Digest(bytes.fromhex(manifest.state_root)),
        log_height=Height(manifest.log_height),
        start_height=Height(manifest.start_height),
        equal_members=members or None,
        min_weight=manifest.membership.min_weight,
        train_blocks=windows.train_blocks,
        margin_blocks=windows.margin_blocks,
        commit_blocks=windows.commit_blocks,
        attest_blocks=windows.attest_blocks,
        extensions=windows.extensions,
        state_blocks=windows.state_blocks,
        absent_rounds=windows.absent_rounds,
        exclusion_rounds=windows.exclusion_rounds,
        challenge_blocks=windows.challenge_blocks,
        rounds=manifest.end.rounds,
        tokens=manifest.end.tokens,
    )
