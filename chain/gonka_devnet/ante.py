"""The rules that every transaction passes before its messages run, in the SDK's order (x/auth/ante)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from gonka_devnet import accounts, ante_signatures, balances, bech32, coins, grants
from gonka_devnet.errors import sdk_error, show
from gonka_devnet.module import AbciError, Context
from gonka_devnet.signature import Verifier
from gonka_devnet.timestamps import go_time
from gonka_devnet.transaction import Tx

MEMO_BYTES = 256
BYTE_GAS = 10
MOST_GAS = 2**63 - 1
TX_COUNTER = b"\x08"
SIMULATED_SIGNATURE_BYTES = 64 + 33 + 6
FEE_COLLECTOR = bech32.module_account("fee_collector")


class Mode(Enum):
    """Why a transaction is run."""

    CHECK = "check"
    RECHECK = "recheck"
    DELIVER = "deliver"
    SIMULATE = "simulate"


@dataclass(frozen=True)
class Run:
    """A transaction on its way through the rules. `prices` are the node's minimum gas prices by denomination."""

    tx: Tx
    context: Context
    mode: Mode
    prices: dict[str, Fraction]
    verifier: Verifier


def validate_basic(run: Run) -> None:
    """Check the form: gas, fee, number of signatures."""
    tx = run.tx
    if tx.auth.fee.gas_limit > MOST_GAS:
        raise sdk_error(18, f"invalid gas supplied; {tx.auth.fee.gas_limit} > {MOST_GAS}")
    fee = fee_of(tx)
    if any(amount < 0 for _, amount in fee):
        raise sdk_error(13, f"invalid fee provided: {coins.text(fee)}")
    if not tx.signatures:
        raise sdk_error(15)
    if len(tx.signatures) != len(tx.signers):
        raise sdk_error(4, f"wrong number of signers; expected {len(tx.signers)}, got {len(tx.signatures)}")


def fee_of(tx: Tx) -> coins.Coins:
    """Return the fee's coins; raise AbciError sdk 10."""
    try:
        return coins.read(tx.auth.fee.amount)
    except coins.CoinError as error:
        raise sdk_error(10, str(error)) from error


def count(run: Run) -> None:
    """Pay for what the chain has beside the SDK's rules: wasmd's count of transactions, and look-ups of its own."""
    accounts.read_params(run.context)
    accounts.read_params(run.context)
    if run.mode is not Mode.SIMULATE:
        counted = run.context.store.get(TX_COUNTER) or b""
        height, place = counted[:8], int.from_bytes(counted[8:], "big")
        now = run.context.height.to_bytes(8, "big")
        run.context.store.set(TX_COUNTER, now + (place + 1 if height == now else 1).to_bytes(4, "big"))


def refuse_extensions(run: Run) -> None:
    """Refuse extension options: none are known."""
    if run.tx.body.extension_options:
        raise sdk_error(31)


def check_timeouts(run: Run) -> None:
    """Refuse what is past its height or time."""
    limit, context = run.tx.body.timeout_height, run.context
    if 0 < limit < context.height:
        raise sdk_error(30, f"block height: {context.height}, timeout height: {limit}")
    if run.tx.body.timeout_timestamp.seconds and run.tx.timeout_ns < context.time_ns:
        times = f"block time: {go_time(context.time_ns)}, timeout timestamp: {go_time(run.tx.timeout_ns)}"
        raise sdk_error(42, times)


def check_memo(run: Run) -> None:
    """Refuse long memos; counted in bytes."""
    length = len(run.tx.body.memo)
    if length:
        accounts.read_params(run.context)
    if length > MEMO_BYTES:
        raise sdk_error(12, f"maximum number of characters is {MEMO_BYTES} but received {length} characters")


def pay_for_size(run: Run) -> None:
    """Take gas for each byte; a simulation also for the signatures that it lacks."""
    accounts.read_params(run.context)
    size = len(run.tx.raw)
    if run.mode is Mode.SIMULATE:
        size += sum(SIMULATED_SIGNATURE_BYTES for signature in run.tx.signatures if not signature)
    run.context.gas.consume(BYTE_GAS * size, "txSize")


def _check_price(run: Run, fee: coins.Coins) -> None:
    if run.mode not in {Mode.CHECK, Mode.RECHECK} or not any(run.prices.values()):
        return
    gas = run.tx.auth.fee.gas_limit
    required = [(denom, -(-price * gas // 1)) for denom, price in sorted(run.prices.items())]
    paid = dict(fee)
    if not any(paid.get(denom, 0) >= amount for denom, amount in required):
        wanted = ",".join(f"{amount}{denom}" for denom, amount in required)
        raise sdk_error(13, f"insufficient fees; got: {coins.text(fee)} required: {wanted}")


def _fee_source(run: Run, fee: coins.Coins) -> bytes:
    """Return whose coins pay, after the use of a grant."""
    payer, granter_text = run.tx.payer[1], show(run.tx.auth.fee.granter)
    if not granter_text:
        return payer
    try:
        granter = bech32.account_bytes(granter_text, run.context.prefix)
    except ValueError as error:
        raise sdk_error(7, f"invalid fee granter address: {error}") from error
    if granter == payer:
        return payer
    try:
        grants.use(run.context, granter, payer, fee, [url for url, _ in run.tx.messages])
    except AbciError as error:
        log = f"{show(granter)} does not allow to pay fees for {show(payer)}: {error.log}"
        raise AbciError(error.codespace, error.code, log) from error
    return granter


def deduct_fee(run: Run) -> None:
    """Check the fee against the node's price and take it from the payer or the granter."""
    tx, context = run.tx, run.context
    if run.mode is not Mode.SIMULATE and not tx.auth.fee.gas_limit:
        raise sdk_error(41, "must provide positive gas")
    fee = fee_of(tx)
    _check_price(run, fee)
    source = _fee_source(run, fee)
    if accounts.get(context, source) is None:
        raise sdk_error(9, f"fee payer address: {show(source)} does not exist")
    if any(amount for _, amount in fee):
        if not coins.valid(fee):
            raise sdk_error(13, f"invalid fee amount: {coins.text(fee)}")
        _pay(context, source, fee)
    context.emit("tx", fee=coins.text(fee), fee_payer=bech32.encode(context.prefix, source))


def _pay(context: Context, source: bytes, fee: coins.Coins) -> None:
    try:
        balances.send(context, source, FEE_COLLECTOR, fee)
    except AbciError as error:
        if error.code == 11:
            raise
        raise sdk_error(5, error.log) from error


def emit_signatures(run: Run) -> None:
    """Tell sequence and signature of each signer."""
    for (text, _), info, signature in zip(run.tx.signers, run.tx.auth.signer_infos, run.tx.signatures, strict=False):
        if not run.tx.unordered:
            run.context.emit("tx", acc_seq=f"{text}/{info.sequence}")
        run.context.emit("tx", signature=base64.b64encode(signature).decode())


def check(run: Run) -> None:
    """Run all rules; raise AbciError at the first that refuses. What they wrote until then is the caller's to drop."""
    count(run)
    validate_basic(run)
    refuse_extensions(run)
    check_timeouts(run)
    check_memo(run)
    pay_for_size(run)
    deduct_fee(run)
    ante_signatures.set_keys(run.tx, run.context, run.mode is Mode.SIMULATE)
    emit_signatures(run)
    ante_signatures.pay_for_signatures(run.tx, run.context)
    ante_signatures.verify(
        run.tx,
        run.context,
        remember=run.mode is not Mode.SIMULATE,
        verifier=run.verifier if run.mode in {Mode.CHECK, Mode.DELIVER} else None,
    )
    ante_signatures.raise_sequences(run.tx, run.context)
