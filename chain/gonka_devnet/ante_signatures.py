"""The rules about signers: keys, gas for signatures, sequences and timestamps, the signatures themselves."""

from __future__ import annotations

from typing import Any

from gonka_devnet import accounts
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import sdk_error, show
from gonka_devnet.module import AbciError, Context
from gonka_devnet.signature import Verifier, address_bytes
from gonka_devnet.transaction import Tx, sign_bytes

MOST_SIGNATURES = 7
SECP256K1_GAS = 1000
LONGEST_UNORDERED_NS = 600 * 10**9
DIRECT = 1
MODES = {0: "UNSPECIFIED", 2: "TEXTUAL", 3: "DIRECT_AUX", 127: "LEGACY_AMINO_JSON", 191: "EIP_191"}
# The Gonka node's rules look into the key without asking whether there is one, whether the account has one or not.
NO_KEY_PANIC = "recovered: runtime error: invalid memory address or nil pointer dereference\nstack:\n: panic"
SIMULATED_KEY = bytes.fromhex("035ad6810a47f073553ff30d2fcc7e0d3b1c0b74b61a1aaa2582344037151e143a")


def _account(context: Context, signer: tuple[str, bytes]) -> Any:
    account = accounts.get(context, signer[1])
    if account is None:
        raise sdk_error(9, f"account {signer[0]} does not exist")
    return account


def _key(info: wire.SignerInfo) -> bytes | None:
    """Return the public key that a signer names, or None."""
    if not info.HasField("public_key"):
        return None
    if show(info.public_key.type_url) != accounts.SECP256K1:
        raise sdk_error(8, f"unsupported key type {show(info.public_key.type_url)}")
    return wire.PubKey.FromString(info.public_key.value).key


def set_keys(tx: Tx, context: Context, simulate: bool) -> None:
    """Compare each named key with its signer and keep it with an account that has none."""
    for place, (signer, info) in enumerate(zip(tx.signers, tx.auth.signer_infos, strict=False)):
        key = _key(info)
        if key is None and not simulate:
            raise AbciError("undefined", 111222, NO_KEY_PANIC)
        if key is not None and not simulate and address_bytes(key) != signer[1]:
            raise sdk_error(8, f"pubKey does not match signer address {signer[0]} with signer index: {place}")
        account = _account(context, signer)
        if accounts.public_key(account) is None:
            accounts.set_public_key(account, key or SIMULATED_KEY)
            accounts.put(context, signer[1], account)


def pay_for_signatures(tx: Tx, context: Context) -> None:
    """Refuse too many signatures and take the gas for each."""
    accounts.read_params(context)
    if len(tx.signatures) > MOST_SIGNATURES:
        raise sdk_error(14, f"signatures: {len(tx.signatures)}, limit: {MOST_SIGNATURES}")
    accounts.read_params(context)
    for signer in tx.signers:
        _account(context, signer)
        context.gas.consume(SECP256K1_GAS, "ante verify: secp256k1")


def _use_timestamp(tx: Tx, context: Context, remember: bool) -> None:
    if not tx.body.timeout_timestamp.seconds:
        raise sdk_error(18, "unordered transaction must have timeout_timestamp set")
    if tx.timeout_ns < context.time_ns:
        raise sdk_error(18, "unordered transaction has a timeout_timestamp that has already passed")
    if tx.timeout_ns > context.time_ns + LONGEST_UNORDERED_NS:
        raise sdk_error(18, "unordered tx ttl exceeds 10m0s")
    context.gas.consume(accounts.UNORDERED_GAS, "unordered tx")
    for text, raw in tx.signers if remember else ():
        if not accounts.use_timestamp(context, raw, tx.timeout_ns):
            used = f"sender {text} has already used timeout {tx.timeout_ns}"
            raise sdk_error(18, f"failed to add unordered nonce: {used}")


def verify(tx: Tx, context: Context, remember: bool, verifier: Verifier | None) -> None:
    """Check sequence or timestamp and, given a verifier, the signatures."""
    infos = tx.auth.signer_infos
    if len(infos) != len(tx.signers):
        raise sdk_error(4, f"invalid number of signer;  expected: {len(tx.signers)}, got {len(infos)}")
    if tx.unordered:
        _use_timestamp(tx, context, remember)
    for signer, info, signature in zip(tx.signers, infos, tx.signatures, strict=True):
        account = _account(context, signer)
        _check_sequence(tx, info.sequence, account.sequence)
        if verifier is not None:
            _check_signature(tx, context, account, info, signature, verifier)


def _check_sequence(tx: Tx, given: int, expected: int) -> None:
    if tx.unordered and given:
        raise sdk_error(18, "sequence is not allowed for unordered transactions")
    if not tx.unordered and given != expected:
        raise sdk_error(32, f"account sequence mismatch, expected {expected}, got {given}")


def _check_signature(
    tx: Tx, context: Context, account: Any, info: wire.SignerInfo, signature: bytes, verifier: Verifier
) -> None:
    key = accounts.public_key(account)
    if key is None:
        raise sdk_error(8, "pubkey on account is not set")
    mode = info.mode_info.single.mode if info.mode_info.HasField("single") else 0
    if mode != DIRECT:
        reason = f"unsupported sign mode SIGN_MODE_{MODES.get(mode, mode)}"
    elif verifier.verify(key, sign_bytes(tx, context.chain_id, account.account_number), signature):
        return
    else:
        reason = "unable to verify single signer signature"
    what = f"please verify account number ({account.account_number}) and chain-id ({context.chain_id}): ({reason})"
    raise sdk_error(4, f"signature verification failed; {what}")


def raise_sequences(tx: Tx, context: Context) -> None:
    """Count an ordered transaction for each of its signers."""
    if tx.unordered:
        return
    for signer in tx.signers:
        account = _account(context, signer)
        account.sequence += 1
        accounts.put(context, signer[1], account)
