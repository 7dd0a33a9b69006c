"""Transactions: from bytes to checked parts, as x/tx/decode does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cosmpy.protos.cosmos.authz.v1beta1 import authz_pb2
from cosmpy.protos.cosmos.bank.v1beta1 import authz_pb2 as bank_authz_pb2
from cosmpy.protos.cosmos.crypto.ed25519 import keys_pb2 as ed25519
from cosmpy.protos.cosmos.crypto.multisig import keys_pb2 as multisig
from cosmpy.protos.cosmos.crypto.secp256k1 import keys_pb2 as secp256k1
from cosmpy.protos.cosmos.feegrant.v1beta1 import feegrant_pb2
from cosmpy.protos.cosmos.tx.v1beta1 import tx_pb2 as strict
from google.protobuf.message import DecodeError

from gonka_devnet import bech32
from gonka_devnet._pb.wire import wire_pb2 as wire
from gonka_devnet.errors import raw_bytes, sdk_error, show
from gonka_devnet.module import AbciError, Message
from gonka_devnet.timestamps import EARLIEST_SECONDS, LATEST_SECONDS
from gonka_devnet.unknown_fields import WireError, refuse_unknown

KNOWN = {
    "/" + descriptor.full_name: descriptor
    for descriptor in (
        secp256k1.PubKey.DESCRIPTOR,
        ed25519.PubKey.DESCRIPTOR,
        multisig.LegacyAminoPubKey.DESCRIPTOR,
        authz_pb2.GenericAuthorization.DESCRIPTOR,
        bank_authz_pb2.SendAuthorization.DESCRIPTOR,
        feegrant_pb2.BasicAllowance.DESCRIPTOR,
        feegrant_pb2.PeriodicAllowance.DESCRIPTOR,
        feegrant_pb2.AllowedMsgAllowance.DESCRIPTOR,
    )
}


@dataclass(frozen=True)
class Tx:
    """A decoded transaction. `signers` are (bech32 address, bytes) in the order in which they sign."""

    raw: bytes
    body_bytes: bytes
    auth_bytes: bytes
    signatures: tuple[bytes, ...]
    body: wire.TxBody
    auth: wire.AuthInfo
    signers: tuple[tuple[str, bytes], ...]

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the bytes."""
        return hashlib.sha256(self.raw).digest()

    @property
    def unordered(self) -> bool:
        """Whether it uses a timestamp in place of a sequence."""
        return self.body.unordered

    @cached_property
    def timeout_ns(self) -> int:
        """The timeout timestamp in nanoseconds since 1970; 0 when there is none."""
        return self.body.timeout_timestamp.seconds * 10**9 + self.body.timeout_timestamp.nanos

    @property
    def payer(self) -> tuple[str, bytes]:
        """Who pays the fee when nobody granted it."""
        named = show(self.auth.fee.payer)
        return next((signer for signer in self.signers if signer[0] == named), self.signers[0])

    @property
    def messages(self) -> list[tuple[str, bytes]]:
        """Type URL and bytes of each message."""
        return [(show(message.type_url), message.value) for message in self.body.messages]


def parse_error(text: str) -> AbciError:
    """Return sdk 2 as the decoder says it."""
    return sdk_error(2, f"{text}: tx parse error")


class Decoder:
    """Decodes transactions of the messages that the application serves."""

    def __init__(self, messages: Mapping[str, Message], prefix: str) -> None:
        self._messages = messages
        self._prefix = prefix

    def _resolve(self, url: str) -> Any:
        if url in KNOWN:
            return KNOWN[url]
        if url not in self._messages:
            raise WireError(f"unable to resolve type URL {url}")
        return self._messages[url].descriptor

    def _check(self, descriptor: Any, data: bytes, lenient: bool) -> None:
        refuse_unknown(descriptor, data, self._resolve, lenient)

    def decode(self, raw: bytes) -> Tx:
        """Return the transaction's parts; raise AbciError sdk 2."""
        try:
            self._check(strict.TxRaw.DESCRIPTOR, raw, False)
            parts = wire.TxRaw.FromString(raw)
            self._check(strict.TxBody.DESCRIPTOR, parts.body_bytes, True)
            self._check(strict.AuthInfo.DESCRIPTOR, parts.auth_info_bytes, False)
            body, auth = wire.TxBody.FromString(parts.body_bytes), wire.AuthInfo.FromString(parts.auth_info_bytes)
            _check_time(body)
            signers = self._signers(body, auth)
        except (WireError, DecodeError, bech32.Bech32Error, bech32.PrefixError) as error:
            raise parse_error(str(error)) from error
        return Tx(raw, parts.body_bytes, parts.auth_info_bytes, tuple(parts.signatures), body, auth, signers)

    def _signers(self, body: wire.TxBody, auth: wire.AuthInfo) -> tuple[tuple[str, bytes], ...]:
        texts = [self._messages[show(message.type_url)].signer(message.value) for message in body.messages]
        if auth.fee.payer:
            texts.append(show(auth.fee.payer))
        return tuple((text, bech32.account_bytes(text, self._prefix)) for text in dict.fromkeys(texts))


def _check_time(body: wire.TxBody) -> None:
    moment = body.timeout_timestamp
    if not EARLIEST_SECONDS <= moment.seconds <= LATEST_SECONDS or not 0 <= moment.nanos < 10**9:
        raise WireError(f"timestamp: seconds:{moment.seconds} nanos:{moment.nanos} out of range")


def sign_bytes(tx: Tx, chain_id: str, account_number: int) -> bytes:
    """Return what SIGN_MODE_DIRECT signs."""
    document = wire.SignDoc(
        body_bytes=tx.body_bytes,
        auth_info_bytes=tx.auth_bytes,
        chain_id=raw_bytes(chain_id),
        account_number=account_number,
    )
    return document.SerializeToString()
