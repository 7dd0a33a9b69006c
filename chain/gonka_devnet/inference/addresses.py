"""Account addresses, as far as this module looks inside them."""

from __future__ import annotations

from gonka_devnet import bech32
from gonka_devnet.module import AbciError


def address_bytes(address: bytes) -> bytes | None:
    """Return the account's bytes, or None if the text is no bech32 address."""
    try:
        return bech32.decode(address.decode("utf-8", "replace"))[1]
    except bech32.Bech32Error:
        return None


def with_prefix(address: bytes, prefix: str) -> bytes:
    """Return the same account's address under another bech32 prefix."""
    return bech32.encode(prefix, bech32.decode(address.decode())[1]).encode()


def require_address(address: bytes, creator: bytes, what: str) -> None:
    """Refuse (sdk 7) what is no address with the signer's prefix; `what` is the sentence's start."""
    problem = _problem(
        address.decode("utf-8", "replace").strip(), creator.rpartition(b"1")[0].decode("utf-8", "replace")
    )
    if problem:
        raise AbciError("sdk", 7, f"{what} ({problem}): invalid address")


def _problem(address: str, prefix: str) -> str:
    if not address:
        return "empty address string is not allowed"
    try:
        found, _ = bech32.decode(address)
    except bech32.Bech32Error as error:
        return f"decoding bech32 failed: {error}"
    return "" if found == prefix else f"invalid Bech32 prefix; expected {prefix}, got {found}"
